"""OpenShift on OpenStack: install-config.yaml, the installer, checks before and after it."""
