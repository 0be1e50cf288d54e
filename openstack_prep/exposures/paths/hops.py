"""What a request passes on its way to an exposure, judged by what was read: pure.

Source: Networking API v2.0, "Floating IPs", "Allowed address pairs", "Security groups".
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from openstack_prep.base import shell
from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.base.style import first_of
from openstack_prep.clusters import installer_names as naming
from openstack_prep.exposures import services
from openstack_prep.exposures.cluster_fields import ClusterFields
from openstack_prep.exposures.endpoint import Exposed, ExposedPort, PlacedExposure, Way
from openstack_prep.exposures.external_ips import manifests
from openstack_prep.exposures.requirements import IN_GROUPS, carriers
from openstack_prep.exposures.rules import ON_NODES
from openstack_prep.exposures.service_host.files import API
from openstack_prep.exposures.virtualization import VisibleNodes, diagnose
from openstack_prep.exposures.virtualization import manifests as machines
from openstack_prep.exposures.virtualization.manifests import served
from openstack_prep.kubernetes.services import ServiceRecord
from openstack_prep.neutron.rules import (
    DIVERTED,
    UNNOTICED,
    WHY,
    Block,
    Traffic,
    allows,
    answered,
    diverted,
    filtered_again,
    only_around,
    unnoticed,
    without_diverting,
)
from openstack_prep.openshift.names.resolver import ResolvedName
from openstack_prep.openshift.verify.chain import ok, unknown
from openstack_prep.openshift.verify.outside import without_forwardings
from openstack_prep.reports.codes import documented
from openstack_prep.resources.dns.recordset import Recordset
from openstack_prep.resources.dns.recordsets import ACTIVE, ERROR, RecordsetRecord
from openstack_prep.resources.lists.neutron_records import (
    INTERFACES,
    FloatingIPRecord,
    GroupRecord,
    PortRecord,
    RouterRecord,
)

# --- recordset --------------------------------------------------------------------------------


RECORDSET = "recordset"


@dataclass(frozen=True)
class VisibleRecordset:
    """A recordset that the spec declares, and the one in Designate; None if it does not exist."""

    declared: Recordset
    record: RecordsetRecord | None


def recordset_hops(placed: PlacedExposure, seen: Sequence[VisibleRecordset], apply: str) -> Iterator[Diagnostic]:
    """Yield whether Designate leads the names of an exposure to its address; ``apply`` is the command for repairs.

    A recordset of the other IP version says nothing about this address.
    """
    kind = "AAAA" if placed.outside and ipaddress.ip_address(placed.outside).version == 6 else "A"
    for name in placed.exposure.names:
        for recordset in seen:
            if recordset.declared.name == name and recordset.declared.type == kind:
                yield _judged(placed, recordset.declared, recordset.record, apply)


def _judged(placed: PlacedExposure, declared: Recordset, record: RecordsetRecord | None, apply: str) -> Diagnostic:
    where = f"in Designate's zone {declared.zone}"
    if record is None:
        what = f"{declared.name} has no record of type {declared.type} {where}"
        return Diagnostic(code="recordset.missing", where=RECORDSET, what=what, fix=apply)
    found = f"{declared.name} is {', '.join(sorted(record.records))} {where}"
    if placed.outside and placed.outside not in record.records:
        what = f"{found}, not {placed.outside}"
        return Diagnostic(code="recordset.differs", where=RECORDSET, what=what, fix=apply)
    if record.status == ERROR:
        what = f"{found}, but its name servers did not take it"
        return Diagnostic(code="recordset.failed", where=RECORDSET, what=what, fix=apply)
    if record.status != ACTIVE:
        return unknown("recordset.pending", RECORDSET, f"{found}, but not yet on its name servers", "try again")
    return ok(RECORDSET, found)


# --- hops -------------------------------------------------------------------------------------


NAME, FLOATING_IP, ADDRESS, PAIRS, GROUPS = "name", "floating IP", "address", "address pairs", "security groups"
ROUTER, NODES, FILES = "router", "nodes", "files"


@dataclass(frozen=True, kw_only=True)
class View:
    """What was read of one cluster; None stands for what is not in this cloud, or may not be read."""

    spec: str
    """The spec's file and options, for commands."""
    cloud: str = ""
    """Entry of clouds.yaml for commands."""
    cluster: ClusterFields
    nodes: Sequence[PortRecord] | None = None
    """Ports of its nodes; None: they are no servers of this cloud."""
    on_networks: Sequence[PortRecord] = ()
    """All ports of the project on the nodes' networks."""
    declared_ports: Collection[str] = ()
    """Names of the ports that the spec declares."""
    groups: Mapping[str, GroupRecord] = field(default_factory=dict)
    """Security groups of these ports, by id, with their rules."""
    floating_ips: Sequence[FloatingIPRecord] = ()
    """All of the project."""
    routers: Mapping[str, RouterRecord] = field(default_factory=dict)
    """Those that serve these floating IPs or the nodes' networks, by id, as far as they are visible."""
    around_nodes: VisibleNodes | None = None
    """Networks of the nodes, for virtual machines on bridges; None: nothing is known of them."""
    answers: Mapping[str, ResolvedName] = field(default_factory=dict)
    """What the resolver says of each name."""
    recordsets: Sequence[VisibleRecordset] = ()
    """The recordsets of the spec with names of exposures."""
    file_drift: tuple[str, ...] | None = ()
    """How the cluster's files differ from the spec; None if no files exist."""
    placed: Sequence[PlacedExposure] = ()
    """All exposures of the cluster."""
    unclaimed: frozenset[str] = frozenset()
    """Those with a pool that has not recorded their claims yet."""
    running: Running | None = None
    """The running cluster; None: it was not read."""

    @property
    def apply(self) -> str:
        """The command that makes what the spec declares."""
        return f"openstack-prep apply {self.spec}"

    def openstack(self, *words: str) -> str:
        """Return a line for the shell: the client's command, with the entry of clouds.yaml in use."""
        return shell.join(["openstack", "--os-cloud", self.cloud, *words])


def hops(placed: PlacedExposure, view: View) -> Iterator[Diagnostic]:
    """Yield what a request to an exposure passes, from outside to inside."""
    yield from _names(placed, view)
    yield from recordset_hops(placed, view.recordsets, view.apply)
    if placed.exposure.floating_ip:
        yield _floating_ip(placed, view)
        yield from _router(placed, view)
    elif placed.address and ":" in placed.address and _is_public(placed):
        yield from _router_to(placed.address, view)
    yield _reserved(placed, view)
    if view.nodes is not None:
        yield from _on_nodes(placed, view, view.nodes)
    if placed.exposure.how == "bridge" and view.around_nodes is not None:
        yield from _bridge(placed, view, view.around_nodes)
    yield _files(view)
    if view.running is not None:
        yield from cluster_hops(placed, view.running, view.placed, view.cluster.directory)


# --- outside --------------------------------------------------------------------------------


def _names(placed: PlacedExposure, view: View) -> Iterator[Diagnostic]:
    for name in placed.exposure.names:
        host = name_to_resolve(placed, name)
        answer = view.answers.get(host)
        if answer is None:
            continue
        fix = f"let {name} lead to {placed.outside or 'the address'}: the files in {view.cluster.directory} say so"
        if answer.late:
            yield unknown("dns.timeout", NAME, f"{answer.source} did not resolve {host} in time", "try again")
        elif not answer.addresses:
            below = f", a name below {name}," if host != name else ""
            why = "clients that use this name cannot connect"
            yield Diagnostic(code="dns.missing", where=NAME, what=f"{host}{below} has no address", why=why, fix=fix)
        elif placed.outside and placed.outside not in answer.addresses:
            what = f"{host} is {', '.join(answer.addresses)} ({answer.source}), not {placed.outside}"
            yield Diagnostic(code="dns.wrong-address", where=NAME, what=what, fix=fix)
        else:
            yield ok(NAME, f"{host} is {', '.join(answer.addresses)} ({answer.source})")


def name_to_resolve(placed: PlacedExposure, name: str) -> str:
    """Return a name that a resolver can be asked for: of a wildcard, one below it."""
    return name.replace("*.", f"{placed.exposure.name}.", 1)


def _record_of(placed: PlacedExposure, view: View) -> FloatingIPRecord | None:
    """Return the floating IP of an exposure."""
    return next(
        (floating_ip for floating_ip in view.floating_ips if floating_ip.address == placed.public_address), None
    )


def _router(placed: PlacedExposure, view: View) -> Iterator[Diagnostic]:
    """Yield whether the router is switched off that serves the floating IP; Neutron names it once one does."""
    found = _record_of(placed, view)
    router = view.routers.get(found.router_id) if found and found.router_id else None
    if router and router.admin_state_up is False:
        yield _router_disabled(router, placed.public_address, view)


def _is_public(placed: PlacedExposure) -> bool:
    networks = map(ipaddress.ip_network, placed.exposure.allowed_cidrs)
    return any(network.version == 6 and not network.is_private for network in networks)


def _router_to(address: str, view: View) -> Iterator[Diagnostic]:
    """Yield what keeps the project's routers from leading to an address of IPv6, which needs no floating IP.

    Without a router's interface in the network, the provider's router may lead there, which OpenStack does not show.
    """
    interfaces = [port for port in view.on_networks if port.device_owner in INTERFACES]
    subnets = {
        fixed_ip.subnet_id
        for port in view.on_networks
        for fixed_ip in port.fixed_ips
        if ipaddress.ip_address(fixed_ip.ip_address) == ipaddress.ip_address(address)
    }
    ids = {port.device_id for port in interfaces if subnets & port.subnet_ids}
    joined = [router for router_id, router in view.routers.items() if router_id in ids]
    leading = [router for router in joined if router.gateway_network_id or router.routes]
    if interfaces and subnets and not ids:
        what = f"no router has an interface in the subnet of {address}"
        fix = view.openstack("router", "add", "subnet", interfaces[0].device_id, *sorted(subnets))
        yield Diagnostic(code="router.missing", where=ROUTER, what=what, fix=fix)
    elif joined and not leading:
        what = f"{joined[0].name or joined[0].id}, which leads to {address}, has no external gateway"
        yield documented(code="router.no-gateway", where=ROUTER, what=what, fix=_set_gateway(joined[0], view))
    elif leading and all(router.admin_state_up is False for router in leading):
        yield _router_disabled(leading[0], address, view)


def _set_gateway(router: RouterRecord, view: View) -> str:
    """Return how to give a router a gateway: on the network of the project's floating IPs, if there is only one."""
    networks = {floating_ip.network_id for floating_ip in view.floating_ips}
    if len(networks) == 1:
        return view.openstack("router", "set", "--external-gateway", *networks, router.id)
    return f"set the external gateway of router {router.id}"


def _router_disabled(router: RouterRecord, address: str | None, view: View) -> Diagnostic:
    what = f"{router.name or router.id}, which leads to {address}, is switched off"
    fix = view.openstack("router", "set", "--enable", router.id)
    return Diagnostic(code="router.disabled", where=ROUTER, what=what, fix=fix)


def _floating_ip(placed: PlacedExposure, view: View) -> Diagnostic:
    exposure, address = placed.exposure, placed.public_address
    found = _record_of(placed, view)
    if address is None or found is None:
        what = f"{exposure.floating_ip} does not exist yet"
        return Diagnostic(code="floating-ip.missing", where=FLOATING_IP, what=what, fix=view.apply)
    internal = placed.address
    if internal and all(found.forwards(port.protocol, port.port, internal) for port in exposure.ports):
        return ok(FLOATING_IP, f"{address} forwards {', '.join(map(str, exposure.ports))} to {internal}")
    if not found.port_id:
        what = f"{address} is attached to no port"
        fix = view.apply if exposure.pool else _attach(exposure, address, view)
        if found.port_forwardings:  # Neutron 29.0.0, services/portforwarding/pf_plugin.py, _check_floatingip_request
            what += f", and its port forwardings lead elsewhere: {'; '.join(map(str, found.port_forwardings))}"
            taken = {found: found.port_forwardings}
            delete = without_forwardings(view.openstack(), taken, [view.apply] if exposure.pool else [])
            fix = delete if exposure.pool else f"{delete}  # then {fix}"
        return Diagnostic(code="floating-ip.detached", where=FLOATING_IP, what=what, fix=fix)
    if placed.address and found.fixed_ip_address != placed.address:
        what = f"{address} leads to {found.fixed_ip_address} of port {found.port_id}, not to {placed.address}"
        fix = f"{view.openstack('floating', 'ip', 'unset', '--port', address)} && {view.apply}  # or name another one"
        return Diagnostic(code="floating-ip.in-use", where=FLOATING_IP, what=what, fix=fix)
    return ok(FLOATING_IP, f"{address} leads to {found.fixed_ip_address}")


def _attach(exposure: Exposed, address: str, view: View) -> str:
    """Return how to attach a floating IP whose exposure has no pool: OpenShift's own ports are post-ipi's."""
    if infra_id := _infra_id(view):
        service = "--api-ip" if _is_api(exposure) else "--ingress-ip"
        cluster = ["--os-cloud", view.cloud, "--infra-id", infra_id]
        return shell.join(["openstack-prep", "post-ipi", *cluster, service, address])
    fix = f"declare floating_ip {exposure.floating_ip} and its port in floating_ip_attachments, then {view.apply}"
    return f"{fix}; for OpenShift: openstack-prep post-ipi"


def _infra_id(view: View) -> str | None:
    return view.cluster.nodes.infra_id if view.cluster.nodes else None


def _is_api(exposure: Exposed) -> bool:
    return any(port.port == API for port in exposure.ports)


def _reserved(placed: PlacedExposure, view: View) -> Diagnostic:
    if placed.address and placed.exposure.name in view.unclaimed:
        what = f"{placed.address} is not reserved for {placed.exposure.name} yet"
        return Diagnostic(code="exposure.not-reserved", where=ADDRESS, what=what, fix=view.apply)
    if placed.address:
        reserved = f"is reserved for {placed.exposure.name}"
        return ok(
            ADDRESS, f"{placed.address} {reserved if placed.exposure.pool else 'is declared, and no pool has it'}"
        )
    if placed.exposure.how in ("node-port", "floating-ip"):
        return ok(ADDRESS, "none is reserved: requests go to the nodes, or to the floating IP")
    what = f"none is reserved for {placed.exposure.name} yet"
    return Diagnostic(code="exposure.not-reserved", where=ADDRESS, what=what, fix=view.apply)


# --- nodes ----------------------------------------------------------------------------------


def _on_nodes(placed: PlacedExposure, view: View, nodes: Sequence[PortRecord]) -> Iterator[Diagnostic]:
    if not nodes:
        yield Diagnostic(code="machine.missing", where=NODES, what="the cluster has no nodes yet", fix=view.apply)
        return
    if off := [port for port in nodes if port.admin_state_up is False]:
        what = f"{_named(off)} {'is' if len(off) == 1 else 'are'} switched off"
        fix = " && ".join(view.openstack("port", "set", "--enable", port.id) for port in off)
        yield Diagnostic(code="port.down", where=NODES, what=what, fix=fix)
    secured = [port for port in nodes if port.port_security_enabled]
    if placed.address and placed.exposure.how in ON_NODES:
        names = carriers(view.cluster, placed.exposure, placed.address, [port.name for port in nodes])
        yield _pairs(placed.address, [port for port in nodes if names is None or port.name in names], view)
    if placed.exposure.how in IN_GROUPS:
        for each in placed.exposure.ports:
            yield from _groups(placed.exposure, each, placed.address, _behind(placed, secured, view), view)


def _behind(placed: PlacedExposure, secured: Sequence[PortRecord], view: View) -> Sequence[PortRecord]:
    """Return the ports that may send from the address that a floating IP leads to; all if OpenStack shows none.

    Of OpenShift, whose machines all may send from both addresses, it is the masters' for the API, or else the workers'.
    """
    if placed.exposure.how == "floating-ip" and (infra_id := _infra_id(view)):
        role = "master" if _is_api(placed.exposure) else "worker"
        return [port for port in secured if (naming.role(port.name, infra_id) or "worker") == role] or secured
    floating_ip = _record_of(placed, view) if placed.exposure.how == "floating-ip" else None
    if floating_ip is None or floating_ip.fixed_ip_address is None:
        return secured
    address = ipaddress.ip_network(floating_ip.fixed_ip_address)
    return [port for port in secured if allows(port, address)] or secured


def _bridge(placed: PlacedExposure, view: View, around: VisibleNodes) -> Iterator[Diagnostic]:
    """Yield whether frames of a virtual machine pass OpenStack, once it has its addresses."""
    settings = view.cluster.virtualization
    if settings is None or placed.address is None or placed.mac is None:
        return
    if not around.servers:
        what, fix = "no server has the ports of the nodes yet", "create the servers with these ports"
        yield Diagnostic(code="machine.missing", where=NODES, what=what, fix=fix)
        return
    found = list(diagnose(settings, [placed], replace(around, apply=view.apply)))
    yield from found or [ok(PAIRS, f"{placed.address} with {placed.mac} is allowed on the nodes with the bridge")]


def _pairs(address: str, nodes: Sequence[PortRecord], view: View) -> Diagnostic:
    secured = [port for port in nodes if port.port_security_enabled]
    missing = [port for port in secured if not allows(port, ipaddress.ip_network(address))]
    elsewhere = diverted(address, secured, view.on_networks)
    around = only_around(address, view.on_networks)
    clean = [view.openstack(*without_diverting(port, address)) for port in elsewhere]
    if missing:
        what = f"{address} is not allowed on {_named(missing)}"
        why = "Neutron drops what these nodes send from that address"
    elif around == [] and nodes:
        what, why = f"a port reserves {address}, and no port has a pair for it: port security is off on the nodes", WHY
        clean = _filter_again(nodes, view)
    elif around:
        what, why = f"{address} is allowed only as part of {', '.join(around)}", WHY
    elif elsewhere:
        what, why = f"{address} is also allowed with another MAC address on {_named(elsewhere)}", DIVERTED
    elif unfiltered := unnoticed(address, nodes, view.on_networks):
        what, why = f"port security is off on {_named(unfiltered)}", UNNOTICED
        fix = " && ".join([*_filter_again(unfiltered, view), view.apply])
        return Diagnostic(
            code="pairs.missing", where=PAIRS, what=what, why=why, fix=fix, status=DiagnosticStatus.WARNING
        )
    else:
        return ok(PAIRS, f"{address} is allowed on {_count(secured)}")
    fix = " && ".join([*clean, *([view.apply] if missing or not elsewhere else [])])
    return Diagnostic(code="pairs.missing", where=PAIRS, what=what, why=why, fix=fix)


def _filter_again(ports: Iterable[PortRecord], view: View) -> list[str]:
    """Return the commands that enable port security together with the group that lets requests in."""
    return [view.openstack(*filtered_again(port, view.cluster.open_in)) for port in ports]


def _groups(
    exposure: Exposed, port: ExposedPort, address: str | None, secured: Sequence[PortRecord], view: View
) -> Iterator[Diagnostic]:
    """Yield whether requests to a port reach the nodes: with a floating IP one of them, and otherwise all.

    All machines of OpenShift may have its virtual addresses, but its API is on masters, and its ingress on workers.
    """
    number = port.node_port if exposure.how == "node-port" else port.port
    if number is None:
        fix = "set node_port"
        yield unknown("exposure.node-port-unknown", GROUPS, f"the node port of {port} is chosen by Kubernetes", fix)
        return
    version = ipaddress.ip_address(address).version if address else 4
    traffic = Traffic(direction="ingress", version=version, protocol=port.protocol, number=number)
    networks = [ipaddress.ip_network(allowed_cidr) for allowed_cidr in exposure.allowed_cidrs]
    wanted = [network for network in networks if network.version == version]
    shown = f"{number}/{port.protocol}"
    blocked: list[PortRecord] = []
    unread: list[PortRecord] = []
    for node in secured:
        found = answered(
            [view.groups[security_group] for security_group in node.security_groups if security_group in view.groups],
            traffic,
        )
        if found.everywhere or (wanted and all(map(found.includes, wanted))):
            continue
        (blocked if set(node.security_groups) <= view.groups.keys() else unread).append(node)
    source = ", ".join(map(str, wanted)) or "everywhere"
    if blocked and (exposure.how != "floating-ip" or _infra_id(view) or len(blocked) == len(secured)):
        what = f"{shown} from {source} does not reach {_named(blocked)}"
        missing = ["--ingress", "--ethertype", f"IPv{version}", "--protocol", port.protocol, "--dst-port", str(number)]
        fix = _open(view, blocked, missing, wanted)
        yield Diagnostic(code="security-group.blocks", where=GROUPS, what=what, fix=fix)
    elif unread:
        what = f"{shown} to {_named(unread)}: these credentials may not read a group that decides"
        yield unknown("security-group.unreadable", GROUPS, what)
    else:
        some = f"{len(secured) - len(blocked)} of " if blocked else ""
        yield ok(GROUPS, f"{shown} from {source} reaches {some}{_count(secured)}")


def _open(view: View, blocked: Sequence[PortRecord], rule: Sequence[str], remotes: Sequence[Block]) -> str:
    """Return how to let requests in to ports: by the spec, where it can, or else by rules in the ports' own groups."""
    open_in = view.cluster.open_in
    groups = {port.id: _group_of(view, port, blocked) for port in blocked}
    if open_in is None:
        name = next((group.name for group in groups.values() if group), "a security group of the nodes")
        return f"set open_in: {name} of cluster {view.cluster.name} in exposed_clusters, then {view.apply}"
    named = {group.id for group in view.groups.values() if group.name == open_in}
    others = [port for port in blocked if not (named & {*port.security_groups} or port.name in view.declared_ports)]
    if not others:
        return view.apply
    sources = [["--remote-ip", str(remote)] for remote in remotes] or [[]]
    commands = [
        view.openstack("security", "group", "rule", "create", *rule, *source, group.id)
        for port in others
        for source in sources
        if (group := groups[port.id])
    ]
    bare = [port.id for port in others if groups[port.id] is None]
    commands += [view.openstack("port", "set", "--security-group", open_in, each) for each in bare]
    return " && ".join([*dict.fromkeys(commands), *([view.apply] if bare else [])])


def _group_of(view: View, port: PortRecord, ports: Sequence[PortRecord]) -> GroupRecord | None:
    """Return the group of a port that is best opened: of its project, and if possible not the default one."""
    groups = (view.groups[each] for each in port.security_groups if each in view.groups)

    def rank(group: GroupRecord) -> tuple[bool, bool, bool]:
        of_all = all(group.id in each.security_groups for each in ports)
        return group.project_id != port.project_id, group.name == "default", not of_all

    return min(groups, key=rank, default=None)


# --- the cluster ----------------------------------------------------------------------------


def _files(view: View) -> Diagnostic:
    if view.file_drift is None:
        what = "the files for the cluster are not written yet"
        return Diagnostic(code="exposure.files-differ", where=FILES, what=what, fix=view.apply)
    if view.file_drift:
        what = "; ".join(view.file_drift)
        return Diagnostic(code="exposure.files-differ", where=FILES, what=what, fix=view.apply)
    unseen = "" if view.running else "; whether the cluster has them is not visible to OpenStack"
    return ok(FILES, f"as the spec declares{unseen}")


def _named(ports: Sequence[PortRecord]) -> str:
    return first_of(sorted(port.name or port.id for port in ports))


def _count(ports: Sequence[PortRecord]) -> str:
    return f"{len(ports)} port{'' if len(ports) == 1 else 's'}"


# --- running cluster -------------------------------------------------------------------------


SERVICE = "Service"


@dataclass(frozen=True, kw_only=True)
class Running:
    """The Services of a running cluster, and how commands reach it."""

    services: Mapping[str, ServiceRecord]
    """By namespace/name."""
    kubectl: str = "kubectl"
    """The beginning of commands."""
    cluster: str | None = None
    """Its name in the spec; None: the only exposed cluster."""


def cluster_hops(
    placed: PlacedExposure, running: Running, all_placed: Sequence[PlacedExposure], directory: str
) -> Iterator[Diagnostic]:
    """Yield whether the cluster has the Service of an exposure, with the address; nothing if no Service leads there.

    ``all_placed`` are all exposures of the cluster, ``directory`` is the folder of its files.
    """
    if name := service_of(placed):
        same = [exposure for exposure in all_placed if _shares_service(exposure, placed)]
        yield _ServiceHop(placed=placed, name=name, running=running, same=same, directory=directory).judge()


def service_of(placed: PlacedExposure) -> str | None:
    """Return the namespace and name of the Service that leads to the target of an exposure."""
    target = placed.exposure.target
    if target.virtual_machine:
        return f"{target.namespace}/{placed.exposure.name}" if served([placed]) else None
    return target.service


def _shares_service(one: PlacedExposure, other: PlacedExposure) -> bool:
    return (one.exposure.how, one.exposure.target.service) == (other.exposure.how, other.exposure.target.service)


@dataclass(frozen=True, kw_only=True)
class _ServiceHop:
    """The Service of one exposure; ``same`` are the exposures that lead to the same one."""

    placed: PlacedExposure
    name: str
    running: Running
    same: Sequence[PlacedExposure]
    directory: str

    def judge(self) -> Diagnostic:
        found = self.running.services.get(self.name)
        if found is None:
            return self._missing()
        if self._how == "floating-ip":  # leads to a port of OpenStack, whatever the Service is
            return ok(SERVICE, f"{self.name} is of type {found.type}")
        return self._type(found) or self._ports(found) or self._address(found)

    @property
    def _how(self) -> Way:
        return self.placed.exposure.how

    # --- what is wrong ------------------------------------------------------------------------

    def _missing(self) -> Diagnostic:
        fix = f"create it, then {self._change}" if self._is_foreign else self._change
        if self._how == "floating-ip":
            fix = f"create it, or correct the target of exposure {self.placed.exposure.name}"
        return self._diagnostic("kubernetes-service.missing", f"{self.name} does not exist", fix)

    def _type(self, found: ServiceRecord) -> Diagnostic | None:
        types = {"node-port": ("NodePort", "LoadBalancer"), "external-ip": (found.type,)}
        wanted = types.get(self._how, ("LoadBalancer",))
        if found.type in wanted:
            return None
        return self._diagnostic(
            "kubernetes-service.wrong-type", f"{self.name} is of type {found.type}, not {wanted[0]}", self._change
        )

    def _ports(self, found: ServiceRecord) -> Diagnostic | None:
        """Return what is wrong with the ports; node ports matter only if requests go to the nodes."""
        exposure = self.placed.exposure
        lacking = [str(port) for port in exposure.ports if port.key not in found.ports]
        if self._how == "node-port":
            given = (port for port in exposure.ports if port.node_port and port.key in found.ports)
            differing = (port for port in given if found.ports[port.key] != port.node_port)
            lacking += [f"node port {port.node_port} for {port}" for port in differing]
        if not lacking:
            return None
        what = f"{self.name} has {self._shown_ports(found) or 'no ports'}, but not {', '.join(lacking)}"
        foreign = f"correct the ports of the Service, or those of exposure {exposure.name}"
        return self._diagnostic("kubernetes-service.wrong-port", what, foreign if self._is_foreign else self._change)

    def _address(self, found: ServiceRecord) -> Diagnostic:
        address, shown = self.placed.address, f"{self.name} is of type {found.type}"
        if self._how == "node-port":
            return ok(SERVICE, f"{shown} with {self._shown_ports(found)}")
        if address is None:  # which is a hop of its own
            return ok(SERVICE, shown)
        external = self._how == "external-ip"
        has = found.external_ips if external else found.given
        if address in has:
            return ok(SERVICE, f"{shown} and {'has' if external else 'was given'} {address}")
        words = ", ".join(has) or "no address"
        if external:
            return self._diagnostic(
                "kubernetes-service.wrong-address",
                f"{self.name} has {words}, not {address}",
                self._change_external(has),
            )
        if address not in found.requested:
            what = f"{self.name} was given {words}, and does not request {address}"
            return self._diagnostic("kubernetes-service.wrong-address", what, self._change)
        why = f"{self._how} does not run, has no pool with the address, or has given it to another Service"
        namespace, _, bare = self.name.partition("/")
        fix = f"{self.running.kubectl} -n {shell.quote(namespace)} describe service {shell.quote(bare)}"
        return self._diagnostic(
            "kubernetes-service.no-address", f"{self.name} requests {address}, and was given {words}", fix, why
        )

    def _shown_ports(self, found: ServiceRecord) -> str:
        by_node = self._how == "node-port"
        return ", ".join(
            f"{number}/{protocol}" + (f" at node port {node_port}" if by_node and node_port else "")
            for (protocol, number), node_port in found.ports.items()
        )

    @staticmethod
    def _diagnostic(code: str, what: str, fix: str, why: str = "") -> Diagnostic:
        return Diagnostic(code=code, where=SERVICE, what=what, why=why, fix=fix)

    # --- commands -----------------------------------------------------------------------------

    @property
    def _is_foreign(self) -> bool:
        """Whether none of the written files creates the Service."""
        return not self.placed.exposure.target.virtual_machine and not any(
            each.exposure.target.selector for each in self.same
        )

    @property
    def _change(self) -> str:
        """The command that gives the Service what the exposure needs."""
        external = self._how == "external-ip"
        if self._is_foreign:
            kubectl = self.running.kubectl
            return manifests.patch(self.same, kubectl) if external else services.patch(self.placed, kubectl)
        if self.placed.exposure.target.virtual_machine:
            return self._apply(machines.SERVICES)
        return self._apply(manifests.SERVICES if external else services.SERVICES)

    def _change_external(self, has: Sequence[str]) -> str:
        """Return the command that gives it the external addresses; others that it has would be lost."""
        others = sorted({*has} - {each.address for each in self.same})
        if not others:
            return self._change
        return f"declare exposures for {', '.join(others)}, or give them up; then {self._change}"

    def _apply(self, name: str) -> str:
        path = os.path.join(self.directory, name)
        near = os.path.relpath(path)
        return f"{self.running.kubectl} apply -f {shell.quote(path if near.startswith(os.pardir) else near)}"
