"""The access to OpenStack: the connection, its services, the acting users of a project, and the lease."""
