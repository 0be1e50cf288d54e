"""Heat: what it says of stacks, previews, events and nested groups."""
