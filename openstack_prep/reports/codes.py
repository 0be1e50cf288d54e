"""What is documented of the codes of diagnostics."""

from __future__ import annotations

from collections.abc import Mapping

from openstack_prep.base.formats.foreign_text import shipped_yaml

ROOMS = ("base", "openshift", "kubernetes", "exposures", "reports")
"""Packages that have a codes.yaml; what base has is reported by several products."""


def read_codes() -> dict[str, Mapping[str, str]]:
    """Return what is documented of each code, sorted by code."""
    found: dict[str, Mapping[str, str]] = {}
    for room in ROOMS:
        found |= shipped_yaml(f"openstack_prep.{room}", "codes.yaml")
    return dict(sorted(found.items()))
