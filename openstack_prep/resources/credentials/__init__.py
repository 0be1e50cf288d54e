"""Keystone: application credentials, and the clouds.yaml entries that keep their secrets."""
