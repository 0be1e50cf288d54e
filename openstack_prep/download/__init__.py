"""Bytes on their way: from a file or URL, unpacked, summed, converted; no more of them in memory than a few MiB."""
