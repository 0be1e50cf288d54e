"""The one way to OpenStack: the connection, its services, who acts in a project, and the lease."""
