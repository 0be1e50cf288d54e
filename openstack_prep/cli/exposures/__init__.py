"""The commands for addresses from outside."""
