"""RKE: cluster.yml and the keys that it may have."""
