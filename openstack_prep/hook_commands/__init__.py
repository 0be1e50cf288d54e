"""The commands of the hooks: before, around and after an installer."""
