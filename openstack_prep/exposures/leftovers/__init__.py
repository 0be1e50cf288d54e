"""What former specs have left: claims in registers, and files."""
