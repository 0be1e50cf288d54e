"""The lists that services return, requested once per run, and the records that are created from the answers."""
