"""Streams of bytes: read from a file or URL, decompressed, verified, converted; only a few MiB in memory at a time."""
