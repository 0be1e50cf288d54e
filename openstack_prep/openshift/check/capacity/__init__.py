"""Whether the cloud has what the machines need: flavors, image, quotas, zones, object store."""
