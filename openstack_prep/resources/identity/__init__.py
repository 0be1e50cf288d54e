"""Keystone: projects, users, role assignments, application credentials."""
