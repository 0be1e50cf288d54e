"""What the OpenShift installer calls things, what it says of itself, and what it leaves: no cloud is asked."""
