"""What a request passes on its way to each exposure, and how it is shown."""
