"""Allowed address pairs of ports: ours are made sure of, everybody else's stay.

Source: Networking API v2.0, "Allowed address pairs" and "Revisions".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import tenacity

from openstack_prep.errors import CloudError, Mistake, NotFound
from openstack_prep.fields import Block, Mac, Name, block
from openstack_prep.installer import naming
from openstack_prep.installer.naming import Role
from openstack_prep.model import Change, Key, Observed
from openstack_prep.resources.port import ports_of
from openstack_prep.resources.project import ByTenant
from openstack_prep.site import Site, only_one

JOBS = 4
"""Ports changed at a time, within one step."""
ATTEMPTS = 20
"""How often one port is read again because somebody else changed it: other writers mean us no harm."""
PAUSE = 1.0
"""Seconds at most before the second attempt, doubled before each further one up to five."""
DISTRIBUTED = "network:distributed"

Raw = Mapping[str, Any]
Pair = tuple[str, str]
"""Address or network, and MAC address."""


@dataclass(frozen=True, kw_only=True)
class AddressPairs(ByTenant):
    """Addresses that ports may use besides their own, such as the virtual ones of a cluster.

    Say which ports by one of ``ports``, ``infra_id`` and ``tag``.  Pairs carry no mark: ours are the
    declared ones, and destroy takes just those away, whoever else wanted them too.
    """

    kind: ClassVar[str] = "address_pairs"

    name: Name
    """What this spec calls them."""
    addresses: tuple[Block, ...]
    """Addresses and networks to allow."""
    ports: tuple[Name, ...] = ()
    """Names of the ports, each exact and unique in the project."""
    infra_id: Name | None = None
    """InfraID of an OpenShift cluster: its masters', workers' and bootstrap's ports on the cluster's own network."""
    tag: Name | None = None
    """Tag of the ports."""
    roles: tuple[Role, ...] = ()
    """With infra_id or tag: only ports of these roles, which show in their names."""
    mac_address: Mac | None = None
    """MAC address of the pairs; default: each port's own."""

    def desired(self) -> dict[str, Any]:
        return {"addresses": frozenset(map(block, self.addresses))}

    # --- what is there --------------------------------------------------------------------

    def chosen(self, site: Site) -> list[Raw]:
        """Return the ports that exist of those meant."""
        listed = ports_of(site, site.find_project_id(self.owner))
        if self.ports:
            named = {name: [port for port in listed if port["name"] == name] for name in self.ports}
            found = [only_one(matches, f"{self.key}: port {name}") for name, matches in named.items()]
            return [port for port in found if port is not None]
        infra_id = self.infra_id or ""
        meant = _nodes(listed, infra_id) if infra_id else [port for port in listed if self.tag in port["tags"]]
        return [port for port in meant if not self.roles or naming.role(port["name"], infra_id) in self.roles]

    def _declared(self, port: Raw) -> dict[Pair, str]:
        """Return the pairs to have on a port, with the address of each as declared."""
        mac = (self.mac_address or port["mac_address"]).lower()
        return {(address, mac): address for address in map(block, self.addresses)}

    def _missing(self, port: Raw) -> list[str]:
        there = {_pair(raw) for raw in port["allowed_address_pairs"]}
        return [address for pair, address in self._declared(port).items() if pair not in there]

    @classmethod
    def find(cls, site: Site, wanted: Sequence[Self]) -> Mapping[Key, Observed]:
        found = {}
        for each in wanted:
            ports = each.chosen(site)
            if any(len(each._missing(port)) < len(each.desired()["addresses"]) for port in ports):
                found[each.key] = each._observe(ports)
        return found

    def _observe(self, ports: Sequence[Raw]) -> Observed:
        lacking = {address for port in ports for address in self._missing(port)}
        return Observed(
            id=f"{len(ports)} ports",
            ours=True,
            values={"addresses": self.desired()["addresses"] - lacking},
            handle={"ports": ports},
        )

    # --- what would go wrong --------------------------------------------------------------

    def check(self, site: Site, observed: Observed | None) -> Iterable[Mistake]:
        if sum(map(bool, (self.ports, self.infra_id, self.tag))) != 1:
            yield self.mistake("does not say which ports", "give one of ports, infra_id, tag")
            return
        ports = self.chosen(site)
        for name in sorted(set(self.ports) - {port["name"] for port in ports}):
            yield self.mistake(f"no port {name} in the project", "correct the name")
        if not ports and not self.ports:
            tag = self.tag or naming.tag(self.infra_id or "")
            which = " or ".join(self.roles) if self.roles else "node"
            yield self.mistake(f"no {which} port in the project carries the tag {tag}", "correct it, or wait for them")
        for port in ports:
            if not port.get("port_security_enabled", True):
                off = f"port security is off on port {port['name']} {port['id']}: nothing is filtered there"
                yield self.mistake(off, "take it out here, or switch port security on")
        networks = {port["network_id"] for port in ports if self._missing(port)}
        yield from self._check_distributed(site, networks)

    def _check_distributed(self, site: Site, networks: set[str]) -> Iterable[Mistake]:
        """Yield the addresses that OVN keeps for its own ports on every node.

        Neutron refuses them since 2025.1.  Its first releases refuse wider networks around such an
        address too, later ones do not, and the API does not tell which: there, Neutron's own word
        stands.
        """
        if not networks:
            return
        query = {"device_owner": DISTRIBUTED, "network_id": sorted(networks), "fields": ["id", "fixed_ips"]}
        listed = site.once(
            ("distributed ports", *query["network_id"]), lambda: site.admin.network.list("/ports", "ports", **query)
        )
        for port in listed:
            for address in sorted(self.desired()["addresses"] & {fixed["ip_address"] for fixed in port["fixed_ips"]}):
                kept = f"{address} belongs to port {port['id']} ({DISTRIBUTED}), and Neutron allows it to no other"
                yield self.mistake(kept, "choose another address")

    # --- the verbs ------------------------------------------------------------------------

    def create(self, site: Site) -> Observed:
        return self._everywhere(site, self.chosen(site), self._with_ours)

    def update(self, site: Site, observed: Observed, changes: Sequence[Change]) -> Observed:
        return self._everywhere(site, observed.handle["ports"], self._with_ours)

    def delete(self, site: Site, observed: Observed) -> None:
        self._everywhere(site, observed.handle["ports"], self._without_ours, gone_is_well=True)

    def _with_ours(self, port: Raw) -> list[dict[str, str]]:
        mac = {"mac_address": self.mac_address} if self.mac_address else {}
        return [*port["allowed_address_pairs"], *({"ip_address": each, **mac} for each in self._missing(port))]

    def _without_ours(self, port: Raw) -> list[dict[str, str]]:
        ours = self._declared(port)
        return [raw for raw in port["allowed_address_pairs"] if _pair(raw) not in ours]

    def _everywhere(
        self, site: Site, ports: Sequence[Raw], pairs: Callable[[Raw], list[dict[str, str]]], gone_is_well: bool = False
    ) -> Observed:
        """Give every port its pairs, some at a time; all have ended when the first failure is raised."""

        def change(port: Raw) -> Raw:
            try:
                return self._change(site, port, pairs)
            except NotFound:
                if gone_is_well:
                    return {**port, "allowed_address_pairs": []}
                raise

        with ThreadPoolExecutor(JOBS) as pool:
            changes = [pool.submit(change, port) for port in ports]  # map would call the rest off
        return self._observe([each.result() for each in changes])

    def _change(self, site: Site, port: Raw, pairs: Callable[[Raw], list[dict[str, str]]]) -> Raw:
        """Send a port's pairs unless somebody changed it since we looked; then look at that port again.

        The executor would read all ports of the project for it, and give up after a few.
        """
        cloud, _ = site.worker(self.owner)
        path = f"/ports/{port['id']}"
        for attempt in tenacity.Retrying(
            retry=tenacity.retry_if_exception(lambda error: isinstance(error, CloudError) and error.status == 412),
            stop=tenacity.stop_after_attempt(ATTEMPTS),
            wait=tenacity.wait_random_exponential(PAUSE, max=5 * PAUSE),
            reraise=True,
        ):
            with attempt:
                if attempt.retry_state.attempt_number > 1:
                    port = cloud.network.get(path)["port"]
                wanted = pairs(port)
                if wanted != port["allowed_address_pairs"]:
                    condition = {"If-Match": f"revision_number={port['revision_number']}"}
                    body = {"port": {"allowed_address_pairs": wanted}}
                    port = cloud.network.put(path, body, headers=condition)["port"]
        return port


def _nodes(listed: Sequence[Raw], infra_id: str) -> list[Raw]:
    """Return a cluster's node ports; those on additional networks carry no virtual address."""
    networks = {port["network_id"] for port in listed if naming.is_virtual(port, infra_id)}
    nodes = [port for port in listed if naming.is_node(port, infra_id)]
    return [port for port in nodes if not networks or port["network_id"] in networks]


def _pair(raw: Mapping[str, str]) -> Pair:
    return str(block(raw["ip_address"])), raw["mac_address"].lower()
