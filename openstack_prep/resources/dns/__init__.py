"""Designate: DNS recordsets in zones that exist."""
