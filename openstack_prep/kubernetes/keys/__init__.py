"""The keys that cluster.yml, config.yaml and their parts may have."""
