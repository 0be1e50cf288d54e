"""After ``openshift-install create cluster``: floating IPs on the virtual ports, address pairs on the nodes."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from openstack_prep.base.errors import CloudError, Mistake, SpecError
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.lease import LOCK_TIMEOUT
from openstack_prep.clusters.installer_names import TAG, tag
from openstack_prep.core.plan import Report
from openstack_prep.openshift import cluster as openshift
from openstack_prep.openshift.cluster import ClusterAddresses, Metadata, wait_for_port
from openstack_prep.resources.addresses.floating_ip_attachment import FloatingIPAttachment
from openstack_prep.resources.lists.nova_records import list_servers
from openstack_prep.spec import Spec
from openstack_prep.verbs import api


def post_ipi(
    cloud: Cloud,
    *,
    metadata: str | Path | None = None,
    infra_id: str | None = None,
    ingress_floating_ip: str | None = None,
    api_floating_ip: str | None = None,
    vips: Sequence[str] = (),
    wait: float = 0,
    move: bool = False,
    lock_timeout: float = LOCK_TIMEOUT,
) -> Report:
    """Do what the installer leaves undone, in the project that the connection ``cloud`` is scoped to.

    The cluster is identified by ``metadata`` (the path of its metadata.json, or its folder) or ``infra_id``.
    ``ingress_floating_ip`` and ``api_floating_ip`` are addresses or ids of floating IPs to attach; ``vips`` are further
    virtual addresses, such as 192.168.10.200, to allow on the nodes' ports. ``wait``: seconds to wait for the virtual
    ports. ``move``: allow moving a floating IP from another port. ``lock_timeout``: seconds to wait for another run for
    the same cluster, then LeaseHeld is raised. What is correct already is not changed. Raises SpecError, WaitTimeout,
    PlanRefused.
    """
    addresses = ClusterAddresses(ingress_floating_ip=ingress_floating_ip, api_floating_ip=api_floating_ip, vips=vips)
    spec = spec_of(openshift.cluster(metadata, infra_id), addresses, move=move)
    wait_for_ports(cloud, spec, wait)
    return api.apply(cloud, spec, lock_timeout=lock_timeout)


def spec_of(metadata: Metadata, addresses: ClusterAddresses, *, move: bool = False) -> Spec:
    """Return the floating IPs to attach and the pairs to add, with the infraID as ownership tag; raises SpecError."""
    if not addresses.all:
        fix = "pass an address for ingress or the API, or virtual addresses"
        raise SpecError([Mistake("post-ipi", "nothing to do", fix)])
    return Spec(metadata.infra_id, addresses.resources(metadata.infra_id, move=move))


def find_bootstrap(cloud: Cloud, infra_id: str) -> str | None:
    """Return the name of the bootstrap machine, if it exists, as far as servers can be listed."""
    name = f"{infra_id}-bootstrap"
    try:
        servers = list_servers(cloud, name=f"^{name}$")
    except CloudError:
        return None
    return name if any(server.metadata.get(TAG) == infra_id and server.name == name for server in servers) else None


def wait_for_ports(cloud: Cloud, spec: Spec, seconds: float, stop: threading.Event | None = None) -> None:
    """Wait for the ports to attach to, before planning: so that the plan is complete, and Ctrl-C ends it."""
    for resource in spec.resources:
        if isinstance(resource, FloatingIPAttachment) and seconds > 0:
            wait_for_port(cloud, resource.port, tag=tag(spec.name), seconds=seconds, stop=stop)
