"""Glance: images, their sources, and how they are uploaded."""
