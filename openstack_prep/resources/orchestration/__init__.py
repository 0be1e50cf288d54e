"""Heat: a stack as a resource."""
