"""What is refused about exposures: by their declarations alone, and beside what exists."""
