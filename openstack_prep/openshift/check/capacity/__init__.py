"""Whether what the machines need is there: flavors, image, quotas, zones, object store."""
