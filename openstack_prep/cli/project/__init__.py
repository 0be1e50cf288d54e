"""Commands for any spec."""
