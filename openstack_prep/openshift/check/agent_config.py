"""agent-config.yaml, judged as the agent-based installer judges it.

Source: OpenShift installer 4.12 to 5.0: pkg/types/agent/agent_config_type.go; pkg/asset/agent/agentconfig
(agent_config.go and agenthosts.go, which decode it with UnmarshalStrict of sigs.k8s.io/yaml); pkg/asset/agent/manifests
(nmstateconfig.go, staticnetworkconfig/generator.go); pkg/asset/agent/image/ignition.go (RetrieveRendezvousIP).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.base.fields import is_address
from openstack_prep.base.formats.yaml_places import Document, go_text
from openstack_prep.base.invalid import shown
from openstack_prep.base.raw import Raw, dotted
from openstack_prep.base.suggestion import suggest
from openstack_prep.openshift.install_config import releases
from openstack_prep.openshift.install_config.fields import OBJECT_META
from openstack_prep.openshift.install_config.paths import value_of
from openstack_prep.openshift.install_config.rules.names import LONGEST_DOMAIN, SUBDOMAIN
from openstack_prep.reports.codes import documented

Steps = tuple[str | int, ...]
Finding = tuple[Steps, str, str]
"""The place in the file, what is wrong there, and the fix."""

HOST, HINTS, BMC = "hosts", "hosts.rootDeviceHints", "hosts.BMC"
KINDS: Mapping[str, tuple[type, ...]] = {
    "text": (str, bool, int, float),  # sigs.k8s.io/yaml makes texts of the others
    "plain text": (str,),  # of an embedded struct, whose types it does not look up
    "boolean": (bool,),
    "number": (int,),
    "list": (list,),
    "list of texts": (list,),
    "mapping": (Mapping,),
    "value": (object,),
}
FIELDS = {
    **dict.fromkeys(("apiVersion", "kind"), "plain text"),
    **dict.fromkeys(("rendezvousIP", "bootArtifactsBaseURL"), "text"),
    **{"metadata": "mapping", "additionalNTPSources": "list of texts", "minimalISO": "boolean", HOST: "list"},
    **{f"metadata.{name}": "value" for name in ("name", *OBJECT_META)},
    **{f"{HOST}.{name}": "text" for name in ("hostname", "role")},
    **{HINTS: "mapping", BMC: "mapping", f"{HOST}.interfaces": "list", f"{HOST}.networkConfig": "mapping"},
    **{f"{HOST}.interfaces.{name}": "text" for name in ("name", "macAddress")},
    **{f"{HINTS}.{name}": "text" for name in ("deviceName", "hctl", "model", "vendor", "serialNumber")},
    **{f"{HINTS}.{name}": "text" for name in ("wwn", "wwnWithExtension", "wwnVendorExtension")},
    **{f"{HINTS}.minSizeGigabytes": "number", f"{HINTS}.rotational": "boolean"},
    **{f"{BMC}.{name}": "text" for name in ("username", "password", "address")},
    f"{BMC}.disableCertificateVerification": "boolean",
}
SINCE = {"bootArtifactsBaseURL": 14, BMC: 15, "minimalISO": 18}
"""The first release that knows a field, of those that 4.12 does not know."""
KNOWN = {path.lower(): path for path in FIELDS}  # encoding/json of Go matches keys in any case
WHOLE = ("hosts.networkconfig", "metadata")
"""Mappings whose content is not decoded, or judged by its names alone."""

VERSIONS = ("v1beta1", "v1alpha1")
ROLES = {"master": 0, "worker": 0, "arbiter": 20}  # openshift-docs#99808
MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}|[0-9a-f]{2}(-[0-9a-f]{2}){5}|[0-9a-f]{4}(\.[0-9a-f]{4}){2}")
URL = re.compile(  # net/url of Go: Parse, and IsAbs; escapes have two digits, and a host ends with a port or none
    r"[A-Za-z][A-Za-z0-9+.-]*:(//([^@/?#]*@)?(\[[0-9A-Fa-f:.]+\]|[^][\s:@/?#%<>\"]*)(:\d*)?(?=[/?#]|$)|(?!//))"
    r"([^\x00-\x1f\x7f%]|%[0-9A-Fa-f]{2})*"
)


def agent_config(path: Path, release: int, replicas: Mapping[str, int]) -> Iterator[Diagnostic]:
    """Yield what the agent-based installer refuses in its own file; ``replicas``: of controlPlane and compute.

    Raises SpecError if the file cannot be read, or has a key that may be a secret.
    """
    document = Document(path, of_go=True)
    document.refuse_bare_keys()
    for mistake in document.repeated:
        yield documented(code="agent-config.invalid", where=mistake.where, what=mistake.what, fix=mistake.fix)
    data = document.data
    if not isinstance(data, Mapping):
        fix = "write apiVersion, kind, metadata and rendezvousIP"
        yield documented(code="agent-config.invalid", where=str(path), what="is not a mapping", fix=fix)
        return
    found = [*_of_kinds(data, "", (), release)]
    if not found:  # the installer, too, decodes all before it judges
        found = [*_of_cluster(data), *_Hosts.of(data, release).findings(replicas)]
    for steps, what, fix in found:
        where = f"{document.place(steps)}: {dotted(steps)}"
        yield documented(code="agent-config.invalid", where=where, what=what, fix=fix)
    for steps, what, why, fix in () if found else _doubtful(data, release):
        where, warning = f"{document.place(steps)}: {dotted(steps)}", DiagnosticStatus.WARNING
        yield Diagnostic(code="agent-config.invalid", where=where, what=what, why=why, fix=fix, status=warning)


# --- what is decoded ----------------------------------------------------------------------


def _of_kinds(node: Raw, path: str, steps: Steps, release: int) -> Iterator[Finding]:
    """Yield unknown keys, and values of another kind; null is a value of every kind."""
    for name, value in node.items():
        here, inner = (*steps, name), f"{path}.{name}".lstrip(".").lower()
        known = KNOWN.get(inner)
        if known is None:
            names = [field.rpartition(".")[2] for field in FIELDS if field.rpartition(".")[0].lower() == path]
            yield here, "is unknown: the installer stops", suggest(str(name), names, "take it out")
        elif release < SINCE.get(known, 0):
            what = f"is unknown to {releases.name(release)}, came with {releases.name(SINCE[known])}"
            yield here, what, "leave it out"
        elif value is not None:
            yield from _of_kind(value, inner, here, release)


def _of_kind(value: Any, path: str, steps: Steps, release: int) -> Iterator[Finding]:
    kind = FIELDS[KNOWN[path]]
    fits = isinstance(value, KINDS[kind]) and not (kind == "number" and isinstance(value, bool))
    if not fits:
        yield steps, f"is not a {kind}", "correct it, or leave it out"
    elif kind == "list of texts":
        for index, each in enumerate(value):
            if isinstance(each, Mapping | list):
                yield (*steps, index), "is not a text", "write one value"
    elif kind == "list":
        for index, each in enumerate(value):
            if isinstance(each, Mapping):
                yield from _of_kinds(each, path, (*steps, index), release)
            elif each is not None:
                yield (*steps, index), "is not a mapping", "correct it, or leave it out"
    elif path == "metadata" or (kind == "mapping" and path not in WHOLE):
        yield from _of_kinds(value, path, steps, release)


# --- what is judged -----------------------------------------------------------------------


def _text(node: object, name: str) -> str:
    """Return the value of a field for a text, empty if it is missing."""
    value = value_of(node, name)
    return "" if value is None else str(go_text(value))


def _is_ip(text: str) -> bool:
    return is_address(text) and "%" not in text  # net.ParseIP takes no zone


def _of_cluster(data: Raw) -> Iterator[Finding]:
    if (version := _text(data, "apiVersion")) not in VERSIONS:
        yield ("apiVersion",), f"is {shown(version)}" if version else "is missing", f"write {VERSIONS[0]}"
    url = _text(data, "bootArtifactsBaseURL")
    if url and not URL.fullmatch(url):
        yield ("bootArtifactsBaseURL",), f"{shown(url)} is not a URL", "write one such as http://files.example.com"
    sources = value_of(data, "additionalNTPSources")
    for index, each in enumerate(sources if isinstance(sources, list) else ()):
        name = str(go_text(each)) if each is not None else ""
        if not _is_ip(name) and not _is_domain(name.removesuffix(".")):
            yield ("additionalNTPSources", index), f"{shown(name)} is neither an IP address nor a domain", "correct it"


def _is_domain(name: str) -> bool:
    return len(name) <= LONGEST_DOMAIN and bool(re.fullmatch(SUBDOMAIN, name))


def _doubtful(data: Raw, release: int) -> Iterator[tuple[Steps, str, str, str]]:
    """Yield what the installer takes, and why it does no good."""
    if (kind := _text(data, "kind")) != "AgentConfig":
        why = "the installer does not look at it, and other programs tell documents apart by it"
        yield ("kind",), f"is {shown(kind)}" if kind else "is missing", why, "write AgentConfig"
    hosts = _Hosts.of(data, release)
    masters = [host for host in hosts.hosts if _text(host, "role") in ("", "master")]
    addresses = [_addresses(master) for master in masters]
    if (
        hosts.rendezvous
        and masters
        and all(addresses)
        and all(hosts.rendezvous not in address for address in addresses)
    ):
        why = "the host with this address starts the installation, and all others wait for it"
        yield ("rendezvousIP",), "is no static address of a master in hosts", why, "write the address of one master"


@dataclass(frozen=True)
class _Hosts:
    """The hosts of the file, and the address of the one that starts the installation."""

    hosts: Sequence[Any]
    rendezvous: str
    release: int

    @classmethod
    def of(cls, data: Raw, release: int) -> _Hosts:
        hosts, address = value_of(data, "hosts"), _text(data, "rendezvousIP")
        return cls(hosts if isinstance(hosts, list) else [], _canonical(address), release)

    def findings(self, replicas: Mapping[str, int]) -> Iterator[Finding]:
        yield from self._rendezvous()
        for index, host in enumerate(self.hosts):
            yield from self._role(index, host)
            yield from self._hints(index, host)
        yield from self._interfaces()
        yield from self._numbers(replicas)

    def _rendezvous(self) -> Iterator[Finding]:
        if self.rendezvous:
            if not _is_ip(self.rendezvous):
                what = f"{shown(self.rendezvous)} is not an IP address"
                yield ("rendezvousIP",), what, "write that of one master"
            return
        first = next((each[0] for each in map(_addresses, self._by_priority()) if each), None)
        if first is None:
            what = "is missing, and no host has a static address in networkConfig"
            yield ("rendezvousIP",), what, "write the address of one master"
        elif not _is_ip(first):
            yield ("rendezvousIP",), f"is missing, and {shown(first)} of a host is not an IP address", "correct that"

    def _by_priority(self) -> Iterator[Any]:
        """Yield the hosts in the order in which the installer looks for an address (GetNodeZeroIP)."""
        for role in ("master", ""):
            yield from (each for each in self.hosts if _text(each, "role") == role)
        yield from self.hosts

    def _role(self, index: int, host: object) -> Iterator[Finding]:
        role, known = _text(host, "role"), [each for each, since in ROLES.items() if self.release >= since]
        here: Steps = ("hosts", index, "role")
        if role and role not in known:
            yield here, f"is {shown(role)}", f"write {' or '.join(known)}, or leave it out"
        elif self.rendezvous and (role == "worker" or (role != "master" and self.release < 15)):
            config = value_of(host, "networkConfig")
            named = self.rendezvous in (str(config) if self.release < 16 else _addresses(host))
            if named:
                what = f"is {role or 'missing'}, and the host has the rendezvousIP"
                yield here, what, "write master here, or give the address of a master"

    def _hints(self, index: int, host: object) -> Iterator[Finding]:
        hints, here = value_of(host, "rootDeviceHints"), ("hosts", index, "rootDeviceHints")
        for name in ("wwnWithExtension", "wwnVendorExtension"):
            if _text(hints, name):
                yield (*here, name), "is not supported here", "write wwn, or another hint"
        device = _text(hints, "deviceName")
        if device and self.release >= 14:
            below = device.removeprefix("/dev/")
            if below == device or "/" in below.removeprefix("disk/by-path/"):
                yield (*here, "deviceName"), f"is {shown(device)}", "write a path in /dev/ or /dev/disk/by-path/"

    def _interfaces(self) -> Iterator[Finding]:
        seen: dict[str, Steps] = {}
        for index, host in enumerate(self.hosts):
            here: Steps = ("hosts", index, "interfaces")
            interfaces = value_of(host, "interfaces")
            if not interfaces or not isinstance(interfaces, list):
                yield here, "is missing", "write name and macAddress of one interface at least"
                continue
            config = value_of(host, "networkConfig")
            names = [_text(interface, "name") for interface in interfaces]
            if config is not None and self.release >= 14 and len({*names}) < len(names):
                yield here, "have the same name twice", "write the name that networkConfig has for each"
            for number, each in enumerate(interfaces):
                yield from self._mac((*here, number, "macAddress"), _text(each, "macAddress").lower(), config, seen)

    def _mac(self, here: Steps, mac: str, config: object, seen: dict[str, Steps]) -> Iterator[Finding]:
        fix = "write that of its port"
        if not MAC.fullmatch(mac):
            yield here, f"{shown(mac)} is not a MAC address" if mac else "is missing", fix
            return
        plain = re.sub("[^0-9a-f]", "", mac)
        if int(plain[1], 16) % 2:
            yield here, f"{mac} is multicast, and no port has such an address", fix
        elif config is not None and ":" not in mac and self.release >= 18:
            yield here, f"{mac} beside a networkConfig is not written with colons", "write it as fa:16:3e:00:00:01"
        elif plain in seen:
            yield here, f"{mac} is that of {dotted(seen[plain])}, too", "write the address of its own port"
        seen.setdefault(plain, here)

    def _numbers(self, replicas: Mapping[str, int]) -> Iterator[Finding]:
        """Yield more hosts than machines (validateHostCount): those without a role become masters first."""
        if self.release < 13:
            return
        roles = [_text(each, "role") for each in self.hosts]
        free = min(roles.count(""), max(0, replicas["controlPlane"] - roles.count("master")))
        numbers = {
            "controlPlane": roles.count("master") + free,
            "compute": roles.count("worker") + roles.count("") - free,
        }
        for section, number in numbers.items():
            if number > replicas[section]:
                what = (
                    f"has {number} hosts for {section}, of which install-config.yaml has {replicas[section]} replicas"
                )
                yield ("hosts",), what, "raise replicas there, or leave hosts out"


def _canonical(address: str) -> str:
    return str(ipaddress.ip_address(address)) if _is_ip(address) else address


def _addresses(host: object) -> list[str]:
    """Return the static addresses of a host (agent/common.go, GetAllHostIPs)."""
    interfaces = value_of(value_of(host, "networkConfig"), "interfaces")
    lists = [
        value_of(value_of(interface, family), "address")
        for interface in (interfaces if isinstance(interfaces, list) else ())
        for family in ("ipv4", "ipv6")
    ]
    found = [_text(each, "ip") for addresses in lists if isinstance(addresses, list) for each in addresses]
    return [_canonical(each) for each in found if each]
