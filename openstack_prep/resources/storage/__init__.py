"""Swift: the account of a project."""
