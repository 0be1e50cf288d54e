"""Texts in YAML and JSON: those of others, those with places, and those that are written."""
