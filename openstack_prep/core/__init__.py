"""What a resource is, and how a plan is made and carried out.  Knows neither OpenStack nor YAML."""
