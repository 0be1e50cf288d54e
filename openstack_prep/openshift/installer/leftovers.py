"""Tell which resources of a project belong to one cluster: by tag, metadata and exact names.  Pure.

Source: OpenShift installer docs/source, "What gets created, names and tags" and what its ``destroy``
looks for (4.21, pkg/destroy/openstack/openstack.go); cloud-provider-openstack, to which OpenShift gives the infraID as
the cluster's name.

A name never decides against a tag of another cluster: ``dev-x7k2p`` and ``dev-x7k2p-web-b3c4d`` may be in one
project.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from openstack_prep.base.raw import Raw
from openstack_prep.resources.lists import installer_names as naming
from openstack_prep.resources.lists.cloud_provider_names import CSI, cluster_of
from openstack_prep.resources.lists.installer_names import TAG

GUESTS = "k8s-clusterapi-cluster-openshift-cluster-api-guests-"
MACHINE = r"(master|worker|bootstrap)(-.+)?"
NAMES = {
    "network": ("{id}-openshift", GUESTS + "{id}"),
    "subnet": ("{id}-nodes", GUESTS + "{id}"),
    "router": ("{id}-external-router", GUESTS + "{id}"),
    "port": ("{id}-(api-port|ingress-port)", "{id}-" + MACHINE),
    "trunk": ("{id}-" + MACHINE,),
    "security_group": ("{id}-(master|worker)",),
    "server_group": ("{id}-master", "{id}-worker(-.+)?"),
    "image": ("{id}-(rhcos|ignition)",),
    "volume": ("{id}-dynamic-pvc-.+", "{id}-" + MACHINE),
    "volume_snapshot": (),
}
"""Full names that the installer gives: patterns around the infraID, for resources without a tag."""


@dataclass(frozen=True)
class Owned:
    """Tells what belongs to a cluster, given the other clusters of the project."""

    infra_id: str
    others: frozenset[str] = frozenset()
    """InfraIDs of clusters whose names begin with this one's: dev-x7k2p-web-b3c4d."""

    def owns(self, thing: str, raw: Raw) -> bool:
        """Whether a resource, as its API describes it, belongs to the cluster."""
        return _BY[thing](self, raw) if thing in _BY else self._by_tag(thing, raw)

    def _by_tag(self, thing: str, raw: Raw) -> bool:
        tag, tags = naming.tag(self.infra_id), raw["tags"]
        if tag in tags:
            return True
        return not naming.foreign_tags(tags, tag) and self._named(thing, raw)

    def _named(self, thing: str, raw: Raw) -> bool:
        name = raw.get("name") or ""
        if any(name.startswith(f"{other}-") for other in self.others):
            return False
        patterns = (each.format(id=re.escape(self.infra_id)) for each in NAMES[thing])
        return any(re.fullmatch(each, name) for each in patterns)

    def _by_metadata(self, thing: str, raw: Raw) -> bool:
        infra_ids = [raw["metadata"][key] for key in (TAG, CSI) if key in raw["metadata"]]
        return self.infra_id in infra_ids if infra_ids else self._named(thing, raw)

    def _port(self, raw: Raw) -> bool:
        """Ports of Neutron itself, such as a router's, are deleted with their device."""
        return not raw["device_owner"].startswith("network:") and self._by_tag("port", raw)

    def _server(self, raw: Raw) -> bool:
        return bool(raw["metadata"].get(TAG) == self.infra_id)

    def _floating_ip(self, raw: Raw) -> bool:
        """That of the bootstrap machine; the user's floating IPs have neither its tag nor its description."""
        tagged = naming.tag(self.infra_id) in raw["tags"]
        return tagged or raw["description"] == f"{self.infra_id}-bootstrap-fip"

    def _load_balancer(self, raw: Raw) -> bool:
        """Load balancers of Services name their cluster; others have the infraID as a word in their description."""
        cluster = cluster_of("load_balancer", raw)
        return cluster == self.infra_id if cluster else self._mentions(raw.get("description") or "")

    def _security_group(self, raw: Raw) -> bool:
        """Groups of Services have no tag, and the installer's own destroy leaves them."""
        return cluster_of("security_group", raw) == self.infra_id or self._by_tag("security_group", raw)

    def _mentions(self, text: str) -> bool:
        return re.search(rf"(?<![-a-z0-9.]){re.escape(self.infra_id)}(?![-a-z0-9.])", text) is not None

    def _container(self, raw: Raw) -> bool:
        """Registry containers; ``raw`` has the metadata by lowercase key."""
        return bool(raw["metadata"].get(TAG.lower()) == self.infra_id)


_BY: dict[str, Callable[[Owned, Raw], bool]] = {
    "server": Owned._server,
    "port": Owned._port,
    "floating_ip": Owned._floating_ip,
    "load_balancer": Owned._load_balancer,
    "security_group": Owned._security_group,
    "container": Owned._container,
    "server_group": lambda owned, raw: owned._named("server_group", raw),
    "volume": lambda owned, raw: owned._by_metadata("volume", raw),
    "volume_snapshot": lambda owned, raw: owned._by_metadata("volume_snapshot", raw),
}


def infra_ids(things: Iterable[Raw]) -> Iterator[str]:
    """Yield the infraIDs in tags and metadata."""
    for raw in things:
        yield from (each.partition("=")[2] for each in raw.get("tags") or () if each.startswith(f"{TAG}="))
        metadata = raw.get("metadata") or {}
        yield from (metadata[key] for key in (TAG, CSI) if metadata.get(key))
