"""The commands that change nothing, and applies that a person has approved, as tools for AI assistants."""
