"""Addresses from outside to services inside of clusters: what is reserved, opened and rendered for each."""
