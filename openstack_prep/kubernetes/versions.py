"""The release of RKE2 for a version of RKE: the newest of the same Kubernetes minor version.

The same minor version keeps the APIs, so that manifests move unchanged; upgrade the new cluster afterwards.  Source:
the tags of rancher/rke2 of August 2026; RKE 1.8.14 installs v1.32.13 by default.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from openstack_prep.base.errors import ConfigError
from openstack_prep.base.fields import matching
from openstack_prep.base.invalid import InvalidValue

VERSION = re.compile(r"v1\.(\d{1,3})\.(\d{1,3})(-rc\d+)?\+rke2r(\d{1,3})")
RELEASED = {
    18: "9-10 13 15-20 12r1-2",
    19: "5 7-12 14 16 13r1-2 15r1-2",
    20: "4-6 8 10 12-13 7r1-2 9r1-2 11r1-2 14-15r1-2",
    21: "2 6 9 11 14 3r1-2 5r1-2 7-8r1-2 10r1-2 12-13r1-2 4r1-3",
    22: "3 6 8 11-13 16-17 4-5r1-2 7r1-2 9-10r1-2 15r1-2",
    23: "3 5 8-10 12-17 1r1-2 4r1-2 6-7r1-2",
    24: "2-4 6-8 10-17 1r1-2 9r1-2",
    25: "0 2-4 6-14 5r1-2 15-16r1-2",
    26: "1-9 11-15 0r1-2 10r1-2",
    27: "1-6 8-15 7r1-2 16r1-2",
    28: "1-2 4-15 3r1-2",
    29: "0-15",
    30: "0-13 14r1-2,4",
    31: "0 2-13 1r1-2 14r1-2",
    32: "0-10 12 13r1-2 11r1-3",
    33: "0-6 8-9 11 12-13r1-2 7r1-3 10r1-3",
    34: "1-2 4-5 7 9-10 8r1-2 3r1-3 6r1-3",
    35: "1-2 4 6-7 5r1-2 0r1-3 3r1-3",
    36: "0 2-3 1r1-2",
}
"""The patches of each minor version of Kubernetes with their revisions: 3-5r1-2 is 3, 4 and 5, each with r1 and r2."""
DEFAULT_MINOR = 32
"""Of RKE 1.8.14, the last release."""


class TargetRelease(NamedTuple):
    """A release of RKE2, N of its Kubernetes 1.N, and why this one."""

    version: str
    minor: int
    note: str


def target(declared: object, chosen: str | None = None) -> TargetRelease:
    """Return the release for the kubernetes_version of a cluster.yml, or for a chosen release."""
    if chosen:
        return TargetRelease(chosen, minor_of(chosen) or DEFAULT_MINOR, "chosen by --kubernetes-version")
    minor = minor_of(declared)
    if minor is None:
        return TargetRelease(newest(DEFAULT_MINOR), DEFAULT_MINOR, f"RKE 1.8.14 installs 1.{DEFAULT_MINOR} by default")
    nearest = min(RELEASED, key=lambda each: abs(each - minor))
    if nearest != minor:
        return TargetRelease(
            newest(nearest), nearest, f"RKE2 has no 1.{minor}; 1.{nearest} is the nearest, and changes APIs"
        )
    return TargetRelease(newest(nearest), nearest, "the newest RKE2 of the same minor version")


@cache
def patches_of(minor: int) -> dict[int, tuple[int, ...]]:
    """Return the revisions of each patch of a minor version of Kubernetes that RKE2 has released, in their order."""
    found: dict[int, tuple[int, ...]] = {}
    for each in RELEASED[minor].split():
        patches, _, revisions = each.partition("r")
        found |= dict.fromkeys(_numbers(patches), tuple(_numbers(revisions or "1")))
    return dict(sorted(found.items()))


def _numbers(text: str) -> Iterator[int]:
    for each in text.split(","):
        first, _, last = each.partition("-")
        yield from range(int(first), int(last or first) + 1)


def newest(minor: int) -> str:
    """Return the newest known release for a minor version of Kubernetes."""
    patch, revisions = list(patches_of(minor).items())[-1]
    return f"v1.{minor}.{patch}+rke2r{revisions[-1]}"


def check_version(version: str) -> Iterator[str]:
    """Yield a warning for a version of RKE2 that may exist; raises InvalidValue for one that does not exist."""
    found = VERSION.fullmatch(version)
    if not found:  # of the same minor version: who follows the advice must not upgrade a cluster by it
        minor = minor_of(version)
        example = newest(minor if minor in RELEASED else max(RELEASED))
        raise InvalidValue("is not a version of RKE2", f"write one such as {example}")
    minor, patch, revision = int(found[1]), int(found[2]), int(found[4])
    if minor < min(RELEASED):
        raise InvalidValue("does not exist", f"the first release of RKE2 is for Kubernetes 1.{min(RELEASED)}")
    known = patches_of(minor) if minor in RELEASED else {}
    last = max(known, default=0)
    is_newer = (patch, revision) > (last, max(known.get(last, (0,))))
    if revision == 0 or not (found[3] or is_newer or revision in known.get(patch, ())):
        revisions = [f"v1.{minor}.{patch}+rke2r{each}" for each in known.get(patch, ())]
        choices = revisions or [newest(min(minor, max(RELEASED)))]
        raise InvalidValue("does not exist", f"write {' or '.join(choices)}")
    if found[3] or is_newer:
        yield f"{version} is not among the known releases of RKE2, up to {newest(min(minor, max(RELEASED)))}"


def version_warnings(option: str | None) -> list[str]:
    """Return warnings about the version in --kubernetes-version; raises ConfigError if it does not exist."""
    try:
        return [] if option is None else [f"--kubernetes-version: {each}" for each in check_version(option)]
    except InvalidValue as error:
        raise ConfigError(f"--kubernetes-version {option!r} {error.what}; {error.fix}") from None


ANY_VERSION = matching(
    r"v?1\.\d{1,3}(\.\d{1,3}([-+][-+.\w]+)?)?",
    "is not a version of Kubernetes",
    "write one such as v1.36.2, '1.36' or v1.36.2+rke2r1",
    "write it in quotes, such as '1.36'",
)
"""Annotates the version of any Kubernetes, of which only the minor version counts."""


def minor_of(version: object) -> int | None:
    """Return N of a version of Kubernetes 1.N, with or without a v and a patch."""
    found = re.match(r"v?1\.(\d{1,3})(\.|$)", str(version))
    return int(found[1]) if found else None
