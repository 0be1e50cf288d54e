"""Which cluster a resource belongs to, by the names and tags that products give: what their extensions lead to."""
