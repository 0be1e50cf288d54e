"""Clusters of the platforms none and external, on machines of one's own, and those of the agent-based installer.

The installer asks no cloud for them.  Source: OpenShift installer at 5.0: pkg/types/validation/installconfig.go
(capabilities) and, of 4.12 to 5.0, pkg/asset/agent/installconfig.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from openstack_prep.base import shell
from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.base.invalid import shown
from openstack_prep.openshift.check.agent_config import agent_config
from openstack_prep.openshift.install_config import InstallConfigFields, InstallConfigValues, releases
from openstack_prep.openshift.install_config.paths import EXTERNAL, NONE, OPENSTACK, WITHOUT_CLOUD, value_of
from openstack_prep.openshift.names.hosts import ROUTES
from openstack_prep.openshift.names.resolver import resolve
from openstack_prep.reports.codes import documented

AGENT_CONFIG = "agent-config.yaml"
CONTROLLER = "platform.external.cloudControllerManager"
AGENT_REFUSES = "openshift-install agent create image refuses it"
MASTERS = ((19, (1, 2, 3, 4, 5)), (18, (1, 3, 4, 5)), (0, (1, 3)))
"""Since each release, how many masters the agent-based installer takes (validateControlPlaneConfiguration)."""
FIRST_WITH_NODES = 14  # of platform none; 4.12 and 4.13 take one machine alone
WITHOUT_FEATURE_SETS = releases.Span(15, 22)


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
    release = releases.minor(cluster.release)
    yield from _machines(given, release)
    yield from agent_config(path, release, {each: _replicas(given, each) for each in ("controlPlane", "compute")})


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


def _machines(given: InstallConfigValues, release: int) -> Iterator[Diagnostic]:
    """Yield numbers of machines, and what goes with one alone (agent/installconfig.go)."""
    masters, arbiters, workers = (_replicas(given, each) for each in ("controlPlane", "arbiter", "compute"))
    where = "controlPlane.replicas"
    fenced = value_of(given.data, "controlPlane.fencing.credentials")
    known = next(numbers for since, numbers in MASTERS if release >= since)
    alone = masters == 1 and not workers
    if release < FIRST_WITH_NODES and given.platform == NONE and not alone:
        what = f"and compute: {masters} and {workers} machines; {releases.name(release)} takes one alone"
        yield _refused(where, what, "write replicas: 1, and 0 in compute", AGENT_REFUSES)
    elif masters not in known:
        numbers = ", ".join(str(each) for each in known if each != 2)
        fix = f"write {numbers}{' or 2 with an arbiter' if 2 in known else ''}"
        yield _refused(where, f"is {masters}", fix, AGENT_REFUSES)
    elif masters == 2 and not arbiters and not fenced:
        what = "is 2, which requires an arbiter or fencing"
        yield _refused(where, what, "write 3, or add arbiter with replicas: 1", AGENT_REFUSES)
    elif masters == 1 and workers:
        what = f"{workers} beside a control plane of one machine, which has none"
        yield _refused("compute", what, "write replicas: 0 there, or 3 in controlPlane", AGENT_REFUSES)
    network = given.value("networking.networkType")
    if alone and network not in (None, "", "OVNKubernetes"):
        what = f"is {shown(network)}, on a cluster of one machine"
        yield _refused("networking.networkType", what, "write OVNKubernetes", AGENT_REFUSES)
    chosen = given.value("featureSet")
    if chosen not in (None, "") and release in WITHOUT_FEATURE_SETS:
        yield _refused("featureSet", f"is {shown(chosen)}", "leave it out", AGENT_REFUSES)


def _refused(where: str, what: str, fix: str, why: str) -> Diagnostic:
    return Diagnostic(code="install-config.refused", where=where, what=what, why=why, fix=fix)
