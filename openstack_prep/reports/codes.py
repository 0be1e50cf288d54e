"""What is documented of the codes of diagnostics."""

from __future__ import annotations

from collections.abc import Mapping

from openstack_prep import extensions
from openstack_prep.base.formats.foreign_text import shipped_yaml

REPORTS = "openstack_prep.reports"


def read_codes() -> dict[str, Mapping[str, str]]:
    """Return what is documented of each code, sorted by code."""
    found: dict[str, Mapping[str, str]] = {}
    for package in (REPORTS, *(each.codes for each in extensions.installed() if each.codes)):
        found |= shipped_yaml(package, "codes.yaml")
    return dict(sorted(found.items()))
