"""What a resource is, and how plans are created and carried out. Depends neither on OpenStack nor on YAML."""
