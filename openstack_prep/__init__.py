"""Take an OpenStack project from nothing to ready for a cluster."""
