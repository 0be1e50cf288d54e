"""The releases of MetalLB: from which one on it has a field or reads an annotation, and which Kubernetes takes it.

Sources: metallb/metallb, config/crd/bases of v0.13.0 to v0.16.1 (each field by the first tag that has it);
controller/service.go of v0.14.8 and v0.14.9 (the prefix of annotations); internal/bgp/community/community.go of
v0.13.10 (large communities); commit 2dc2b1da3 of v0.16.0 (AS numbers of BGPPeer are of the format int32 before, with a
maximum that Kubernetes 1.36 refuses).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from openstack_prep.base.fields import Name, Reads
from openstack_prep.base.invalid import InvalidValue

NEWEST = "0.16.1"
OLDEST = (0, 3)
CRD_SINCE = (0, 13, 0)
"""The first release with custom resources, and without the ConfigMap."""
SINCE: Mapping[str, tuple[int, int, int]] = {
    "avoid_buggy_ips": (0, 13, 4),
    "l2.interfaces": (0, 13, 6),
    "namespaces": (0, 13, 8),
    "namespace_selectors": (0, 13, 8),
    "service_selectors": (0, 13, 8),
    "priority": (0, 13, 8),
    "l2.service_selectors": (0, 16, 0),
    "bgp.service_selectors": (0, 16, 0),
}
"""The first release with custom resources that have each field of a pool."""
LARGE_COMMUNITIES_SINCE = (0, 13, 10)
METALLB_IO_SINCE = (0, 14, 9)
"""The first release that reads annotations with the prefix metallb.io; earlier ones only read metallb.universe.tf."""
PEERS_SINCE = (0, 16, 0)
"""The first release whose BGPPeer Kubernetes accepts from this minor version on."""
PEERS_REFUSED_BY = 36
_FORM = r"v?(\d{1,4})\.(\d{1,4})(\.\d{1,6})?"


def release(value: object) -> object:
    """Validate a release of MetalLB, 0.16 or 0.16.1, with or without a v."""
    if isinstance(value, int | float) and not isinstance(value, bool):  # 0.10 without quotes is 0.1
        raise InvalidValue("is a number in YAML", 'write the release in quotes, such as "0.16"')
    if isinstance(value, str):
        found = re.fullmatch(_FORM, value)
        if not found or (int(found[1]), int(found[2])) < OLDEST:
            raise InvalidValue("is not a release of MetalLB", f"write one such as 0.16 or {NEWEST}")
        value = value.removeprefix("v")
    return value


MetalLBRelease = Annotated[Name, Reads(release, {"type": "string", "pattern": rf"^{_FORM}$"})]


def parts(version: str) -> tuple[int, ...]:
    """Return a release for comparisons; without a patch level, the newest one."""
    found = tuple(int(each) for each in version.split("."))
    return found if len(found) > 2 else (*found, 999)


def shown(since: tuple[int, ...]) -> str:
    """Return a release as text."""
    return ".".join(map(str, since))


def refused_peers(version: str, kubernetes: str | None) -> str:
    """Return why a version of Kubernetes refuses each BGPPeer of a release; empty if it does not, or is not known."""
    found = re.match(r"v?1\.(\d{1,4})", kubernetes or "")
    if found is None or int(found[1]) < PEERS_REFUSED_BY or parts(version) >= PEERS_SINCE:
        return ""
    return f"Kubernetes {kubernetes} refuses each BGPPeer of MetalLB {version}: its CRD has AS numbers of format int32"
