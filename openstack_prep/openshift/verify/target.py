"""What to verify: the two paths to a cluster, by the user's options and install-config.yaml."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypedDict

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.clusters import installer_names as naming
from openstack_prep.neutron.rules import Block
from openstack_prep.openshift import cluster as openshift
from openstack_prep.openshift.cluster import Metadata, find_metadata
from openstack_prep.openshift.install_config import InstallConfigValues

ROUTES = ("console-openshift-console", "oauth-openshift")
"""First labels below ``apps`` that are looked up: a person needs both to reach the console."""


@dataclass(frozen=True, kw_only=True)
class VerifiedService:
    """One of the two services of a cluster that are called from outside."""

    name: Literal["api", "ingress"]
    port: str
    """Name of the port of its virtual address."""
    option: str
    """What ``post-ipi`` calls its floating IP."""
    tcp: tuple[int, ...]
    """TCP ports that answer."""
    roles: tuple[str, ...]
    """Roles of the machines that can hold the virtual address."""
    hosts: tuple[str, ...]
    """Its host names; empty if the domain is not known."""
    given: str | None
    """The floating IP, by address or id, that should serve it."""
    virtual: tuple[str, ...] = ()
    """Its virtual addresses, if install-config.yaml names them."""

    @property
    def url(self) -> str:
        port = ":6443" if self.name == "api" else ""
        return f"https://{self.hosts[0]}{port}" if self.hosts else f"TCP {', '.join(map(str, self.tcp))}"


@dataclass(frozen=True, kw_only=True)
class VerificationRequest:
    """What to verify."""

    metadata: Metadata
    targets: tuple[VerifiedService, ...]
    cluster_name: str
    """Name in install-config.yaml, or as far as the infraID keeps it."""
    base_domain: str | None = None
    """Domain that the cluster's own lies in."""
    user_managed: bool = False
    """Whether install-config.yaml says that somebody else balances load."""
    compact: bool = False
    """Whether install-config.yaml says that there are to be no workers."""
    folder: Path | None = None
    """The installer's folder; None if the cluster is given by its infraID."""
    cloud: str | None = None
    """Entry of clouds.yaml that commands have to name; None: the environment does."""
    source: Block | None = None
    """From where requests come; None: from anywhere."""


class ClusterOptions(TypedDict, total=False):
    """Which cluster to verify, and what its installer's files do not show."""

    metadata: str | Path | None
    """Path of metadata.json, or the folder that holds it."""
    infra_id: str | None
    """The cluster's infraID, without its metadata.json."""
    api_floating_ip: str | None
    """Floating IP of the API, by address or id."""
    ingress_floating_ip: str | None
    """Floating IP of the routers, by address or id."""
    install_config: Path | None
    """An install-config.yaml of the cluster."""
    base_domain: str | None
    """Domain that the cluster's own is in."""
    cluster_name: str | None
    """Name in install-config.yaml."""
    source: str | None
    """Address or network that requests come from; without one, from anywhere."""
    cloud: str | None
    """Entry of clouds.yaml for the commands in ``fix``, if not that of metadata.json."""


def wanted(
    *,
    metadata: str | Path | None = None,
    infra_id: str | None = None,
    api_floating_ip: str | None = None,
    ingress_floating_ip: str | None = None,
    install_config: Path | None = None,
    base_domain: str | None = None,
    cluster_name: str | None = None,
    source: str | None = None,
    cloud: str | None = None,
) -> VerificationRequest:
    """Return what to verify; raises SpecError that lists all mistakes in what was given."""
    mistakes: list[Mistake] = []
    cluster, settings, caller = None, Settings(), None
    try:
        cluster = openshift.cluster(metadata, infra_id)
    except SpecError as error:
        mistakes += error.mistakes
    try:
        settings = read_install_config(install_config) if install_config else settings
    except SpecError as error:
        mistakes += error.mistakes
    try:
        caller = ipaddress.ip_network(source, strict=False) if source else None
    except ValueError:
        mistakes.append(Mistake("from", f"{source!r} is not an IP address or network", "use one such as 203.0.113.7"))
    mistakes += _contradictions(cluster, settings)
    if base_domain and not (cluster_name or settings.cluster_name or metadata):
        mistakes += _cut(cluster)
    if mistakes or cluster is None:
        raise SpecError(mistakes)
    name = cluster_name or settings.cluster_name or cluster.cluster_name
    parent = base_domain or settings.base_domain
    domain = f"{name}.{parent.strip('.')}" if parent else None
    return VerificationRequest(
        metadata=cluster,
        cluster_name=name,
        base_domain=parent,
        targets=(
            _api(cluster.infra_id, domain, settings, api_floating_ip),
            _ingress(cluster.infra_id, domain, settings, ingress_floating_ip),
        ),
        user_managed=settings.user_managed,
        compact=settings.compact,
        folder=find_metadata(metadata).parent if metadata else None,
        source=caller,
        cloud=cloud or cluster.cloud,
    )


def _api(infra_id: str, domain: str | None, settings: Settings, given: str | None) -> VerifiedService:
    return VerifiedService(
        name="api",
        port=naming.api_port(infra_id),
        option="--api-ip",
        tcp=(6443,),
        roles=("master", "bootstrap"),
        hosts=(f"api.{domain}",) if domain else (),
        given=_plain(given or settings.api_floating_ip),
        virtual=settings.api_vips,
    )


def _ingress(infra_id: str, domain: str | None, settings: Settings, given: str | None) -> VerifiedService:
    return VerifiedService(
        name="ingress",
        port=naming.ingress_port(infra_id),
        option="--ingress-ip",
        tcp=(80, 443),
        roles=("worker",),
        hosts=tuple(f"{route}.apps.{domain}" for route in ROUTES) if domain else (),
        given=_plain(given or settings.ingress_floating_ip),
        virtual=settings.ingress_vips,
    )


def _plain(given: str | None) -> str | None:
    """Return an address in its plain form, or an id as it is."""
    try:
        return str(ipaddress.ip_address(given)) if given else None
    except ValueError:
        return given


def _contradictions(cluster: Metadata | None, settings: Settings) -> Iterator[Mistake]:
    if cluster is None or not settings.cluster_name:
        return
    if naming.stem(settings.cluster_name) != cluster.infra_id.rpartition("-")[0]:
        what = f"belongs to cluster {settings.cluster_name}, not to {cluster.infra_id}"
        yield Mistake("install-config", what, "give this cluster's file")


def _cut(cluster: Metadata | None) -> Iterator[Mistake]:
    """Yield a mistake if the infraID may have truncated the cluster's name."""
    if cluster is not None and len(cluster.cluster_name) == naming.LONGEST_STEM:
        what = (
            f"{cluster.cluster_name} may be truncated, because the infraID {cluster.infra_id} keeps only its beginning"
        )
        yield Mistake("cluster-name", what, "give the full name")


# --- install-config.yaml ------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What an install-config says of the paths to its cluster."""

    cluster_name: str | None = None
    base_domain: str | None = None
    api_floating_ip: str | None = None
    ingress_floating_ip: str | None = None
    api_vips: tuple[str, ...] = ()
    ingress_vips: tuple[str, ...] = ()
    user_managed: bool = False
    compact: bool = False


def read_install_config(path: Path) -> Settings:
    """Return what an install-config of any release says; raises SpecError."""
    given = InstallConfigValues(path)

    def text(of: str) -> str | None:
        _, value = given.field(of)
        return value if isinstance(value, str) and value else None

    def texts(of: str) -> tuple[str, ...]:
        _, found = given.field(of)
        return tuple(map(str, found if isinstance(found, list) else [found] if found else ()))

    return Settings(
        cluster_name=text("cluster_name"),
        base_domain=text("base_domain"),
        api_floating_ip=text("api_floating_ip"),
        ingress_floating_ip=text("ingress_floating_ip"),
        api_vips=texts("api_vips"),
        ingress_vips=texts("ingress_vips"),
        user_managed=text("load_balancer") == "UserManaged",
        compact=given.field("compute.replicas")[1] == 0,
    )
