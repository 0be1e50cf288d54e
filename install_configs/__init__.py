"""Data files, found by importlib.resources."""
