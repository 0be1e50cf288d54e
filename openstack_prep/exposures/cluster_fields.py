"""A cluster that requests from outside reach: where its nodes are, and where the files for it go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, ClassVar

from openstack_prep.base.fields import File, Name, Strict
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.core.model import Resource
from openstack_prep.core.resource import Coherent, Unguarded
from openstack_prep.exposures.endpoint import Label
from openstack_prep.exposures.external_ips import ExternalIPs
from openstack_prep.exposures.names import ExposureNames
from openstack_prep.exposures.service_host import ServiceHost
from openstack_prep.exposures.virtualization import Virtualization
from openstack_prep.kubernetes.versions import ANY_VERSION
from openstack_prep.resources.identity.in_project import InProject


@dataclass(frozen=True, kw_only=True)
class NodeSelection(Strict, Coherent):
    """Servers of OpenStack that are the nodes of a cluster: exactly one field is set."""

    stack: Name | None = None
    """Stack whose servers are the nodes."""
    infra_id: Name | None = None
    """InfraID of an OpenShift cluster."""
    tag: Name | None = None
    """Tag of the nodes' ports."""
    security_group: Name | None = None
    """Security group of the nodes' ports."""
    ports: tuple[Name, ...] = ()
    """Names of the nodes' ports."""

    @property
    def choice(self) -> Mapping[str, object]:
        """The one way in which ports are selected, as a field of address pairs."""
        return {each.name: value for each in fields(self) if (value := getattr(self, each.name))}

    def contradictions(self) -> Iterable[InvalidValue]:
        if len(self.choice) != 1:
            ways = ", ".join(each.name for each in fields(self))
            yield InvalidValue("nodes are selected in exactly one way", f"set one of {ways}")


@dataclass(frozen=True, kw_only=True)
class ClusterFields(InProject, Unguarded):
    """The fields of an exposed cluster."""

    kind: ClassVar[str] = "exposed_cluster"

    name: Label
    """Name, to which exposures refer."""
    directory: File
    """Folder for the files of the cluster; each cluster needs its own."""
    nodes: NodeSelection | None = None
    """Its nodes, if they are servers of this cloud: they get address pairs for the exposures."""
    open_in: Name | None = None
    """Security group in which the ports of the exposures are opened."""
    router: Name | None = None
    """Router of this spec that gets the static routes of external_ips to given addresses."""
    kubernetes_version: Annotated[Name, ANY_VERSION] | None = None
    """Version of Kubernetes, such as v1.36.2: which objects and fields it has."""
    names: ExposureNames = field(default_factory=ExposureNames)
    """Files and recordsets that make the exposures' names known."""
    service_host: ServiceHost | None = None
    """Services machine with BIND and HAProxy, for exposures with how: service-host."""
    external_ips: ExternalIPs | None = field(default=None, repr=False)
    """Nodes that carry addresses, for exposures with how: external-ip."""
    virtualization: Virtualization | None = None
    """Bridges and networks of virtual machines, for exposures that lead to virtual machines."""

    @property
    def needs_cloud(self) -> bool:
        return any((self.owner, self.nodes, self.open_in, self.router, self.names.designate))


def declared_cluster(cluster: ClusterFields, resources: Iterable[Resource]) -> Any | None:
    """Return the RKE cluster of the spec that has these nodes: that of their stack, else the one with the same name."""
    mine = cluster.of_project(
        resource for resource in resources if isinstance(resource, InProject) and resource.kind == "rke_cluster"
    )
    if cluster.nodes and cluster.nodes.stack:
        return next((project for project in mine if getattr(project, "stack", None) == cluster.nodes.stack), None)
    return next((project for project in mine if project.name == cluster.name), None)
