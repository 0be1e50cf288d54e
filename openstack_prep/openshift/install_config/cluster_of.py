"""Parse an install-config into a cluster: the inverse of ``document``.

Source: the OpenShift installer decodes Go JSON made from the YAML (keys in any case; a number is accepted
as a string) and converts old names; fields that a release does not know are ignored.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.invalid import InvalidValue, shown
from openstack_prep.base.raw import Raw, Values
from openstack_prep.base.secret import Secret
from openstack_prep.openshift.install_config import releases
from openstack_prep.openshift.install_config.document import default_network_type
from openstack_prep.openshift.install_config.fields import FIELDS, JOINED, REFERENCE, Spelling
from openstack_prep.openshift.install_config.given import FREE_KEYS, InstallConfigValues
from openstack_prep.openshift.install_config.model import FileContents, InstallConfigFields
from openstack_prep.openshift.install_config.paths import value_of

CLOUD = "openstack"  # the entry of clouds.yaml that the installer uses by default
NETWORKS = ("machine_networks", "cluster_networks", "service_networks")
OLD_NETWORKS = {
    "machine_networks": "networking.machineCIDR",
    "cluster_networks": "networking.clusterNetworks",
    "service_networks": "networking.serviceCIDR",
}
"""Old names that Go decodes even if the list of networks replaces them."""
CONTENTS = ("pull_secret", "ssh_key", "additional_trust_bundle")
CONSTANTS = {
    "api_version": ("v1", "v1beta4", "v1beta3"),
    "compute.name": ("worker",),
}
TYPES = {"replicas": int, "size": int, "hostprefix": int, "hostsubnetlength": int, "fips": bool}  # others are strings
CIDR_FIX = "write one such as 10.0.0.0/16"
KINDS = {int: "a number", bool: "true or false"}
UNREADABLE = (AttributeError, KeyError, TypeError, ValueError)
"""What the forms of fields raise."""
HIDDEN = ("pull_secret", "proxy.")  # may contain passwords


def read(source: str | Path | Raw | InstallConfigValues, release: str) -> tuple[InstallConfigFields, FileContents]:
    """Return the cluster that an install-config declares for a release, from its path or its content.

    Old names are read, newer names are not.  Pools do not repeat the flavor of all machines, and the default network
    type is left out.  ``cloud`` is the entry that the installer uses: that of the file, of OS_CLOUD, or "openstack".
    Raises SpecError with everything that the installer cannot read, by file and line if known; secrets are not
    shown.
    """
    number = _minor(release)
    given = source if isinstance(source, InstallConfigValues) else InstallConfigValues(source)
    reading = _Reading(given, number)
    secret = reading.values.get("pull_secret")
    contents = FileContents(
        pull_secret=None if secret is None else Secret(secret),
        ssh_key=reading.values.get("ssh_key"),
        additional_trust_bundle=reading.values.get("additional_trust_bundle"),
    )
    return _without_repetition(reading.cluster(release)), contents


def _minor(release: str) -> int:
    try:
        return releases.minor(release)
    except InvalidValue as error:
        raise SpecError([error.at("release", release)]) from None


class _Reading:
    """The values of an install-config by their names in a spec, their paths, and the mistakes."""

    def __init__(self, given: InstallConfigValues, release: int) -> None:
        self._given = given
        self.values: Values = {}
        self._paths: dict[str, str] = {}
        self._later: dict[str, str] = {}
        self._mistakes = list(given.repeated)
        for field in FIELDS:
            newest = field.spelling(release, previews=True)
            if field.of and newest:  # others the release ignores
                self._paths[field.of] = newest.path
                newer = [each.name for each in field.spellings if self._is_too_new(each, release)]
                self._later |= {field.of: newer[0]} if newer else {}
                self._read(field.of, [each for each in field.spellings if each.since <= release])
        self._part_cluster_networks()
        self._check_networks()
        self._check_constants()

    def _is_too_new(self, spelling: Spelling, release: int) -> bool:
        return spelling.since > release and self._given.value(spelling.path) is not None

    def _read(self, of: str, spellings: list[Spelling]) -> None:
        """Take the value of the first spelling that has one."""
        for spelling in spellings:
            value = self._given.value(spelling.path)
            if _is_missing(of, spelling, value):
                continue
            self._paths[of] = spelling.path
            try:
                self.values[of] = spelling.given(_typed(spelling.name, value, scalar=of in CONTENTS))
            except UNREADABLE:
                fix = "write it in single quotes" if of in CONTENTS else f"see the documentation of {spelling.name}"
                self._wrong(of, _reason(of, spelling, value), fix)
            return

    def _wrong(self, of: str, what: str, fix: str) -> None:
        self._mistakes.append(Mistake(self._given.place(self._paths[of]), what, fix))

    def _part_cluster_networks(self) -> None:
        """Separate the networks of pods from the host prefix; a spec has one for all IPv4 networks."""
        networks = self.values.pop("cluster_networks", [])
        try:
            parted = [_cluster_network(network) for network in networks]
        except (AttributeError, KeyError, TypeError, ValueError):
            self._wrong(
                "cluster_networks", "contains an invalid network", "write {cidr: 10.128.0.0/14, hostPrefix: 23}"
            )
            return
        if parted:
            self.values["cluster_networks"] = [cidr for cidr, _ in parted]
            self._paths["host_prefix"] = f"{self._paths['cluster_networks']}[].hostPrefix"
            self.values |= next(({"host_prefix": length} for cidr, length in parted if ":" not in cidr), {})

    def _check_networks(self) -> None:
        """Refuse networks without a prefix length, which Go does not read; a spec takes them."""
        for of in (*NETWORKS, "ovn_join_subnet"):
            value = self.values.get(of, [])
            for each in value if isinstance(value, list) else [value]:
                if not re.fullmatch(r".+/\d+", str(each)):
                    self._wrong(of, f"{each!r} is not a network in CIDR notation", CIDR_FIX)
        for of, path in OLD_NETWORKS.items():
            old = self._given.value(path)
            networks = [value_of(each, "cidr") for each in old] if isinstance(old, list) else [old]
            for network in networks if self._paths.get(of) != path else []:
                if network is not None and not _is_network(network):
                    what = f"{shown(network)} is not a network in CIDR notation"
                    self._mistakes.append(Mistake(self._given.place(path), what, f"leave it out, or {CIDR_FIX}"))

    def _check_constants(self) -> None:
        self.values.pop("control_plane.name", None)  # the installer always takes master
        for of, known in CONSTANTS.items():
            values = self.values.pop(of, None)
            if values is None and of == "api_version":
                self._wrong(of, "is missing", f"write {known[0]}")
            elif values not in (None, *known):
                self._wrong(of, f"{values!r} is not accepted by the installer", f"write {known[0]}")
        pools = self._given.value("compute")
        if isinstance(pools, list) and len(pools) > 1:
            what = f"has {len(pools)} pools, but OpenStack supports only one, worker"
            self._mistakes.append(Mistake(self._given.place("compute"), what, "keep only that pool"))

    def cluster(self, release: str) -> InstallConfigFields:
        """Return the declared cluster; raises SpecError."""
        values = {"cloud": os.environ.get("OS_CLOUD") or CLOUD} | self.values | {"release": release}
        try:
            nested = _nested({of: value for of, value in values.items() if of not in CONTENTS})
            cluster: InstallConfigFields = _adapter().validate_json(json.dumps(nested))
        except ValidationError as error:
            for each in error.errors(include_url=False):
                found = self._mistake(each)
                if found.where not in {
                    other.where for other in self._mistakes
                }:  # one per place: further mistakes follow from it
                    self._mistakes.append(found)
        if self._mistakes:
            raise SpecError(self._mistakes) from None
        return cluster

    def _mistake(self, error: Raw) -> Mistake:
        """Return a finding of pydantic with the installer's field names."""
        steps = [str(each) for each in error["loc"]]
        depth = next((n for n in range(len(steps), 0, -1) if ".".join(steps[:n]) in self._paths), 0)
        of = ".".join(steps[:depth])
        place = self._given.place(self._paths[of])
        if error["type"].startswith("missing"):
            what = "is missing" if depth == len(steps) else f"lacks {steps[-1]}"
            newer = f": this release does not know {self._later[of]}" if of in self._later else ""
            return Mistake(place, what + newer, "add it")
        invalid = InvalidValue.of(error)
        return Mistake(place, f"{_shown(of, error['input'])} {invalid.what}", invalid.fix or "correct it")


# --- values -------------------------------------------------------------------------------


def _is_missing(of: str, spelling: Spelling, value: object) -> bool:
    """Whether Go reads a value as missing: null, or the zero value of the field's own type."""
    if value is None:
        return True
    if spelling.name.lower() in TYPES or of == "ovn_join_subnet":
        return False
    if _is_list(of, spelling):
        # zones of one empty text are the default (CLOUD machinepool.go, validateZones)
        return value == [] or (spelling.name == "zones" and value == [""])
    return value in ("", {}) and of not in NETWORKS


def _reason(of: str, spelling: Spelling, value: object) -> str:
    """Return why a value cannot be read: it, or an element of it, is of another kind."""
    kind = KINDS.get(TYPES.get(spelling.name.lower(), str), "a mapping" if spelling.form is REFERENCE else "text")
    if _is_list(of, spelling):
        for index, each in enumerate(value if isinstance(value, list) else ()):
            try:
                spelling.given(_typed(spelling.name, [each]))
            except UNREADABLE:
                what = "lacks a value, or has one of another kind"
                return f"[{index}] {what if isinstance(each, Mapping) else f'is {shown(each)}, not a mapping'}"
        kind = "a list"
    return f"{_shown(of, value)} is not {kind}"


def _is_list(of: str, spelling: Spelling) -> bool:
    return of in _lists() and not spelling.single and spelling.form is not JOINED


@cache
def _lists() -> frozenset[str]:
    """Return the names in a spec of all fields that are lists."""
    return frozenset(_lists_below(InstallConfigFields, ""))


def _lists_below(kind: type, prefix: str) -> Iterator[str]:
    for name, hint in get_type_hints(kind).items():
        for each in (hint, *get_args(hint)):
            if get_origin(each) is tuple:
                yield prefix + name
            elif is_dataclass(each) and isinstance(each, type):
                yield from _lists_below(each, f"{prefix}{name}.")


def _is_network(value: object) -> bool:
    try:
        ipaddress.ip_network(str(value), strict=False)
    except ValueError:
        return False
    return "/" in str(value)


def _typed(name: str, value: object, *, scalar: bool = False) -> object:
    """Return a value with strings where strings are expected; raises TypeError for other types."""
    if isinstance(value, Mapping | list) and scalar:
        raise TypeError(name)
    if isinstance(value, Mapping):
        of_field = name.lower() not in FREE_KEYS
        return {key: _typed(str(key) * of_field, each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_typed(name, each) for each in value]
    wanted = TYPES.get(name.lower(), str)
    if wanted is str and value is not None:
        return str(value).lower() if isinstance(value, bool) else str(value)
    if type(value) is not wanted:
        raise TypeError(name)
    return value


def _cluster_network(value: Raw) -> tuple[str, int]:
    """Return a network of pods and its host prefix."""
    members = {str(name).lower(): each for name, each in value.items()}
    network = ipaddress.ip_network(members["cidr"], strict=False)
    length = members.get("hostprefix")
    return members["cidr"], length or network.max_prefixlen - members["hostsubnetlength"]


def _nested(values: Raw) -> Values:
    """Return dotted names as nested mappings."""
    nested: Values = {}
    for of, value in values.items():
        *parents, last = of.split(".")
        inner = nested
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[last] = value
    return nested


def _without_repetition(cluster: InstallConfigFields) -> InstallConfigFields:
    """Return an equivalent cluster without repeated flavors and the default network type."""
    pools = {name: getattr(cluster, name) for name in ("control_plane", "compute")}
    same = {name: replace(pool, flavor=None) for name, pool in pools.items() if pool.flavor == cluster.machines.flavor}
    kind = None if cluster.network_type == default_network_type(cluster.release) else cluster.network_type
    return replace(cluster, network_type=kind, **same)


def _shown(of: str, value: object) -> str:
    return "the value" if of.startswith(HIDDEN) else shown(value)


@cache
def _adapter() -> Any:
    return TypeAdapter(InstallConfigFields)
