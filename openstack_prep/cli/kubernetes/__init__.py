"""Commands for RKE and RKE2."""
