"""Links from the port of a virtual address to the machines that answer there.

Source: OpenShift installer docs/source, "What gets created, names and tags", and the platform's
keepalived, which answers for a virtual address with the machine's own MAC address; Networking API
v2.0, "Allowed address pairs" and "Security groups".
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Sequence

from openstack_prep.base import shell
from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.clusters import installer_names as naming
from openstack_prep.neutron.rules import (
    DIVERTED,
    UNNOTICED,
    WHY,
    Admission,
    Traffic,
    admission,
    allows,
    answered,
    covers,
    diverted,
    filtered_again,
    networks_around,
    runs_ovn,
    unnoticed,
    without_diverting,
)
from openstack_prep.openshift.verify.access_path import AccessPath, addresses, some
from openstack_prep.openshift.verify.chain import ok, unknown
from openstack_prep.reports.codes import documented
from openstack_prep.resources.lists.neutron_records import GroupRecord, PortRecord

PAIRS, GROUPS, MACHINES, BOOTSTRAP = "address pairs", "security groups", "machines", "bootstrap"


def pairs(path: AccessPath) -> Iterator[Diagnostic]:
    """Yield whether the machines may answer for the virtual addresses."""
    if path.port is None:
        yield unknown("port.missing", PAIRS, "cannot be checked without the port")
        return
    unprotected = [port for port in path.nodes if not port.port_security_enabled]
    on_network = [port for port in path.view.ports if port.network_id == path.port.network_id]
    if unprotected:
        stuck = any(unnoticed(address, unprotected, on_network) for address in addresses(path.port))
        yield Diagnostic(
            code="port-security.off",
            where=PAIRS,
            what=f"port security is off on {_names(unprotected)}",
            why=f"nothing is filtered there; {UNNOTICED if stuck else 'so works also what nobody should reach'}",
            fix=_filter_again(path, unprotected, addresses(path.port)),
            status=DiagnosticStatus.WARNING,
        )
    protected = [port for port in path.nodes if port.port_security_enabled]
    for address in addresses(path.port):
        missing = [port for port in protected if not allows(port, ipaddress.ip_network(address))]
        elsewhere = diverted(address, protected, on_network)
        clean = [f"{path.client} {shell.join(without_diverting(port, address))}" for port in elsewhere]
        if missing:
            yield Diagnostic(
                code="pairs.missing",
                where=PAIRS,
                what=f"{address} is not allowed on {_names(missing)}",
                why="Neutron drops what these machines send from that address",
                fix=" && ".join([*clean, f"{path.repair} --vip {address}"]),
            )
        elif elsewhere:
            what = f"{address} is also allowed with another MAC address on {_names(elsewhere)}"
            yield Diagnostic(code="pairs.missing", where=PAIRS, what=what, why=DIVERTED, fix=" && ".join(clean))
        elif path.nodes and (problem := _with_ovn(path, address)):
            yield problem
        elif protected:
            yield ok(PAIRS, f"{address} is allowed on {_count(protected, 'port')}")


def _with_ovn(path: AccessPath, address: str) -> Diagnostic | None:
    """Return what is wrong if OVN does not translate the floating IP, though the machines may send."""
    port = path.port
    if port is None or path.serving is None or path.serving.fixed_ip_address != address:
        return None
    on_network = [each for each in path.view.ports if each.network_id == port.network_id]
    sure, around = runs_ovn(on_network), networks_around(address, on_network)
    if sure is False or around is None:
        return None
    part = f"{address} is allowed only as part of {', '.join(around)}"
    what = part if around else f"no port has a pair for {address}: port security is off on the machines"
    return Diagnostic(
        code="pairs.missing",
        where=PAIRS,
        what=what,
        why=WHY if sure else f"if this cloud runs OVN, which these credentials do not show: {WHY}",
        fix=f"{path.repair} --vip {address}" if around else _filter_again(path, path.nodes, addresses(port)),
        status=DiagnosticStatus.ERROR if sure else DiagnosticStatus.WARNING,
    )


def groups_of(path: AccessPath) -> Iterator[Diagnostic]:
    """Yield whether security groups let requests through to the machines, per TCP port."""
    version = ipaddress.ip_address(addresses(path.port)[0]).version if path.port else 4
    for tcp in path.target.tcp:
        yield from _admitted(path, tcp, version)


def _admitted(path: AccessPath, tcp: int, version: int) -> Iterator[Diagnostic]:
    source = str(path.wanted.source or "anywhere")
    blocking, unanswered, undecided, limited = [], [], [], {}
    for port in path.nodes:
        if not port.port_security_enabled:
            continue
        groups = _groups(path, port)
        found = answered(groups, Traffic(direction="ingress", version=version, protocol="tcp", number=tcp))
        if found.everywhere or (path.wanted.source is not None and found.includes(path.wanted.source)):
            continue
        if len(groups) < len(port.security_groups) or found.address_groups:
            undecided.append(port)
        elif found.networks and path.wanted.source is None and not _only_inside(path, found):
            limited[port.id] = found
        elif _lets_in(path, groups, tcp, version):
            unanswered.append(port)
        else:
            blocking.append(port)
    if blocking:
        yield Diagnostic(
            code="security-group.blocks",
            where=GROUPS,
            what=f"TCP {tcp} from {source} does not reach {_names(blocking)}",
            fix=_rules(path, blocking, tcp, version),
        )
    if unanswered:
        yield Diagnostic(
            code="security-group.blocks",
            where=GROUPS,
            what=f"answers on TCP {tcp} do not leave {_names(unanswered)}",
            why="the groups are stateless: what answers a request needs an egress rule",
            fix=_rules(path, unanswered, tcp, version, egress=True),
        )
    if undecided:
        reason = "a group that these credentials may not read, or an address group, decides"
        yield unknown("security-group.unreadable", GROUPS, f"TCP {tcp} to {_names(undecided)}: {reason}")
    if limited:
        what = f"TCP {tcp} is open only from {_networks(limited.values())}"
        yield unknown("security-group.limited", GROUPS, what, "to check your own address: --from ADDRESS")
    if path.nodes and not (blocking or unanswered or undecided or limited):
        yield ok(GROUPS, f"TCP {tcp} from {source} reaches {_count(path.nodes, 'port')}")


def _groups(path: AccessPath, port: PortRecord) -> list[GroupRecord]:
    """Return the groups of a port that these credentials may read."""
    known = path.view.groups or {}
    return [known[security_group] for security_group in port.security_groups if security_group in known]


def _only_inside(path: AccessPath, found: Admission) -> bool:
    """Whether only the cluster's own subnets are let in, from which nobody comes by a floating IP."""
    subnets = [subnet.block for subnet in (path.view.subnets or {}).values()]
    return not path.direct and all(any(covers(subnet, network) for subnet in subnets) for network in found.networks)


def _lets_in(path: AccessPath, groups: Iterable[GroupRecord], tcp: int, version: int) -> bool:
    """Whether a request gets in, if its answer does not get out."""
    rules = (rule for group in groups if group.stateful is False for rule in group.security_group_rules)
    found = admission(rules, Traffic(direction="ingress", version=version, protocol="tcp", number=tcp))
    return found.everywhere or (path.wanted.source is not None and found.includes(path.wanted.source))


def _group_of(path: AccessPath, port: PortRecord) -> str | None:
    """Return the id of the group that the installer made for a port, or of the first one: names are not unique."""
    own = (group.id for group in _groups(path, port) if group.name.startswith(path.infra_id))
    return next(iter((*own, *port.security_groups)), None)


def _rules(path: AccessPath, ports: Sequence[PortRecord], tcp: int, version: int, *, egress: bool = False) -> str:
    """Return the commands that let requests in, or answers out, in the group that the installer made for each port."""
    way = "--egress" if egress else "--ingress"
    words = ["security", "group", "rule", "create", way, "--ethertype", f"IPv{version}"]
    source = ["--remote-ip", str(path.wanted.source)] if path.wanted.source else []
    commands: list[str] = []
    for port in ports:
        if group := _group_of(path, port):
            numbers = [] if egress else ["--dst-port", str(tcp)]
            added = [*words, "--protocol", "tcp", *numbers, *source, group]
        else:
            added = ["port", "set", "--security-group", f"{path.infra_id}-{path.role(port)}", port.id]
        commands.append(f"{path.client} {shell.join(added)}")
    return " && ".join(dict.fromkeys(commands))


def vrrp(path: AccessPath) -> Iterator[Diagnostic]:
    """Yield machines that do not hear each other: each of them takes the virtual address.

    Source: machine-config-operator 4.20, templates/master/00-master/on-prem/files/keepalived-keepalived.yaml.
    """
    if path.port is None:
        return
    version = ipaddress.ip_address(addresses(path.port)[0]).version
    isolated: list[PortRecord] = []
    for port in (node for node in path.nodes if node.port_security_enabled):
        groups = _groups(path, port)
        rules = [rule for group in groups for rule in group.security_group_rules]
        found = admission(rules, Traffic(direction="ingress", version=version, protocol="112"))
        if len(groups) < len(port.security_groups) or found.address_groups:
            continue
        peers = [node for node in path.nodes if node.id != port.id]
        heard = (found.groups & set(peer.security_groups) or _includes_one(found, peer, version) for peer in peers)
        if not all(heard):
            isolated.append(port)
    if isolated:
        group = _group_of(path, isolated[0]) or f"{path.infra_id}-{path.role(isolated[0])}"
        words = ["security", "group", "rule", "create", "--ingress", "--ethertype", f"IPv{version}"]
        words += ["--protocol", "112", "--remote-group", group, group]
        yield documented(
            code="security-group.no-vrrp",
            status=DiagnosticStatus.WARNING,
            where=GROUPS,
            what=f"VRRP between the machines does not reach {_names(isolated)}",
            fix=f"{path.client} {shell.join(words)}",
        )


def _includes_one(found: Admission, port: PortRecord, version: int) -> bool:
    blocks = (ipaddress.ip_network(address) for address in addresses(port))
    return any(found.includes(block) for block in blocks if block.version == version)


def machines(path: AccessPath) -> Iterator[Diagnostic]:
    """Yield whether the machines run."""
    if path.target.name == "ingress" and path.awaits_workers:
        what = f"no worker exists yet; only workers answer on TCP {', '.join(map(str, path.target.tcp))}"
        yield unknown("machine.awaited", MACHINES, what, f"wait for them: {path.to_continue}")
        return
    if not path.nodes:
        yield Diagnostic(
            code="machine.missing",
            where=MACHINES,
            what=f"no port of a {' or '.join(path.target.roles)} carries the tag {naming.tag(path.infra_id)}",
            fix=path.elsewhere or f"wait for them: {path.to_continue}",
        )
        return
    problems = [*_servers(path), *_ports_down(path)]
    yield from problems
    if path.view.servers is None:
        yield unknown("access.denied", MACHINES, "these credentials may not list servers")
    elif not problems:
        yield ok(MACHINES, f"{_count(path.nodes, 'server')} ACTIVE{_role_note(path)}")


def bootstrap(path: AccessPath) -> Iterator[Diagnostic]:
    """Yield that the bootstrap machine exists: while an installation goes on it must, and later it must not."""
    port = path.bootstrap
    if port is None or path.target.name != "api":
        return
    what = f"{path.infra_id}-bootstrap exists"
    if path.awaits_workers:
        fix = f"if the installer has ended: {path.to_continue}"
        yield unknown("bootstrap.present", BOOTSTRAP, f"{what}: the installation is not complete", fix)
        return
    yield documented(
        code="bootstrap.left",
        status=DiagnosticStatus.WARNING,
        where=BOOTSTRAP,
        what=f"{what} beside the machines of the cluster",
        fix=path.to_continue,
    )


def _servers(path: AccessPath) -> Iterator[Diagnostic]:
    """Yield node ports without a server, and servers that do not run."""
    servers = path.view.servers
    if servers is None:
        return
    lost = [port for port in path.nodes if port.device_id not in servers]
    if lost:
        what = f"no server of this project has the port {_names(lost)}"
        yield Diagnostic(code="machine.missing", where=MACHINES, what=what, fix=f"{path.client} server list")
    found = (servers[port.device_id] for port in path.nodes if port.device_id in servers)
    stopped = [server for server in found if server.status != "ACTIVE"]
    if stopped:
        off = [server for server in stopped if server.status == "SHUTOFF"]
        verb, ids = "start" if off else "show", [server.id for server in off or stopped[:1]]
        yield Diagnostic(
            code="machine.not-active",
            where=MACHINES,
            what=some(f"{server.name} is {server.status}" for server in stopped),
            fix=f"{path.client} server {verb} {' '.join(ids)}",
        )


def _ports_down(path: AccessPath) -> Iterator[Diagnostic]:
    """Yield ports that are not ACTIVE although their servers run, as far as these credentials show."""
    servers = path.view.servers
    active = None if servers is None else {server_id for server_id, each in servers.items() if each.status == "ACTIVE"}
    running = [port for port in path.nodes if active is None or port.device_id in active]
    off = [port for port in running if port.admin_state_up is False]
    down = [port for port in running if port.status != "ACTIVE" and port not in off]
    if off:
        ids = [port.id for port in off]
        yield Diagnostic(
            code="port.down",
            where=MACHINES,
            what=f"{_names(off)} {'is' if len(off) == 1 else 'are'} switched off",
            fix=" && ".join(f"{path.client} port set --enable {each}" for each in ids),
        )
    if down:
        names = shell.quote(f"^{path.infra_id}-")
        yield Diagnostic(
            code="port.down",
            where=MACHINES,
            what=f"{_names(down)} {'is' if len(down) == 1 else 'are'} not ACTIVE",
            fix=f"{path.client} server list --name {names}  # shows their servers",
        )


def _role_note(path: AccessPath) -> str:
    masters = path.target.name == "ingress" and all(path.role(port) == "master" for port in path.nodes)
    return " (the masters: there are no workers)" if masters else ""


def _networks(found: Iterable[Admission]) -> str:
    return some(sorted({str(network) for each in found for network in each.networks}))


def _names(ports: Iterable[PortRecord]) -> str:
    return some(port.name or port.id for port in ports)


def _count(things: Sequence[object], word: str) -> str:
    return f"{len(things)} {word}{'' if len(things) == 1 else 's'}"


def _filter_again(path: AccessPath, ports: Sequence[PortRecord], virtual: Sequence[str]) -> str:
    """Return the commands that enable port security of some ports again."""
    words = (filtered_again(port, f"{path.infra_id}-{path.role(port)}", virtual) for port in ports)
    return " && ".join(f"{path.client} {shell.join(each)}" for each in words)
