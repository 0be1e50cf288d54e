"""What a user declares of a cluster: the same words for every release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, Le, Len

from openstack_prep.base.fields import Address, Cidr, GiB, Name, Reads, Text
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.secret import Secret
from openstack_prep.openshift.install_config import releases

STRICT = {"extra": "forbid", "strict": True}


def _release(value: object) -> object:
    if isinstance(value, int | float):  # 4.20 without quotes is 4.2
        raise InvalidValue("is a number to YAML", 'write the release in quotes, such as "4.20"')
    if isinstance(value, str):
        value = f"4.{releases.minor(value)}"
    return value


Release = Annotated[str, Reads(_release, {"type": "string", "pattern": r"^4\.\d+"})]
Replicas = Annotated[int, Ge(0), Le(1000)]


@dataclass(frozen=True, kw_only=True)
class Reference:
    """Something in OpenStack by its id or its name, one of them."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    id: Name | None = None
    """Its id."""
    name: Name | None = None
    """Its name."""


@dataclass(frozen=True, kw_only=True)
class RootVolume:
    """A volume to boot from, in place of the flavor's disk."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    size: GiB
    """GiB; 25 at least, 100 is recommended."""
    types: Annotated[tuple[Name, ...], Len(1)]
    """Volume types: one for all, or (4.14 and later) as many as zones."""
    zones: tuple[Name, ...] = ()
    """Cinder's availability zones: one for all, or as many as zones (4.8 and later)."""


@dataclass(frozen=True, kw_only=True)
class Machines:
    """What machines are like: all of them, or those of one pool."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    flavor: Name | None = None
    """Name of their flavor."""
    zones: tuple[Name, ...] = ()
    """Nova's availability zones (4.6 and later)."""
    root_volume: RootVolume | None = None
    """A volume to boot from."""
    server_group_policy: Literal["affinity", "soft-affinity", "anti-affinity", "soft-anti-affinity"] | None = None
    """Policy of their server groups (4.9 and later)."""
    additional_networks: tuple[Name, ...] = ()
    """Ids of further networks (4.5 and later)."""
    additional_security_groups: tuple[Name, ...] = ()
    """Ids of further security groups (4.5 and later)."""


@dataclass(frozen=True, kw_only=True)
class Pool(Machines):
    """A pool of machines: how many, and what is different from the others."""

    replicas: Replicas = 3
    """How many machines."""


@dataclass(frozen=True, kw_only=True)
class Proxy:
    """The way out of the cluster."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    http: Name | None = None
    """URL of the proxy for HTTP."""
    https: Name | None = None
    """URL of the proxy for HTTPS."""
    exceptions: tuple[Name, ...] = ()
    """Domains, addresses and networks to reach without it."""


@dataclass(frozen=True, kw_only=True)
class Mirror:
    """Where images are pulled from instead of their source."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    source: Name
    """Repository as images name it."""
    mirrors: Annotated[tuple[Name, ...], Len(1)]
    """Repositories that hold the same."""


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """Which optional parts are installed (4.11 and later)."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    baseline: Name | None = None
    """None, vCurrent, or the set of a release such as v4.14."""
    additional: tuple[Name, ...] = ()
    """Capabilities besides."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """What an install-config says, apart from the pull secret and the like; see ``Contents``."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    release: Release
    """OpenShift's release, in quotes: "4.2" to "4.21"."""
    cluster_name: Name
    """Name of the cluster, without dots; 14 characters at most before 4.12."""
    base_domain: Name
    """Domain in which the cluster's own lies."""
    cloud: Name
    """Entry of clouds.yaml by which the installer, and the cluster, log in."""
    region: str | None = None
    """Name of the region (up to 4.5; later ones take it from clouds.yaml)."""
    external_network: Name | None = None
    """Name of the external network."""
    api_floating_ip: Name | None = None
    """Floating IP of the API."""
    ingress_floating_ip: Name | None = None
    """Floating IP of the routers (4.6 and later)."""
    external_dns: tuple[Address, ...] = ()
    """DNS servers of the machines' subnet (4.4 and later)."""
    api_vips: tuple[Address, ...] = ()
    """Address of the API among the machines (4.5 and later); two with two stacks."""
    ingress_vips: tuple[Address, ...] = ()
    """Address of the routers among the machines (4.5 and later); two with two stacks."""
    machines_network: Reference | None = None
    """Your own network for the machines (4.14 and later)."""
    machines_subnets: tuple[Reference, ...] = ()
    """Your own subnet for the machines: by id (4.5 and later) or name (4.14 and later); two with two stacks."""
    load_balancer: Literal["UserManaged", "OpenShiftManagedDefault"] | None = None
    """Who balances load before the API and the routers (4.13 and later)."""
    cluster_os_image: Name | None = None
    """Name of an image in Glance, or the URL of one to upload (4.4 and later)."""
    cluster_os_image_properties: Mapping[str, Text] | None = None
    """Properties of the image that is uploaded (4.7 and later)."""
    trunks: bool | None = None
    """Whether Neutron has trunk ports (up to 4.5; later ones find out)."""
    octavia: bool | None = None
    """Whether there is Octavia (up to 4.5; later ones find out)."""
    machines: Machines = Machines()
    """What all machines are like, if their pool does not say otherwise."""
    control_plane: Pool = Pool()
    """The control plane."""
    compute: Pool = Pool()
    """The workers; with 0 replicas the control plane does their work."""
    network_type: Name | None = None
    """Network plug-in; default: the release's, OpenShiftSDN up to 4.11 and OVNKubernetes since."""
    machine_networks: Annotated[tuple[Cidr, ...], Len(1)] = ("10.0.0.0/16",)
    """Networks of the machines."""
    cluster_networks: Annotated[tuple[Cidr, ...], Len(1)] = ("10.128.0.0/14",)
    """Networks of the pods."""
    service_networks: Annotated[tuple[Cidr, ...], Len(1)] = ("172.30.0.0/16",)
    """Networks of the services."""
    host_prefix: Annotated[int, Ge(1), Le(32)] = 23
    """Length of the prefix of a machine's part of the IPv4 networks of pods; of IPv6 it is 64."""
    proxy: Proxy | None = None
    """The way out of the cluster."""
    image_mirrors: tuple[Mirror, ...] = ()
    """Mirrors of image repositories."""
    additional_trust_bundle_policy: Literal["Proxyonly", "Always"] | None = None
    """When machines trust the additional bundle (4.12 and later)."""
    fips: bool | None = None
    """Whether only FIPS-validated cryptography is used (4.3 and later)."""
    publish: Literal["External", "Internal"] | None = None
    """How endpoints are published (4.3 and later); OpenStack has External only."""
    capabilities: Capabilities | None = None
    """Which optional parts are installed (4.11 and later)."""
    cpu_partitioning: Literal["None", "AllNodes"] | None = None
    """Whether workloads are pinned to CPUs (4.13 and later)."""
    feature_set: Name | None = None
    """Features beyond the default, such as TechPreviewNoUpgrade (4.13 and later)."""


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What comes from files."""

    pull_secret: Secret | None = None
    """JSON that lets the cluster pull images."""
    ssh_key: str | None = None
    """SSH public key of the machines' user core."""
    additional_trust_bundle: str | None = None
    """CA certificates, PEM."""
