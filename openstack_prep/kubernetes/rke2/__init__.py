"""RKE2: config.yaml and the keys that it may have."""
