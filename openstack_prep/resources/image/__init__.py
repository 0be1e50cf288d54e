"""Glance: images, where they come from, and how they get there."""
