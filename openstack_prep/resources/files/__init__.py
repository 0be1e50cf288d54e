"""Files on this machine: clouds.yaml and a file of shell variables."""
