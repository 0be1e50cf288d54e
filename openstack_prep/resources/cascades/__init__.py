"""What the deletion of each kind takes along: the rules of the services, a table per kind, each row with its source.

The deletions of key pairs, recordsets, subnets, stacks' own resources and application credentials take nothing along
that their services show: docs/limits.md says what nobody can see.
"""
