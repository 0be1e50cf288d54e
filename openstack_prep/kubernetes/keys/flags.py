"""The flags of Kubernetes' components and of etcd by release, and why a component has none of some name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from openstack_prep.base.formats.foreign_text import shipped_yaml
from openstack_prep.base.suggestion import similar

OLDEST, NEWEST = 18, 36
"""The first and the last Kubernetes 1.N whose flags are listed."""
LISTED = ("kubelet", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "etcd")
"""The components with listed flags."""


@cache
def flags_of(component: str) -> Mapping[str, tuple[int, int]]:
    """Return the flags of a component, with the first and the last listed release that has each."""
    found: dict[str, tuple[int, int]] = {}
    for components, groups in shipped_yaml(__package__, "flags.yaml").items():
        for releases, names in groups.items() if component in components.split() else ():
            first, _, last = releases.partition("-")
            found |= dict.fromkeys(names.split(), (int(first or OLDEST), int(last or NEWEST)))
    return found


def flag_fault(component: str, name: str, minor: int | None) -> tuple[str, str] | None:
    """Return what is wrong with the name of a component's flag at Kubernetes 1.``minor``, and what to write.

    Components with an unknown flag do not start; etcd of RKE2 ignores it.  A flag that no listed release has is right
    only in a newer one.  ``minor`` is None for the newest release; nothing is known of those before the oldest one.
    """
    release = NEWEST if minor is None else minor
    flag = name if component == "etcd" else name.replace("_", "-")  # component-base, cli/flag/flags.go
    known = flags_of(component)
    if release < OLDEST or (flag not in known and release > NEWEST):
        return None
    if flag not in known:
        names = similar(flag, [each for each, (first, last) in known.items() if first <= release <= last])
        if names:
            return f"{component} has no flag {name}", f"did you mean {names[0]}?"
        is_flag = re.fullmatch("[a-z]+([-_][a-z0-9]+)+", name)  # anything else may be a secret
        return f"{component} has no flag {name if is_flag else 'of this name'}", "remove it"
    first, last = known[flag]
    if release < first:
        what = f"{component} has no flag {name} before Kubernetes 1.{first}, and this is 1.{release}"
        return what, "remove it, or choose a newer release"
    if last < min(release, NEWEST):
        return f"{component} of Kubernetes 1.{release} has no flag {name}", "remove it: earlier releases had it"
    return None
