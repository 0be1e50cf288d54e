"""Drawings: what a spec's resources need, and how a project's networks are connected."""
