"""The fleet file: what it says, and reading it."""
