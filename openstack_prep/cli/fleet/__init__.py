"""Commands for a fleet of specs."""
