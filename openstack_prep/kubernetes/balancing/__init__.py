"""What the load balancers of Services have in common: pools, selectors and their checks."""
