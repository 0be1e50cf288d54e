"""Commands for OpenShift."""
