"""What our images say of themselves in their properties: whose they are, and what was verified.

A seal is the sum of the content as it came, by one algorithm.  It is written when that was verified,
so an image of ours without one is what a killed run left behind.
"""

from __future__ import annotations

from openstack_prep.resources.glance import Raw

SPEC, NAME = "openstack_prep", "openstack_prep_name"
"""Properties that hold our mark, and the name within the spec."""
SEALS = {algorithm: f"openstack_prep_{algorithm}" for algorithm in ("sha256", "sha512", "md5")}
"""Properties that hold the sum that was verified, by its algorithm."""
PACKED = "openstack_prep_compressed_checksum"
"""Property that holds the sum of the compressed file it was made from, if that was verified."""
CONVERTED = "openstack_prep_converted_from"
"""Property that holds the format of the content before it was converted: the seal is of that, Glance's sums are not."""


def sealed(raw: Raw) -> bool:
    """Whether its content was verified."""
    return any(name in raw for name in SEALS.values())


def sums(raw: Raw) -> dict[str, str]:
    """Return the known sums of an image's content, by algorithm: Glance's own, and those of the seal."""
    known = {} if CONVERTED in raw else glances_sums(raw)
    return known | {algorithm: raw[name] for algorithm, name in SEALS.items() if name in raw}


def glances_sums(raw: Raw) -> dict[str, str]:
    """Return the sums that Glance has of what it holds, by algorithm."""
    computed = {"md5": raw.get("checksum"), raw.get("os_hash_algo"): raw.get("os_hash_value")}
    return {algorithm: value for algorithm, value in computed.items() if algorithm and value}
