"""One file per kind; KINDS is the explicit table of them."""
