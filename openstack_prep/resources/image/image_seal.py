"""What our images say of themselves in their properties: whose they are, and what was verified.

A seal is the sum of the content as it came, by one algorithm.  It is written when that was verified,
so an image of ours without one is what a killed run left behind.
"""

from __future__ import annotations

from openstack_prep.resources.image.glance import ImageRecord

SPEC, NAME = "openstack_prep", "openstack_prep_name"
"""Properties that hold our mark, and the name within the spec."""
SEALS = {algorithm: f"openstack_prep_{algorithm}" for algorithm in ("sha256", "sha512", "md5")}
"""Properties that hold the sum that was verified, by its algorithm."""
PACKED = "openstack_prep_compressed_checksum"
"""Property that holds the sum of the compressed file it was made from, if that was verified."""
CONVERTED = "openstack_prep_converted_from"
"""Property that holds the format of the content before it was converted: the seal is of that, Glance's sums are not."""


def sealed(image: ImageRecord) -> bool:
    """Whether its content was verified."""
    return any(name in image.properties for name in SEALS.values())


def sums(image: ImageRecord) -> dict[str, str]:
    """Return the known sums of an image's content, by algorithm: Glance's own, and those of the seal."""
    properties = image.properties
    known = {} if CONVERTED in image.properties else glances_sums(image)
    return known | {algorithm: properties[name] for algorithm, name in SEALS.items() if name in properties}


def glances_sums(image: ImageRecord) -> dict[str, str]:
    """Return the sums that Glance has of what it holds, by algorithm."""
    computed = {"md5": image.checksum, image.os_hash_algo: image.os_hash_value}
    return {algorithm: value for algorithm, value in computed.items() if algorithm and value}
