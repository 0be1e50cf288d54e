"""Synchronise allowed address pairs of a cluster's nodes: once, or every minute with a timer."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from openstack_prep.base import ranges
from openstack_prep.base.errors import ConfigError, Mistake, SpecError
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.ranges import Range, address_range
from openstack_prep.base.raw import Values
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.lease import LOCK_TIMEOUT
from openstack_prep.core.plan import Report
from openstack_prep.exposures.neighbours import ExposureFields
from openstack_prep.exposures.pool_file import PoolFile
from openstack_prep.kubernetes import services as kubernetes
from openstack_prep.resources.addresses.address_pairs import AddressPairs
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.identity.in_project import InProject
from openstack_prep.spec import Spec, load_spec
from openstack_prep.spec.python import spec_from
from openstack_prep.verbs import api

SYNC = "sync"
SECTIONS = (
    "name",
    "clouds",
    "project",
    "address_pools",
    "pool_files",
    "address_pairs",
    "exposures",
    "exposed_clusters",
)
"""The sections of a spec that are read: no secrets, nothing that is generated; exposures have pairs of their own."""


@dataclass(frozen=True, kw_only=True)
class Sync:
    """What to synchronise without a spec: the selected ports, by one of the first four fields, and the addresses."""

    stack: str | None = None
    """Name of a Heat stack: the ports that it has created."""
    tag: str | None = None
    """Tag of the ports."""
    security_group: str | None = None
    """Name of a security group: the ports that have it."""
    ports: Sequence[str] = ()
    """Names or ids of the ports."""
    addresses: Sequence[str] | None = None
    """Ranges, networks, single addresses."""
    within: Sequence[str] = ()
    """Addresses of Services outside these ranges are skipped; required with Services, such as MetalLB's own ranges."""
    network: str | None = None
    """Name of a network: only its ports, of those selected."""
    name: str | None = None
    """The name in the ownership tag, after ``sync-``: recorded pairs with it that are no longer wanted are removed.

    Default: the selection of ports, and the network; several calls for the same ports need different names.
    """


def sync_address_pairs(
    cloud: Cloud,
    wanted: Spec | str | Path | Callable[[], Spec] | Sync,
    *,
    services: str | None = None,
    only: str | None = None,
    tell: Callable[[str], None] = lambda note: None,
    lock_timeout: float = LOCK_TIMEOUT,
) -> Report:
    """Add missing pairs to nodes' ports, and remove recorded pairs that are no longer wanted.

    ``wanted`` is a spec, its path or a function that reads it, of which only address_pools and address_pairs are used,
    or a Sync. The connection ``cloud`` must be scoped to the project. ``services`` is the output of
    ``kubectl get services -A -o json``: then only the
    addresses in use are allowed from pools. ``only`` selects the address pairs, because Services belong to one cluster.
    ``tell`` is called with notes, such as skipped addresses. ``lock_timeout``: seconds to wait for another run of the
    spec, or with the same name, then LeaseHeld is raised. Raises SpecError, ConfigError, PlanRefused before anything is
    changed, CloudError.
    """
    if not isinstance(cloud, Cloud):
        raise ConfigError(f"{cloud!r} is not a Cloud; pass the result of openstack_prep.connect(NAME)")
    spec = to_sync(cloud, wanted, services=services, only=only, tell=tell)
    return api.apply(cloud, spec, lock_timeout=lock_timeout)


def to_sync(
    cloud: Cloud,
    wanted: Spec | str | Path | Callable[[], Spec] | Sync,
    *,
    services: str | kubernetes.Services | None,
    only: str | None = None,
    tell: Callable[[str], None],
) -> Spec:
    """Return only the address pairs, as resources of the connection's own project."""
    found = kubernetes.read(services) if isinstance(services, str) else services
    for note in found.notes if found else ():
        tell(note)
    if isinstance(wanted, Sync):
        return _spec_of_sync(wanted, found, tell)
    if isinstance(wanted, str | Path):
        wanted = load_spec(wanted, SECTIONS)
    spec = spec_from(wanted if isinstance(wanted, Spec) else wanted())
    return _of_spec(cloud.authenticate(), spec, found, only, tell)


def _of_spec(
    cloud: Cloud, spec: Spec, found: kubernetes.Services | None, only: str | None, tell: Callable[[str], None]
) -> Spec:
    concerned = [resource for resource in spec.resources if isinstance(resource, AddressPairs | AddressPool)]
    claims = [resource for resource in spec.resources if isinstance(resource, ExposureFields | PoolFile)]
    meant = _selected_pairs(
        spec.name, [each for each in concerned if isinstance(each, AddressPairs)], only, found is not None
    )
    for each in concerned:
        if not _is_in(cloud, each):
            scope = f"project {cloud.project_name} of domain {cloud.project_domain_name}"
            belongs = f"{each.key} belongs to {each.project} of domain {each.project_domain}"
            fix = "choose an entry of that project with --os-cloud, and its clouds.yaml with OS_CLIENT_CONFIG_FILE"
            raise ConfigError(f"cloud {cloud.name} is scoped to {scope}, {belongs}; {fix}")
    mine = (claim for claim in claims if _is_in(cloud, claim))
    here = [replace(each, project=None) for each in (*concerned, *mine)]
    pools = {pool.name: pool.ranges for pool in here if isinstance(pool, AddressPool)}
    made = []
    try:
        for pairs in (each for each in here if isinstance(each, AddressPairs) and each.name in meant):
            used = None
            if found is not None and pairs.pools and pairs.origin.implied_by is None:
                used = _service_addresses(found, [one for name in pairs.pools for one in pools.get(name, ())], tell)
            made.append(pairs.resolve_with(here, used, alone=True))
    except SpecError as error:
        raise SpecError(spec.placed(error.mistakes)) from None
    return Spec(spec.name, tuple(made), places=spec.places, checked=True)


def _is_in(cloud: Cloud, each: InProject) -> bool:
    """Whether a resource belongs to the project of the connection: another domain may have one of the same name."""
    domain = cloud.project_domain_name
    ours = each.project == cloud.project_name and each.project_domain in (domain, cloud.domains.get(domain))
    return each.project is None or ours


def _selected_pairs(spec: str, pairs: Sequence[AddressPairs], only: str | None, by_services: bool) -> list[str]:
    """Return the names of the pairs to synchronise; with Services, those of the cluster that they belong to."""
    known = [pair.name for pair in pairs]
    own = (pair for pair in pairs if pair.origin.implied_by is None)
    pooled = [each.name for each in own if each.pools and only in (None, each.name)]
    mistake = None
    if not pairs:
        mistake = Mistake(
            spec, "the spec declares no address_pairs", "declare them, or select ports and addresses with options"
        )
    elif only is not None and only not in known:
        mistake = Mistake(spec, f"the spec declares no address_pairs {only}", f"choose one of {', '.join(known)}")
    elif by_services and not pooled:
        mistake = Mistake(
            spec, "its address_pairs refer to no pools", "set pools to those that Services get their addresses from"
        )
    elif by_services and len(pooled) > 1:
        what = f"Services belong to one cluster, but several address_pairs refer to pools: {', '.join(pooled)}"
        mistake = Mistake(spec, what, "choose one with --pairs NAME")
    if mistake:
        raise SpecError([mistake])
    return [name for name in known if only in (None, name)]


def _spec_of_sync(wanted: Sync, found: kubernetes.Services | None, tell: Callable[[str], None]) -> Spec:
    ways: Values = {way: getattr(wanted, way) for way in ("stack", "tag", "security_group", "ports")}
    given = {way: value for way, value in ways.items() if value}
    mistakes = []
    if len(given) != 1:
        mistakes.append(
            Mistake(
                "ports",
                f"{' and '.join(given)} are both set" if given else "no ports selected",
                "pass a SPEC, or exactly one of stack, tag, security group (--security-group) and ports (--port)",
            )
        )
    if wanted.addresses is None and found is None:
        fix = "pass addresses (--address), or the Services that use them (--services, --kubeconfig)"
        mistakes.append(Mistake("addresses", "no addresses selected", fix))
    if found is not None and not wanted.within:
        # otherwise any user who may create Services could ask for every address, even the gateway's
        fix = "set the ranges from which Services get their addresses (--within), so that no Service can use any other"
        mistakes.append(Mistake("within", "is missing", fix))
    if wanted.within and found is None:
        mistakes.append(Mistake("within", "only applies together with services", "pass Services, or remove it"))
    if wanted.ports and not wanted.name:
        mistakes.append(Mistake("name", "is missing", "set a name, under which the pairs are recorded"))
    addresses = _read("addresses", wanted.addresses or (), mistakes)
    within = _read("within", wanted.within, mistakes)
    if mistakes:
        raise SpecError(mistakes)
    if found is not None:
        addresses += ranges.blocks(ranges.read(_service_addresses(found, ranges.read(within), tell)))
    name = wanted.name or _name_of(given, wanted.network)
    given = {way: tuple(value) if way == "ports" else value for way, value in given.items()}
    pairs = AddressPairs(name=name, addresses=tuple(dict.fromkeys(addresses)), network=wanted.network, **given)
    # recorded as no spec's, so that the pairs of a spec with this name are not taken for earlier ones
    owner = name if name.startswith(f"{SYNC}-") else f"{SYNC}-{name}"
    return Spec(owner, (pairs.resolve_with([pairs]),), checked=True)


def _name_of(given: Mapping[str, object], network: str | None) -> str:
    """Return the name of a sync that was given none; no two selections of ports share it.

    Two of one name would take each other's pairs. A group ``a-b`` is not the group ``a`` in the network ``b``.
    """
    words = [str(word) for word in itertools.chain(*given.items())]
    of_network = [network] if network else []
    return "@".join(each.replace("%", "%25").replace("@", "%40") for each in ["-".join([SYNC, *words]), *of_network])


def _read(where: str, texts: Iterable[str], mistakes: list[Mistake]) -> list[str]:
    read = []
    for text in texts:
        try:
            read.append(str(address_range(text)))
        except InvalidValue as error:
            mistakes.append(error.at(where, text))
    return read


def _service_addresses(
    found: kubernetes.Services, within: Sequence[Range], tell: Callable[[str], None]
) -> frozenset[str]:
    """Return the addresses of Services within some ranges, and report the others.

    Otherwise a user who may create Services could have the gateway's address allowed on all nodes.
    """
    taken = set()
    for address, service in found.addresses.items():
        (one,) = Range.read(address)
        if any(one in each for each in within):
            taken.add(address)
        else:
            tell(f"{address} of Service {service} is outside all pools, so it is skipped")
    return frozenset(taken)
