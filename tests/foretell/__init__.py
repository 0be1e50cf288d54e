"""Whether a plan names what the services of a devcloud refuse: ``python -m tests.foretell``."""
