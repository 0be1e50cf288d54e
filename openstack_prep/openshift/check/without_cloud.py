"""Clusters of the platforms none and external, on machines of one's own, and those of the agent-based installer.

The installer asks no cloud for them.  Source: OpenShift installer at 5.0: pkg/types/validation/installconfig.go
(capabilities), pkg/asset/agent/installconfig.go and pkg/asset/agent/agentconfig (agent_config.go, agenthosts.go).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from openstack_prep.base import shell
from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.base.fields import is_address
from openstack_prep.base.formats.yaml_places import Document
from openstack_prep.base.invalid import shown
from openstack_prep.base.raw import Raw
from openstack_prep.openshift.install_config import InstallConfigFields, InstallConfigValues, releases
from openstack_prep.openshift.install_config.paths import EXTERNAL, OPENSTACK, WITHOUT_CLOUD, value_of
from openstack_prep.openshift.names.hosts import ROUTES
from openstack_prep.openshift.names.resolver import resolve
from openstack_prep.reports.codes import documented

AGENT_CONFIG = "agent-config.yaml"
CONTROLLER = "platform.external.cloudControllerManager"
AGENT_REFUSES = "openshift-install agent create image refuses it"
ROLES = ("master", "worker", "arbiter")
FIRST_WITH_ARBITER = 19
MOST_MASTERS = 5
MAC = r"[0-9a-f]{2}([:-][0-9a-f]{2}){5}"

Steps = tuple[str | int, ...]
Finding = tuple[Steps, str, str]
"""The place in a file, what is wrong there, and the fix."""


def mandatory(given: InstallConfigValues) -> Mapping[str, int] | None:
    """Return the capabilities that a cluster without a cloud needs, by first release; None for OpenStack."""
    if given.platform not in WITHOUT_CLOUD:
        return None
    needed = {"Ingress"}
    if given.platform == EXTERNAL:
        needed |= {"CloudCredential"} | ({"CloudControllerManager"} if given.value(CONTROLLER) == "External" else set())
    return {name: since for name, since in releases.MANDATORY.items() if name in needed}


# --- names --------------------------------------------------------------------------------


def names(path: Path, cluster: InstallConfigFields, hosts: Path) -> Iterator[Diagnostic]:
    """Yield names of a cluster whose addresses are the user's that do not resolve here."""
    domain = f"{cluster.cluster_name}.{cluster.base_domain.rstrip('.')}"
    wanted = {
        f"api.{domain}": (DiagnosticStatus.ERROR, "the installer waits for the API by that name, then fails"),
        f"api-int.{domain}": (DiagnosticStatus.WARNING, "the nodes join by that name; it may resolve only for them"),
        f"{ROUTES[0]}.apps.{domain}": (DiagnosticStatus.WARNING, "nobody can log in to the console from here"),
    }
    found = resolve(wanted, hosts=hosts)
    for name, (status, why) in wanted.items():
        if found[name].addresses:
            continue
        nothing = "no name server answers in time" if found[name].late else "no such name in DNS"
        yield Diagnostic(
            code="dns.timeout" if found[name].late else "dns.missing",
            where=f"names: {name}",
            what=f"nothing in {hosts}, and {nothing}",
            why=why,
            fix=f"openstack-prep names --install-config {shell.quote(str(path))} --api ADDR --ingress ADDR "
            f"--api-int ADDR --as hosts --write {shell.quote(str(hosts))}",
            status=status,
        )


# --- the agent-based installer ------------------------------------------------------------


def agent_based(given: InstallConfigValues, cluster: InstallConfigFields) -> Iterator[Diagnostic]:
    """Yield what the platform, and an agent-config.yaml in the same folder, demand of the file."""
    if given.platform == EXTERNAL:
        yield from _controller(given)
    path = given.path and given.path.with_name(AGENT_CONFIG)
    if path is None or not path.exists():
        return
    if given.platform not in WITHOUT_CLOUD:
        yield documented(
            code="agent-config.other-platform",
            where=f"platform.{OPENSTACK}",
            what=f"{path} is for the agent-based installer, which does not know this platform",
            status=DiagnosticStatus.WARNING,  # create cluster does not look at that file
        )
        return
    yield from _numbers(given)
    yield from _agent_config(path, releases.minor(cluster.release))


def _controller(given: InstallConfigValues) -> Iterator[Diagnostic]:
    kind, name = given.value(CONTROLLER), given.value("platform.external.platformName")
    if kind not in (None, "", "External"):
        fix = "write External, or leave it out"
        yield _refused(CONTROLLER, f"is {shown(kind)}", fix, "the bootstrap machine cannot create the Infrastructure")
    elif name == "oci" and kind != "External":
        yield _refused(CONTROLLER, "is missing; platformName oci requires it", "write External", AGENT_REFUSES)


def _replicas(given: InstallConfigValues, section: str) -> int:
    """Return the number of machines of a section; of the lists, all pools together."""
    node = value_of(given.data, section)
    if node is None and section == "arbiter":
        return 0
    pools = node if isinstance(node, list) and node else [node]
    numbers = [value_of(each, "replicas") for each in pools]
    return sum(3 if each is None else each for each in numbers if each is None or isinstance(each, int))


def _numbers(given: InstallConfigValues) -> Iterator[Diagnostic]:
    masters, arbiters, workers = (_replicas(given, each) for each in ("controlPlane", "arbiter", "compute"))
    where = "controlPlane.replicas"
    fenced = value_of(given.data, "controlPlane.fencing.credentials")
    if not 1 <= masters <= MOST_MASTERS:
        yield _refused(where, f"is {masters}", "write 1, 3, 4 or 5, or 2 with an arbiter", AGENT_REFUSES)
    elif masters == 2 and not arbiters and not fenced:
        what = "is 2, which requires an arbiter or fencing"
        yield _refused(where, what, "write 3, or add arbiter with replicas: 1", AGENT_REFUSES)
    elif masters == 1 and workers:
        what = f"{workers} beside a control plane of one machine, which has none"
        yield _refused("compute", what, "write replicas: 0 there, or 3 in controlPlane", AGENT_REFUSES)


def _agent_config(path: Path, release: int) -> Iterator[Diagnostic]:
    """Yield what the agent-based installer refuses in its own file."""
    document = Document(path, of_go=True)
    found = [(each.where, each.what, each.fix) for each in document.repeated]
    if isinstance(document.data, Mapping):
        refused = [*_of_cluster(document.data), *_of_hosts(document.data, release)]
        found += [(f"{document.place(steps)}: {_dotted(steps)}", what, fix) for steps, what, fix in refused]
    else:
        found.append((str(path), "is not a mapping", "write apiVersion, kind, metadata and rendezvousIP"))
    for where, what, fix in found:
        yield documented(code="agent-config.invalid", where=where, what=what, fix=fix)


def _of_cluster(data: Raw) -> Iterator[Finding]:
    if data.get("kind") != "AgentConfig":
        yield ("kind",), f"is {shown(data.get('kind'))}", "write AgentConfig"
    address = data.get("rendezvousIP")
    if address is not None and not is_address(str(address)):
        yield ("rendezvousIP",), f"{shown(address)} is not an IP address", "write that of one master"


def _of_hosts(data: Raw, release: int) -> Iterator[Finding]:
    hosts = [] if data.get("hosts") is None else data["hosts"]
    if not isinstance(hosts, list):
        yield ("hosts",), "is not a list", "write one element per host, or leave it out"
        return
    known = [role for role in ROLES if role != "arbiter" or release >= FIRST_WITH_ARBITER]
    for index, host in enumerate(hosts):
        role = value_of(host, "role")
        if role not in (None, "", *known):
            yield ("hosts", index, "role"), f"is {shown(role)}", f"write {' or '.join(known)}, or leave it out"
        elif role == "worker" and str(data.get("rendezvousIP") or "?") in str(value_of(host, "networkConfig")):
            yield ("hosts", index, "role"), "is worker, and the host has the rendezvousIP", "give that of a master"
    yield from _of_interfaces(hosts)


def _of_interfaces(hosts: list[Any]) -> Iterator[Finding]:
    seen: dict[str, Steps] = {}
    for index, host in enumerate(hosts):
        interfaces = value_of(host, "interfaces")
        if not isinstance(interfaces, list) or not interfaces:
            yield ("hosts", index, "interfaces"), "is missing", "write name and macAddress of one interface at least"
            continue
        for number, interface in enumerate(interfaces):
            here = ("hosts", index, "interfaces", number, "macAddress")
            mac = str(value_of(interface, "macAddress") or "").lower()
            if not re.fullmatch(MAC, mac):
                yield here, f"{shown(mac)} is not a MAC address" if mac else "is missing", "write that of its port"
            elif mac in seen:
                yield here, f"{mac} is that of {_dotted(seen[mac])}, too", "write the address of its own port"
            seen.setdefault(mac, here)


def _dotted(steps: Steps) -> str:
    return "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in steps).lstrip(".")


def _refused(where: str, what: str, fix: str, why: str) -> Diagnostic:
    return Diagnostic(code="install-config.refused", where=where, what=what, why=why, fix=fix)
