"""What a finished run looks like to other programs."""
