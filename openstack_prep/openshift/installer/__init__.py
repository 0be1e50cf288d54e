"""The installer's files, and what tells its resources from others; without requests."""
