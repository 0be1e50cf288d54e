"""Properties of managed images: who manages them, and what was verified.

A seal is the checksum of the content as it was received, by one algorithm. It is written after the content was
verified, so an image of this spec without a seal is left over from a killed run.
"""

from __future__ import annotations

from openstack_prep.resources.image.glance import ImageRecord

SPEC, NAME = "openstack_prep", "openstack_prep_name"
"""Properties that hold the ownership tag, and the name within the spec."""
SEALS = {algorithm: f"openstack_prep_{algorithm}" for algorithm in ("sha256", "sha512", "md5")}
"""Properties that hold the verified checksum, by its algorithm."""
PACKED = "openstack_prep_compressed_checksum"
"""Property that holds the checksum of the compressed source, if that was verified."""
CONVERTED = "openstack_prep_converted_from"
"""Property that holds the original format of converted content: the seal covers the original, Glance's checksums do
not.
"""


def is_sealed(image: ImageRecord) -> bool:
    """Whether the content of an image was verified."""
    return any(name in image.properties for name in SEALS.values())


def sums(image: ImageRecord) -> dict[str, str]:
    """Return the known checksums of an image's content, by algorithm: Glance's own, and that of the seal."""
    properties = image.properties
    known = {} if CONVERTED in image.properties else glances_sums(image)
    return known | {algorithm: properties[name] for algorithm, name in SEALS.items() if name in properties}


def glances_sums(image: ImageRecord) -> dict[str, str]:
    """Return Glance's checksums of the stored content, by algorithm."""
    computed = {"md5": image.checksum, image.os_hash_algo: image.os_hash_value}
    return {algorithm: value for algorithm, value in computed.items() if algorithm and value}
