"""Heat: what it reports about stacks, previews, events and nested groups."""
