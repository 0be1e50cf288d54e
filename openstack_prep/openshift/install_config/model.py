"""The declaration of a cluster, the same for every release."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import Ge, Le, Len

from openstack_prep.base.fields import Address, Cidr, GiB, Name, Reads, Strict, Text
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.secret import Secret
from openstack_prep.openshift.install_config import releases


def _release(value: object) -> object:
    if isinstance(value, int | float):  # YAML reads 4.20 without quotes as 4.2
        raise InvalidValue("is a number in YAML", 'write the release in quotes, such as "4.20"')
    if isinstance(value, str):
        value = releases.short_name(value)
    return value


Release = Annotated[str, Reads(_release, {"type": "string", "pattern": r"^[45]\.\d+"})]


def _host_prefix(value: object) -> object:
    if isinstance(value, int) and value > 32:
        raise InvalidValue(
            "is more than the 32 bits of an IPv4 address", "write one such as 23; for IPv6, it is always 64"
        )
    return value


def _own_form(value: object) -> object:
    """Refuse IPv4 in the form of IPv6, which Go, and so the installer, takes as IPv4 (net, ParseIP and ParseCIDR)."""
    try:
        given = ipaddress.IPv6Interface(value) if isinstance(value, str) else None
    except ValueError:
        return value
    if given is not None and given.ip.ipv4_mapped is not None:
        length = f"/{max(given.network.prefixlen - 96, 0)}" if "/" in str(value) else ""
        raise InvalidValue("is IPv4 in the form of IPv6", f"write {given.ip.ipv4_mapped}{length}")
    return value


IPAddress = Annotated[Address, Reads(_own_form)]
Network = Annotated[Cidr, Reads(_own_form)]


def _cpu_partitioning(value: object) -> object:
    """Refuse what the installer takes for None without a word (pkg/asset/manifests/topologies.go)."""
    if isinstance(value, str) and value not in ("None", "AllNodes"):
        raise InvalidValue("has the effect of None", "write AllNodes or None")
    return value


Replicas = Annotated[int, Ge(0), Le(1000)]


@dataclass(frozen=True, kw_only=True)
class ResourceReference(Strict):
    """A resource of OpenStack, by its ID, its name, or both: then it is the one that has both."""

    id: Name | None = None
    """ID."""
    name: Name | None = None
    """Name."""


@dataclass(frozen=True, kw_only=True)
class RootVolume(Strict):
    """A volume to boot from, instead of the flavor's disk."""

    size: GiB
    """GiB; at least 25, 100 is recommended."""
    types: Annotated[tuple[Name, ...], Len(1)]
    """Volume types: one for all, or (4.14 and later) as many as zones of the machines, if these have several."""
    zones: tuple[Name, ...] = ()
    """Cinder's availability zones: one for all, or as many as zones of the machines (4.8 and later)."""


@dataclass(frozen=True, kw_only=True)
class Machines(Strict):
    """Properties of all machines, or of one pool."""

    flavor: Name | None = None
    """Name of the flavor."""
    zones: tuple[Name, ...] = ()
    """Nova's availability zones (4.6 and later)."""
    root_volume: RootVolume | None = None
    """A volume to boot from."""
    server_group_policy: Literal["affinity", "soft-affinity", "anti-affinity", "soft-anti-affinity"] | None = None
    """Policy of the server groups (4.9 and later)."""
    additional_networks: tuple[Name, ...] = ()
    """IDs of additional networks (4.5 and later)."""
    additional_security_groups: tuple[Name, ...] = ()
    """IDs of additional security groups (4.5 and later)."""


@dataclass(frozen=True, kw_only=True)
class MachinePool(Machines):
    """A pool of machines: its size, and what differs from other machines."""

    replicas: Replicas = 3
    """Number of machines."""


@dataclass(frozen=True, kw_only=True)
class Proxy(Strict):
    """Proxies for connections from the cluster to the outside."""

    http: Name | None = field(default=None, repr=False)  # the URL may contain a login
    """URL of the proxy for HTTP."""
    https: Name | None = field(default=None, repr=False)
    """URL of the proxy for HTTPS."""
    exceptions: tuple[Name, ...] = ()
    """Domains, addresses and networks that need no proxy."""


@dataclass(frozen=True, kw_only=True)
class Mirror(Strict):
    """Mirrors of an image repository."""

    source: Name
    """Repository in the names of images."""
    mirrors: Annotated[tuple[Name, ...], Len(1)]
    """Repositories with the same images."""


@dataclass(frozen=True, kw_only=True)
class Capabilities(Strict):
    """Optional capabilities to install (4.11 and later)."""

    baseline: Name | None = None
    """None, vCurrent, or the set of a release such as v4.14; required by additional."""
    additional: tuple[Name, ...] = ()
    """Additional capabilities."""


@dataclass(frozen=True, kw_only=True)
class InstallConfigFields(Strict):
    """The content of an install-config, except for file contents; see ``FileContents``."""

    release: Release
    """OpenShift release, in quotes: "4.2" to "4.23", "5.0" and later."""
    cluster_name: Name
    """Name of the cluster, without dots; before 4.12, at most 14 characters."""
    base_domain: Name
    """Base domain; the domain of the cluster is CLUSTER_NAME.BASE_DOMAIN."""
    cloud: Name
    """Entry of clouds.yaml with the credentials of the installer and the cluster."""
    region: str | None = None
    """Name of the region (up to 4.5; later releases read it from clouds.yaml)."""
    external_network: Name | None = None
    """Name of the external network."""
    api_floating_ip: Name | None = None
    """Floating IP of the API."""
    ingress_floating_ip: Name | None = None
    """Floating IP of the ingress routers (4.6 and later)."""
    external_dns: tuple[IPAddress, ...] = ()
    """DNS servers of the subnet of the machines (4.4 and later)."""
    api_vips: tuple[IPAddress, ...] = ()
    """Virtual IP of the API (4.5 and later); two for dual stack."""
    ingress_vips: tuple[IPAddress, ...] = ()
    """Virtual IP of the ingress routers (4.5 and later); two for dual stack."""
    machines_network: ResourceReference | None = None
    """Your own network for the machines (4.15 and later; in 4.14 with TechPreviewNoUpgrade)."""
    machines_subnets: tuple[ResourceReference, ...] = ()
    """Your own subnet for the machines, by ID (4.5 and later) or name (4.15 and later); two for dual stack."""
    load_balancer: Literal["UserManaged", "OpenShiftManagedDefault"] | None = None
    """Load balancer of the API and the ingress routers (4.14 and later; in 4.13 with TechPreviewNoUpgrade)."""
    cluster_os_image: Name | None = field(default=None, repr=False)  # the URL may contain a signature
    """Name of an image in Glance, or the URL of one to upload (4.4 and later)."""
    cluster_os_image_properties: Mapping[str, Text] | None = None
    """Properties of the image that the installer uploads (4.7 and later)."""
    trunks: bool | None = None
    """Whether Neutron supports trunk ports (up to 4.5; later releases detect it)."""
    octavia: bool | None = None
    """Whether the cloud has Octavia (up to 4.5; later releases detect it)."""
    machines: Machines = Machines()
    """Defaults for the machines of all pools."""
    control_plane: MachinePool = MachinePool()
    """The control plane."""
    compute: MachinePool = MachinePool()
    """The workers; with 0 replicas, workloads run on the control plane."""
    network_type: Name | None = None
    """Network plug-in; default: OpenShiftSDN up to 4.11, OVNKubernetes since 4.12."""
    machine_networks: Annotated[tuple[Network, ...], Len(1)] = ("10.0.0.0/16",)
    """Networks of the machines."""
    cluster_networks: Annotated[tuple[Network, ...], Len(1)] = ("10.128.0.0/14",)
    """Networks of the pods."""
    service_networks: Annotated[tuple[Network, ...], Len(1)] = ("172.30.0.0/16",)
    """Networks of the services."""
    host_prefix: Annotated[int, Ge(1), Le(32), Reads(_host_prefix)] = 23
    """Prefix length of a machine's part of the IPv4 networks of pods; 64 for IPv6."""
    ovn_join_subnet: Cidr | None = None
    """IPv4 network inside OVN-Kubernetes, instead of 100.64.0.0/16 (4.18 and later)."""
    proxy: Proxy | None = field(default=None, repr=False)
    """Proxies for connections from the cluster to the outside."""
    image_mirrors: tuple[Mirror, ...] = field(default=(), repr=False)
    """Mirrors of image repositories."""
    additional_trust_bundle_policy: Literal["Proxyonly", "Always"] | None = None
    """When machines trust the additional CA certificates (4.12 and later)."""
    fips: bool | None = None
    """Whether only FIPS-validated cryptography is used (4.3 and later)."""
    publish: Literal["External", "Internal"] | None = None
    """How endpoints are published (4.3 and later); OpenStack supports only External."""
    capabilities: Capabilities | None = None
    """Optional capabilities to install (4.11 and later)."""
    cpu_partitioning: Annotated[Literal["None", "AllNodes"], Reads(_cpu_partitioning)] | None = None
    """Whether workloads are pinned to CPUs (4.13 and later)."""
    feature_set: Name | None = None
    """Feature set, such as TechPreviewNoUpgrade (4.12 and later)."""
    feature_gates: tuple[Name, ...] = ()
    """Feature gates of CustomNoUpgrade, such as OSStreams=true (4.14 and later)."""
    os_image_stream: Literal["rhel-9", "rhel-10", "centos-10"] | None = None
    """Stream of the machines' operating system (5.0 and later; in 4.22 with TechPreviewNoUpgrade); centos-10 is OKD's.
    Default: rhel-9 of 4.22 and 4.23, rhel-10 since 5.0.
    """


@dataclass(frozen=True, kw_only=True)
class FileContents:
    """The contents of files."""

    pull_secret: Secret | None = None
    """JSON with the logins to image registries."""
    ssh_key: str | None = None
    """SSH public key of the machines' user core."""
    additional_trust_bundle: str | None = None
    """CA certificates, PEM."""
