"""What a run or its findings look like outside of the terminal: files for people and for other programs."""
