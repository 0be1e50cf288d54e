"""Rules of the installer for publishing, feature sets and capabilities; the tables are in ``releases``.

Source: the OpenShift installer's validation (types/validation/installconfig.go: validateFeatureSet,
validateCustomFeatureGates, validateCapabilities).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from openstack_prep.base.errors import Mistake
from openstack_prep.base.fields import GO_BOOLEANS
from openstack_prep.openshift.install_config import releases
from openstack_prep.openshift.install_config.model import Capabilities, InstallConfigFields


def _publish(cluster: InstallConfigFields, release: int) -> Iterator[Mistake]:
    if cluster.publish == "Internal" and release in releases.ALWAYS_EXTERNAL:
        yield Mistake("publish", "Internal is not supported on this platform", "leave it out, and the floating IPs too")


def _feature_set(cluster: InstallConfigFields, release: int) -> Iterator[Mistake]:
    known = [name for name, span in releases.FEATURE_SETS.items() if release in span]
    if cluster.feature_set and known and cluster.feature_set not in known:
        what = f"{releases.name(release)} has no feature set {cluster.feature_set!r}"
        yield Mistake("feature_set", what, f"write {' or '.join(known)}, or leave it out")


def _feature_gates(cluster: InstallConfigFields, release: int) -> Iterator[Mistake]:
    if cluster.feature_gates and cluster.feature_set != releases.CUSTOM:
        what = f"belongs to feature_set {releases.CUSTOM}, not to {cluster.feature_set or 'none'}"
        yield Mistake("feature_gates", what, f"set feature_set: {releases.CUSTOM}, or leave it out")
    for index, each in enumerate(cluster.feature_gates):
        if each.partition("=")[2] not in GO_BOOLEANS:
            yield Mistake(f"feature_gates[{index}]", f"{each!r} is not NAME=true or NAME=false", "write OSStreams=true")


def _gates(cluster: InstallConfigFields, release: int) -> Iterator[Mistake]:
    """Yield values that require a feature gate of a release that has the field without previews."""
    gate, stream = releases.GATES["osImageStream"], cluster.os_image_stream
    if release not in gate.checked or stream not in gate.values:
        return
    if not releases.is_enabled(gate, release, cluster.feature_set, cluster.feature_gates):
        fix = f"add {gate.name}=true to feature_gates, or leave out one of os_image_stream and feature_set"
        yield Mistake("os_image_stream", f"{stream!r} requires the feature gate {gate.name}", fix)


def capabilities(
    cluster: InstallConfigFields, release: int, mandatory: Mapping[str, int] = releases.MANDATORY
) -> Iterator[Mistake]:
    """Yield capabilities that the release does not have, or that the cluster lacks; ``mandatory``: by first release."""
    chosen = cluster.capabilities
    known = [name for name, since in releases.CAPABILITIES.items() if since <= release]
    if not known or chosen is None or not (chosen.baseline or chosen.additional):
        return
    for name in chosen.additional:
        if name not in known:
            what = f"{releases.name(release)} has no capability {name!r}"
            yield Mistake("capabilities.additional", what, f"choose from {', '.join(known)}")
    if chosen.baseline is None:
        yield Mistake("capabilities.baseline", "is missing; additional requires it", "write None or vCurrent")
        return
    last = _last_set(chosen.baseline, release)
    if last is None:
        what = f"{releases.name(release)} has no capability set {chosen.baseline!r}"
        newest = min(release, releases.LAST_SET)
        yield Mistake("capabilities.baseline", what, f"write None, vCurrent or v4.11 to v4.{newest}")
        return
    yield from _missing(chosen, _enabled(chosen, last, release), release, mandatory)


def _last_set(baseline: str, release: int) -> int | None:
    """Return the release of a set, 0 for None; None if this release has no such set."""
    if baseline in ("None", "vCurrent"):
        return 0 if baseline == "None" else release
    found = re.fullmatch(r"v4\.(\d+)", baseline)
    number = int(found[1]) if found else 0
    return number if 11 <= number <= min(release, releases.LAST_SET) else None


def _enabled(chosen: Capabilities, last: int, release: int) -> set[str]:
    """Return the capabilities of a set, and the additional ones."""
    of_set = {name for name, since in releases.CAPABILITIES.items() if since <= last}
    if last:
        of_set |= {name for name in releases.IN_ALL_SETS if releases.CAPABILITIES[name] <= release}
    return of_set | set(chosen.additional)


def _missing(chosen: Capabilities, enabled: set[str], release: int, mandatory: Mapping[str, int]) -> Iterator[Mistake]:
    """Yield the capabilities that a cluster on its platform, or another capability, needs."""
    minimal = chosen.baseline == "None"
    needed = {name: "a cluster on this platform" for name, since in mandatory.items() if since <= release}
    if "marketplace" in enabled and release in (releases.MARKETPLACE if minimal else releases.MARKETPLACE_OF_SETS):
        needed[releases.MARKETPLACE_NEEDS] = "marketplace"
    if minimal and "baremetal" in enabled and release in releases.BAREMETAL_NEEDS_MACHINES:
        needed["MachineAPI"] = "baremetal"
    for name, by in needed.items():
        if name not in enabled:
            what = f"{name} is missing from {chosen.baseline}; {by} requires it"
            yield Mistake("capabilities.additional", what, f"add {name}")


FEATURE_RULES_WITHOUT_CLOUD = (_publish, _feature_set, _feature_gates, _gates)
FEATURE_RULES = (*FEATURE_RULES_WITHOUT_CLOUD, capabilities)
