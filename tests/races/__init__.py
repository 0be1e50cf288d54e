"""Concurrent runs of one spec against a devcloud: what is left, and how each run ends."""
