"""One path to a cluster: what was asked, what was read, and what follows from both for its links.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from openstack_prep.base import shell
from openstack_prep.base.errors import NotAllowed
from openstack_prep.base.raw import Values
from openstack_prep.base.style import first_of
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.service import Service
from openstack_prep.clusters import installer_names as naming
from openstack_prep.neutron.rules import Traffic, admission
from openstack_prep.openshift.installer import to_continue
from openstack_prep.openshift.names.resolver import ResolvedName
from openstack_prep.openshift.verify.target import VerificationRequest, VerifiedService
from openstack_prep.resources.lists.cluster_naming import foreign_tags
from openstack_prep.resources.lists.neutron_records import (
    INTERFACES,
    FloatingIPRecord,
    GroupRecord,
    PortForwarding,
    PortRecord,
    RouterRecord,
    SubnetRecord,
    list_by_id,
    list_records,
)
from openstack_prep.resources.lists.nova_records import ServerRecord, list_servers

# --- reading ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ProjectView:
    """What was read; None stands for a list that these credentials may not read."""

    infra_id: str
    ports: Sequence[PortRecord]
    """All ports of the project."""
    floating_ips: Sequence[FloatingIPRecord] | None
    """All of the project."""
    servers: Mapping[str, ServerRecord] | None
    """Of the project, by id."""
    groups: Mapping[str, GroupRecord] | None
    """Those of the cluster's node ports, by id, with their rules."""
    interfaces: Sequence[PortRecord] | None
    """Router interfaces on the networks of the virtual ports."""
    routers: Mapping[str, RouterRecord] | None
    """Those of the interfaces and of the floating IPs, by id; if no interface is in a virtual port's subnet, also those
    of the project."""
    subnets: Mapping[str, SubnetRecord] | None
    """Those of the virtual ports, by id."""
    worker_groups: Sequence[GroupRecord] | None = ()
    """Security groups named like the cluster's for workers; read only while there is no worker."""

    @property
    def virtual(self) -> list[PortRecord]:
        return _virtual(self.ports, self.infra_id)

    @property
    def nodes(self) -> list[PortRecord]:
        """Node ports on the cluster's own network; virtual addresses are on no other."""
        networks = {port.network_id for port in self.virtual}
        nodes = [port for port in self.ports if _is_node(port, self.infra_id)]
        return [port for port in nodes if not networks or port.network_id in networks]


def read(cloud: Cloud, infra_id: str, *, jobs: int = 8) -> ProjectView:
    """Read the project that the connection is scoped to; raises CloudError."""
    neutron = cloud.network
    mine: Values = {"project_id": cloud.project_id}
    with ThreadPoolExecutor(jobs) as pool:

        def start(read: Callable[[], Any]) -> Callable[[], Any]:
            return pool.submit(_if_allowed, read).result

        ports = pool.submit(lambda: list_records(neutron, PortRecord, **mine)).result
        floating_ips = start(lambda: list_records(neutron, FloatingIPRecord, **mine))
        servers = start(lambda: {server.id: server for server in list_servers(cloud)})
        virtual = _virtual(ports(), infra_id)
        networks = {port.network_id for port in virtual}
        query: Values = {"network_id": sorted(networks), "device_owner": list(INTERFACES)}
        interfaces = start(lambda: list_records(neutron, PortRecord, **query) if networks else [])
        subnets = start(
            lambda: list_by_id(neutron, SubnetRecord, {subnet_id for port in virtual for subnet_id in port.subnet_ids})
        )
        used = {group for port in ports() if _is_node(port, infra_id) for group in port.security_groups}
        groups = start(lambda: list_by_id(neutron, GroupRecord, used))
        name = f"{infra_id}-worker"
        roles = {naming.role(port.name, infra_id) for port in ports() if _is_node(port, infra_id)}
        searched = bool(roles) and not roles - {"master", "bootstrap"}
        worker_groups = start(lambda: list_records(neutron, GroupRecord, name=name, **mine) if searched else [])
        behind = {port.device_id for port in interfaces() or ()}
        behind |= {floating_ip.router_id for floating_ip in floating_ips() or () if floating_ip.router_id}
        wanted = {subnet_id for port in virtual for subnet_id in port.subnet_ids}
        joined = any(wanted & port.subnet_ids for port in interfaces() or ())
        routers = start(lambda: list_by_id(neutron, RouterRecord, behind) | ({} if joined else _owned(neutron, mine)))
        return ProjectView(
            infra_id=infra_id,
            ports=ports(),
            floating_ips=floating_ips(),
            servers=servers(),
            groups=groups(),
            interfaces=interfaces(),
            routers=routers(),
            subnets=subnets(),
            worker_groups=worker_groups(),
        )


def _virtual(ports: Iterable[PortRecord], infra_id: str) -> list[PortRecord]:
    return [port for port in ports if naming.is_virtual(port.name, port.tags, infra_id)]


def _is_node(port: PortRecord, infra_id: str) -> bool:
    return naming.is_node(port.name, port.tags, port.device_owner, infra_id)


def _owned(neutron: Service, mine: Values) -> dict[str, RouterRecord]:
    """Return the project's routers by id, one of which may lack an interface."""
    return {router.id: router for router in list_records(neutron, RouterRecord, **mine)}


def _if_allowed(read: Callable[[], object]) -> object:
    try:
        return read()
    except NotAllowed:
        return None  # shown as unknown


# --- access path ------------------------------------------------------------------------------


ROUTERS = (80, 443, 1936)
"""TCP ports that the installer opens on the machines of the routers."""
SHOWN = 4
"""Names listed in one line; of more, only how many."""


@dataclass(frozen=True)
class AccessPath:
    """The path to one target in what was read, with the addresses of its names."""

    wanted: VerificationRequest
    target: VerifiedService
    view: ProjectView
    answers: Mapping[str, ResolvedName]

    @property
    def infra_id(self) -> str:
        return self.wanted.metadata.infra_id

    @cached_property
    def ports(self) -> Sequence[PortRecord]:
        """The ports of the virtual address: one, or none, or two by mistake; each has an address."""
        named = [port for port in self.view.ports if port.name == self.target.port and port.fixed_ips]
        if named:
            return named
        return [port for port in self.view.virtual if set(self.target.virtual) & set(addresses(port))]

    @property
    def port(self) -> PortRecord | None:
        return self.ports[0] if len(self.ports) == 1 else None

    @cached_property
    def resolved(self) -> tuple[str, ...]:
        found = (self.answers[host].addresses for host in self.target.hosts if host in self.answers)
        return tuple(dict.fromkeys(address for each in found for address in each))

    @cached_property
    def serving(self) -> FloatingIPRecord | None:
        """The floating IP on the port, or on one of two, or else one with port forwardings to its address."""
        ids = {port.id for port in self.ports}
        listed = self.view.floating_ips or ()
        on_port = next((ip for ip in listed if ip.port_id in ids), None)
        return on_port or next((ip for ip in listed if any(map(self.is_reached_by, ip.port_forwardings))), None)

    def is_reached_by(self, forwarding: PortForwarding) -> bool:
        """Whether a port forwarding leads to the virtual address."""
        return any(forwarding.is_to(address, port.id) for port in self.ports for address in addresses(port))

    @cached_property
    def floating_ip(self) -> FloatingIPRecord | None:
        """The expected floating IP: the given one, that on the port, or that with the name's address."""
        meant = {self.target.given} if self.target.given else set(self.resolved)
        named = (ip for ip in self.view.floating_ips or () if meant & {ip.address, ip.id})
        return (None if self.target.given else self.serving) or next(named, None)

    @property
    def address(self) -> str | None:
        """Where requests should go, as far as known."""
        return self.floating_ip.address if self.floating_ip else self.target.given

    @cached_property
    def direct(self) -> bool:
        """Whether the name is the virtual address itself, as on a provider network."""
        meant = (self.target.given,) if self.target.given else self.resolved
        return self.port is not None and self.serving is None and bool(set(meant) & set(addresses(self.port)))

    @property
    def leads_to(self) -> str | None:
        """The address that its names should have, as far as known."""
        return addresses(self.port)[0] if self.port and self.direct else self.address

    @cached_property
    def nodes(self) -> list[PortRecord]:
        """Ports of the machines that can hold the address: the masters, if there are to be no workers."""
        found = [port for port in self.view.nodes if self.role(port) in self.target.roles]
        instead = self.target.name == "ingress" and not self.awaits_workers
        return found or (self.masters if instead else [])

    @property
    def masters(self) -> list[PortRecord]:
        return [port for port in self.view.nodes if self.role(port) == "master"]

    @cached_property
    def awaits_workers(self) -> bool:
        """Whether workers are still to come, from inside the cluster: the installation has not come that far.

        The installer creates the bootstrap machine and the workers' security group before the first worker; rules
        for the routers in the masters' group only if there are to be no workers.
        """
        roles = {self.role(port) for port in self.view.nodes}
        if self.wanted.compact or "worker" in roles or not roles or self._masters_are_routers:
            return False
        tag = naming.tag(self.infra_id)
        groups = [
            worker_group for worker_group in self.view.worker_groups or () if not foreign_tags(worker_group.tags, tag)
        ]
        return bool(groups) or "bootstrap" in roles

    @property
    def _masters_are_routers(self) -> bool:
        """Whether a rule of the masters' groups is about the routers' ports."""
        known = self.view.groups or {}
        groups = [known[each] for port in self.masters for each in port.security_groups if each in known]
        rules = [rule for group in groups for rule in group.security_group_rules]
        traffic = [
            Traffic(direction="ingress", version=version, protocol="tcp", number=number)
            for version in (4, 6)
            for number in ROUTERS
        ]
        found = [admission(rules, each) for each in traffic]
        return any(each.networks or each.groups or each.address_groups for each in found)

    @cached_property
    def bootstrap(self) -> PortRecord | None:
        """The port of the bootstrap machine, if the machine exists, or may exist."""
        ports = [port for port in self.view.nodes if self.role(port) == "bootstrap"]
        servers = self.view.servers
        return next((port for port in ports if servers is None or port.device_id in servers), None)

    @property
    def to_continue(self) -> str:
        """The commands that finish the installation."""
        return to_continue(self.wanted.folder or Path("DIR"), bootstrap=self.bootstrap is not None)

    def role(self, port: PortRecord) -> str:
        return naming.role(port.name, self.infra_id) or "worker"  # machine sets of any name

    @property
    def repair(self) -> str:
        """The command that attaches floating IPs and writes pairs, without its operands."""
        return shell.join(["openstack-prep", "post-ipi", *self._cloud, "--infra-id", self.infra_id])

    @property
    def attach(self) -> str:
        """The command that attaches the floating IP to the port."""
        return f"{self.repair} {self.target.option} {self.address or 'ADDRESS'}"

    @property
    def client(self) -> str:
        """The openstack client, with the option for the same cloud."""
        return shell.join(["openstack", *self._cloud])

    def add_router(self, subnets: Sequence[str], routers: Sequence[str], external: str | None) -> str:
        """Return the command that gives subnets a router with a gateway on an external network."""
        if external is None:
            return f"add the subnet {' and '.join(subnets)} to a router with an external gateway"
        new = f"{self.infra_id}-router"
        router = routers[0] if routers else new
        create = [] if routers else [f"{self.client} router create --external-gateway {external} {new}"]
        return " && ".join([*create, *(f"{self.client} router add subnet {router} {subnet}" for subnet in subnets)])

    @property
    def _cloud(self) -> Sequence[str]:
        return ("--os-cloud", self.wanted.cloud) if self.wanted.cloud else ()

    @cached_property
    def elsewhere(self) -> str:
        """A hint at the clusters that the project holds instead of this one; empty if it holds this one."""
        clusters = sorted({infra_id for port in self.view.ports for infra_id in naming.infra_ids(port.tags)})
        if self.view.virtual or self.infra_id in clusters:
            return ""
        ports = f"ports of {some(clusters)}" if clusters else "no cluster's ports"
        return f"is the infraID right, and the cloud that of the cluster's project? it holds {ports}"


def addresses(port: PortRecord) -> list[str]:
    return [fixed_ip.ip_address for fixed_ip in port.fixed_ips]


def some(names: Iterable[str]) -> str:
    """Return the first names, and how many more there are."""
    return first_of(names, SHOWN)
