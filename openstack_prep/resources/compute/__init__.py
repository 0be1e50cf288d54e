"""Nova: flavors, key pairs, server groups; and the quotas of all services."""
