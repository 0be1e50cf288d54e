"""A real OpenStack control plane on loopback, for tests and for trying things out.

``python -m tests.devcloud up`` starts it; README.md says what it is made of and what it cannot do.
"""
