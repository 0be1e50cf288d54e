"""Disconnected installations: what the mirrors of the release's images must hold."""
