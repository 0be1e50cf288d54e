"""Links from the name of a service to the port of its virtual address.

Source: OpenShift installer docs/source, "What gets created, names and tags"; Networking API v2.0,
"Floating IPs", "Floating IPs port forwarding" and "Routers".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from openstack_prep.base import shell
from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.clusters import installer_names as naming
from openstack_prep.core.model import OwnershipTag
from openstack_prep.openshift.names.resolver import ResolvedName
from openstack_prep.openshift.verify.access_path import AccessPath, ProjectView, addresses, some
from openstack_prep.openshift.verify.chain import ok, unknown
from openstack_prep.reports.codes import documented
from openstack_prep.resources.lists.cluster_naming import foreign_tags
from openstack_prep.resources.lists.neutron_records import (
    INTERFACES,
    FloatingIPRecord,
    PortForwarding,
    PortRecord,
    RouterRecord,
)

NAME, FLOATING_IP, PORT, ROUTER = "name", "floating IP", "port", "router"


def names(path: AccessPath, expected: Mapping[str, str | None]) -> Iterator[Diagnostic]:
    """Yield a link per name; ``expected`` are the addresses that the names of both paths should have."""
    if not path.target.hosts:
        fix = "give --base-domain DOMAIN or --install-config FILE"
        yield unknown("dns.domain-unknown", NAME, "the cluster's domain is not known", fix)
    for host in path.target.hosts:
        yield _name(path, host, path.answers[host], _write_names(path, expected, path.answers[host].file))


def _name(path: AccessPath, host: str, answer: ResolvedName, fix: str) -> Diagnostic:
    address = path.leads_to
    if answer.late:
        what = f"{answer.source} did not resolve {host} in time"
        return unknown("dns.timeout", NAME, what, "check the resolver, then try again")
    if not answer.addresses:
        why = "clients that use this name cannot connect"
        return Diagnostic(code="dns.missing", where=NAME, what=f"{host} has no address", why=why, fix=fix)
    resolved = f"{host} is {', '.join(answer.addresses)} ({answer.source})"
    wrong = [each for each in answer.addresses if each != address]
    if address and not path.direct and wrong:
        return Diagnostic(code="dns.wrong-address", where=NAME, what=f"{resolved}, not {address}", fix=fix)
    return ok(NAME, resolved)


def _write_names(path: AccessPath, expected: Mapping[str, str | None], file: Path) -> str:
    """Return the command that writes all names; the domain is known where names were resolved."""
    given = {
        "--cluster-name": path.wanted.cluster_name or "",
        "--base-domain": path.wanted.base_domain or "",
        "--api": expected["api"] or "ADDRESS",
        "--ingress": expected["ingress"] or "ADDRESS",
        "--write": str(file),
    }
    words = (word for option in given.items() for word in option)
    return f"openstack-prep names {shell.join(words)} --replace  # or correct the DNS"


def floating_ip(path: AccessPath) -> Diagnostic:
    """Return whether the right floating IP serves the port."""
    if path.view.floating_ips is None:
        return unknown("access.denied", FLOATING_IP, "these credentials may not list floating IPs")
    if path.direct:
        return ok(FLOATING_IP, "none is needed: the address is the virtual one itself")
    found = path.floating_ip
    if found is None or found is not (path.serving or found):
        return _no_floating_ip(path)
    return _attached(path, found)


def _no_floating_ip(path: AccessPath) -> Diagnostic:
    """Return why the floating IP that is expected is not on the port."""
    if path.serving is not None:
        other = path.serving.address
        return Diagnostic(
            code="floating-ip.other-address",
            where=FLOATING_IP,
            what=f"{other} serves the port, not {path.target.given}",
            fix=f"{_exchange(path, path.serving)}  # or expect {other}",
        )
    if path.target.given:
        return Diagnostic(
            code="floating-ip.missing",
            where=FLOATING_IP,
            what=f"{path.target.given} is not a floating IP of this project",
            fix=f"{path.client} floating ip list  # and name one of these",
        )
    what = f"none serves the port {path.target.port}"
    return Diagnostic(code="floating-ip.detached", where=FLOATING_IP, what=what, fix=_attach(path))


def _attached(path: AccessPath, found: FloatingIPRecord) -> Diagnostic:
    """Return whether a floating IP serves the port, and works."""
    show = f"{path.client} floating ip show {path.address}"
    if found.port_forwardings and path.port:
        return _forwarded(path, path.port, found)
    if not found.port_id:
        what = f"{path.address} serves no port"
        return Diagnostic(code="floating-ip.detached", where=FLOATING_IP, what=what, fix=_attach(path))
    if path.port and found.port_id != path.port.id:
        other = next((port.name for port in path.view.ports if port.id == found.port_id), "")
        what = f"{path.address} serves another port: {' '.join(filter(None, (other, found.port_id)))}"
        return Diagnostic(code="floating-ip.in-use", where=FLOATING_IP, what=what, fix=f"{_attach(path)} --move")
    if found.status == "ERROR":
        what = f"{path.address} is in status ERROR"
        return Diagnostic(code="floating-ip.error", where=FLOATING_IP, what=what, fix=show)
    if found.status != "ACTIVE":
        what = f"{path.address} is on its port, but {found.status}: no router has reported yet that it serves it"
        return unknown("floating-ip.not-active", FLOATING_IP, what, f"{show}  # try again until its status is ACTIVE")
    if path.port and len({":" in address for address in addresses(path.port)}) > 1:
        return Diagnostic(
            code="floating-ip.dual-stack",
            where=FLOATING_IP,
            what=f"{path.address} serves the port, ACTIVE; the port has addresses of both IP versions",
            why="with OVN it can stop working when the virtual address moves to another machine (OCPBUGS-50599)",
            fix=f"{path.client} floating ip unset --port {path.address} && {path.attach}  # when that happens",
            status=DiagnosticStatus.WARNING,
        )
    return ok(FLOATING_IP, f"{path.address} serves the port, ACTIVE")


UNJOINED = ("router.missing", "router.no-gateway", "router.other-gateway")


def _attach(path: AccessPath) -> str:
    """Return the commands that attach the floating IP, first those without which Neutron refuses it.

    Source: Neutron 29.0.0, db/l3_db.py (_get_router_for_floatingip): a router must join subnet and external network.
    """
    router = router_between(path)
    first = [router.fix] if router.code in UNJOINED and path.floating_ip else []
    if any("  # " in command for command in first):  # another floating IP fits
        return router.fix
    return " && ".join([*first, path.attach])


def _exchange(path: AccessPath, serving: FloatingIPRecord) -> str:
    """Return the commands that detach a floating IP and attach the expected one, unless that has port forwardings."""
    attach = [] if path.floating_ip and path.floating_ip.port_forwardings else [_attach(path)]
    if serving.port_id:
        return " && ".join([f"{path.client} floating ip unset --port {serving.address}", *attach])
    return without_forwardings(
        path.client, {serving: list(filter(path.is_reached_by, serving.port_forwardings))}, attach
    )


def _forwarded(path: AccessPath, port: PortRecord, found: FloatingIPRecord) -> Diagnostic:
    """Return whether the port forwardings of a floating IP lead all requests to the virtual address."""
    virtual = next((address for address in addresses(port) if ":" not in address), None)
    what = f"{found.address} has port forwardings, but none"
    if virtual is None:
        what, fix = f"{what} can lead to the port, which has no IPv4 address", f"{path.client} port show {port.id}"
        return documented(code="floating-ip.not-forwarded", where=FLOATING_IP, what=what, fix=fix)
    missing = [tcp for tcp in path.target.tcp if not found.forwards("tcp", tcp, virtual, port.id)]
    if not missing:
        return ok(FLOATING_IP, f"{found.address} forwards TCP {', '.join(map(str, path.target.tcp))} to {virtual}")
    taken = _list_conflicts(path, port, found, virtual, missing)
    note = "; ".join(f"{ip.address} forwards {each}" for ip, listed in taken.items() for each in listed)
    return documented(
        code="floating-ip.not-forwarded",
        where=FLOATING_IP,
        what=f"{what} of TCP {', '.join(map(str, missing))} to {virtual}" + (f"; conflicting: {note}" if note else ""),
        fix=without_forwardings(
            path.client, taken, [_forward(path, port, found.address, virtual, tcp) for tcp in missing]
        ),
    )


def _list_conflicts(
    path: AccessPath, port: PortRecord, found: FloatingIPRecord, virtual: str, missing: Sequence[int]
) -> dict[FloatingIPRecord, list[PortForwarding]]:
    """Return by floating IP the port forwardings beside which Neutron refuses those that are missing.

    A port of a floating IP leads to one place, and to a port of an address leads one forwarding of all floating IPs.
    Source: Neutron 29.0.0, services/portforwarding/pf_plugin.py, _check_port_collisions.
    """

    def blocks(ip: FloatingIPRecord, forwarding: PortForwarding) -> bool:
        ranges = [forwarding.external_ports] if ip is found else []
        ranges += [forwarding.internal_ports] if forwarding.is_to(virtual, port.id) else []
        return forwarding.protocol == "tcp" and any(low <= tcp <= high for low, high in ranges for tcp in missing)

    listed = {
        ip: [port_forwarding for port_forwarding in ip.port_forwardings if blocks(ip, port_forwarding)]
        for ip in path.view.floating_ips or ()
    }
    return {ip: forwardings for ip, forwardings in listed.items() if forwardings}


def without_forwardings(
    client: str, taken: Mapping[FloatingIPRecord, Sequence[PortForwarding]], commands: Sequence[str]
) -> str:
    """Return the commands that delete port forwardings, and then others; without their ids, how to find them."""
    forwarding = f"{client} floating ip port forwarding"
    if all(each.id for listed in taken.values() for each in listed):
        ids = {ip.address: [each.id for each in listed] for ip, listed in taken.items()}
        delete = [f"{forwarding} delete {shell.join([address, *each])}" for address, each in ids.items()]
        return " && ".join([*delete, *commands])
    lists = " && ".join(f"{forwarding} list {ip.address}" for ip in taken)
    return f"{lists}  # delete the conflicting ones, then: {' && '.join(commands) or 'verify again'}"


def _forward(path: AccessPath, port: PortRecord, floating_ip: str, virtual: str, tcp: int) -> str:
    """Return the command that lets a port of a floating IP lead to the same port of a virtual address."""
    words = ["--internal-ip-address", virtual, "--port", port.id, "--protocol", "tcp"]
    words += ["--internal-protocol-port", str(tcp), "--external-protocol-port", str(tcp), floating_ip]
    return f"{path.client} floating ip port forwarding create {shell.join(words)}"


def virtual_port(path: AccessPath) -> Diagnostic:
    """Return whether the port of the virtual address is there, and the cluster's."""
    tag, port = naming.tag(path.infra_id), path.port
    if len(path.ports) > 1:
        return Diagnostic(
            code="port.ambiguous",
            where=PORT,
            what=f"{len(path.ports)} ports are named {path.target.port}: {some(each.id for each in path.ports)}",
            fix=_superfluous(path),
        )
    if port is None:
        reason = path.elsewhere or "is the infraID right, and the cloud that of the cluster's project"
        return Diagnostic(
            code="port.missing",
            where=PORT,
            what=f"no port of this project is named {path.target.port} and has an address",
            fix=f"{reason}; with a UserManaged load balancer or IPv6 give --install-config FILE",
        )
    return _of_cluster(path, port, tag)


def _superfluous(path: AccessPath) -> str:
    """Return how to end with one port; a port is only deleted if install-config.yaml names another one's address."""
    virtual = set(path.target.virtual)
    right = [port for port in path.ports if virtual & set(addresses(port))]
    others = [port for port in path.ports if port not in right]
    served = {floating_ip.port_id for floating_ip in path.view.floating_ips or ()}
    if len(right) == 1 and not any(
        port.device_owner or port.id in served or OwnershipTag.spec_in(port.description) for port in others
    ):
        return f"{path.client} port delete {' '.join(port.id for port in others)}"
    show = " && ".join(f"{path.client} port show {port.id}" for port in path.ports)
    return f"{show}  # and delete those without the virtual address of the cluster"


def _of_cluster(path: AccessPath, port: PortRecord, tag: str) -> Diagnostic:
    shown = f"{port.name} {', '.join(addresses(port))}"
    if foreign := foreign_tags(port.tags, tag):
        what = f"{shown} carries {', '.join(foreign)} of another cluster"
        return documented(
            code="port.other-cluster",
            where=PORT,
            what=what,
        )
    if tag not in port.tags and port in path.view.virtual and port.name == path.target.port:
        return Diagnostic(
            code="port.no-tag",
            where=PORT,
            what=f"{shown} does not carry the tag {tag}",
            why="openshift-install destroy cluster would leave it",
            fix=f"{path.client} port set --tag {tag} {port.id}",
        )
    if port.admin_state_up is False:
        fix = f"{path.client} port set --enable {port.id}"
        return documented(
            code="port.disabled",
            status=DiagnosticStatus.WARNING,
            where=PORT,
            what=f"{shown} is switched off",
            fix=fix,
        )
    return ok(PORT, shown)


def router_between(path: AccessPath) -> Diagnostic:
    """Return whether a router joins the port's subnet and the floating IP's network."""
    port, view = path.port, path.view
    if port is None:
        return unknown("port.missing", ROUTER, "cannot be checked without the port")
    if path.direct:
        return ok(ROUTER, "none is needed: no address is translated")
    subnets = port.subnet_ids
    joined = {interface.device_id for interface in view.interfaces or () if subnets & interface.subnet_ids}
    known = [router for key, router in (view.routers or {}).items() if key in joined]
    if known:
        return _gateway(path, known)
    subnet = some(_subnet_name(view, each) for each in sorted(subnets))
    external = path.floating_ip.network_id if path.floating_ip else None
    gated = [
        router.id
        for router in (view.routers or {}).values()
        if external and router.gateway_network_id == external
        if not foreign_tags(router.tags, naming.tag(path.infra_id))
    ]
    serving = path.serving.router_id if path.serving else None
    if serving or view.interfaces is None or view.routers is None or not _owns_network(path):
        note = f"; Neutron says that {serving} serves the floating IP" if serving else ""
        what = f"the router of subnet {subnet} is not visible to these credentials{note}"
        return unknown("access.denied", ROUTER, what)
    return Diagnostic(
        code="router.missing",
        where=ROUTER,
        what=f"no router has an interface in subnet {subnet}",
        fix=path.add_router(sorted(subnets), gated, external),
    )


def _owns_network(path: AccessPath) -> bool:
    """Whether these credentials would see a router's interface in the subnet: its network's owner does."""
    subnets = (path.view.subnets or {}).values()
    return any(path.port is not None and subnet.project_id == path.port.project_id for subnet in subnets)


def _gateway(path: AccessPath, routers: Sequence[RouterRecord]) -> Diagnostic:
    """Return whether one of the port's routers leads to the floating IP's network, and is up."""
    network = path.floating_ip.network_id if path.floating_ip else None
    gates = {router.id: router.gateway_network_id for router in routers}
    router = next((each for each in routers if gates[each.id] and network in (None, gates[each.id])), None)
    if router is None:
        first = routers[0]
        other = gates[first.id]
        lack = "has its gateway on another network than the floating IP's" if other else "has no external gateway"
        return Diagnostic(
            code="router.other-gateway" if other else "router.no-gateway",
            where=ROUTER,
            what=f"{first.name} {lack}",
            fix=_join_outside(path, first, network),
        )
    enable = f"{path.client} router set --enable {router.id}"
    if router.admin_state_up is False:
        return Diagnostic(code="router.disabled", where=ROUTER, what=f"{router.name} is switched off", fix=enable)
    if router.status == "ERROR":
        # no agent took it when it was created; nothing sets the status back (neutron 29.0.0, db/l3_hamode_db.py)
        agents = f"openstack network agent list --router {router.id}  # as an administrator: who forwards its packets"
        return Diagnostic(code="router.error", where=ROUTER, what=f"{router.name} is in status ERROR", fix=agents)
    return ok(ROUTER, f"{router.name} joins the port's subnet and the outside")


def _join_outside(path: AccessPath, router: RouterRecord, network: str | None) -> str:
    """Return the command that gives a router its gateway; a floating IP for it if other networks are behind it."""
    gateway, own = router.gateway_network_id, path.port and path.port.network_id
    interfaces = (port for port in path.view.ports if port.device_id == router.id and port.device_owner in INTERFACES)
    if network is None:
        return f"set the external gateway of router {router.id} to the network of the floating IPs"
    if gateway and (others := sorted({port.network_id for port in interfaces} - {own})):
        create = shell.join(["floating", "ip", "create", gateway])
        return (
            f"{path.client} {create}  # and verify with its address: network {some(others)} is behind the router, too"
        )
    return f"{path.client} router set --external-gateway {network} {router.id}"


def _subnet_name(view: ProjectView, subnet_id: str) -> str:
    known = (view.subnets or {}).get(subnet_id)
    return known.name if known and known.name else subnet_id
