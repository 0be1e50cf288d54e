"""Keeping allowed address pairs of a cluster's nodes in step: once, or every minute from a timer."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
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
from openstack_prep.kubernetes import services as kubernetes
from openstack_prep.resources.addresses.address_pairs import AddressPairs
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.spec import Spec, load_spec
from openstack_prep.verbs import api

SECTIONS = ("name", "clouds", "project", "address_pools", "address_pairs")
"""All that is read of a spec: no secret, nothing that is generated."""


@dataclass(frozen=True, kw_only=True)
class Sync:
    """What to keep in step without a spec: which ports, by one of the first four, and which addresses."""

    stack: str | None = None
    tag: str | None = None
    security_group: str | None = None
    ports: Sequence[str] = ()
    addresses: Sequence[str] | None = None
    """Ranges, networks, single addresses."""
    within: Sequence[str] = ()
    """Ranges outside of which Services' addresses are left out; Services need it, such as MetalLB's own ranges."""
    network: str | None = None
    name: str | None = None
    """The name for the mark: what was put there by that name, and is no longer wanted, goes.

    Default: sync-, how the ports are chosen, and the network; each wish for the same ports needs one of its own.
    """


def sync_address_pairs(
    cloud: Cloud,
    wanted: Spec | str | Path | Sync,
    *,
    services: str | None = None,
    only: str | None = None,
    tell: Callable[[str], None] = lambda note: None,
    lock_timeout: float = LOCK_TIMEOUT,
) -> Report:
    """Add the pairs that are missing on nodes' ports, and remove ours that are no longer wanted.

    ``wanted`` is a spec or its path, of which only address_pools and address_pairs matter, or a Sync.  The
    connection must be scoped to the project.  ``services`` is what ``kubectl get services -A -o json`` prints:
    then of pools only the addresses in use are allowed.  ``only`` names the address pairs that are meant, for
    Services are of one cluster.  ``tell`` is given notes, such as of addresses left out.  ``lock_timeout``: seconds
    to wait for another run of the spec, or of the same name, then LeaseHeld is raised.
    Raises SpecError, ConfigError, PlanRefused before anything is changed, CloudError.
    """
    if not isinstance(cloud, Cloud):
        raise ConfigError(f"{cloud!r} is no Cloud; give what openstack_prep.connect(NAME) returns")
    spec = to_sync(cloud, wanted, services=services, only=only, tell=tell)
    return api.apply(cloud, spec, lock_timeout=lock_timeout)


def to_sync(
    cloud: Cloud,
    wanted: Spec | str | Path | Sync,
    *,
    services: str | None,
    only: str | None = None,
    tell: Callable[[str], None],
) -> Spec:
    """Return the address pairs alone, as the connection's own project has them."""
    found = kubernetes.read(services) if services is not None else None
    for note in found.notes if found else ():
        tell(note)
    if isinstance(wanted, Sync):
        return _by_words(wanted, found, tell)
    spec = wanted if isinstance(wanted, Spec) else load_spec(wanted, SECTIONS)
    return _of_spec(cloud.authenticate(), spec, found, only, tell)


def _of_spec(
    cloud: Cloud, spec: Spec, found: kubernetes.Services | None, only: str | None, tell: Callable[[str], None]
) -> Spec:
    concerned = [each for each in spec.resources if isinstance(each, AddressPairs | AddressPool)]
    meant = _meant(spec.name, [each for each in concerned if isinstance(each, AddressPairs)], only, found is not None)
    for each in concerned:
        if each.project not in (None, cloud.project_name):
            where = f"the cloud {cloud.name} works in project {cloud.project_name}, {each.key} lies in {each.project}"
            raise ConfigError(f"{where}; choose an entry of clouds.yaml for that project by --os-cloud")
    here = [replace(each, project=None) for each in concerned]
    pools = {each.name: each.ranges for each in here if isinstance(each, AddressPool)}
    made = []
    try:
        for pairs in (each for each in here if isinstance(each, AddressPairs) and each.name in meant):
            used = None
            if found is not None and pairs.pools:
                used = _taken(found, [one for name in pairs.pools for one in pools.get(name, ())], tell)
            made.append(pairs.resolve_among(here, used, alone=True))
    except SpecError as error:
        raise SpecError(spec.placed(error.mistakes)) from None
    return Spec(spec.name, tuple(made), places=spec.places, checked=True)


def _meant(spec: str, pairs: Sequence[AddressPairs], only: str | None, by_services: bool) -> list[str]:
    """Return the names of the pairs to keep in step; by Services those of one cluster, to which they belong."""
    known = [each.name for each in pairs]
    pooled = [each.name for each in pairs if each.pools and only in (None, each.name)]
    mistake = None
    if not pairs:
        mistake = Mistake(spec, "the spec has no address_pairs", "declare them, or say which by options")
    elif only is not None and only not in known:
        mistake = Mistake(spec, f"it has no address_pairs {only}", f"known are {', '.join(known)}")
    elif by_services and not pooled:
        mistake = Mistake(spec, "its address_pairs have no pools", "name the pools that Services' addresses come from")
    elif by_services and len(pooled) > 1:
        what = f"Services are of one cluster, and the address_pairs {', '.join(pooled)} have pools"
        mistake = Mistake(spec, what, "say which are meant (--pairs NAME)")
    if mistake:
        raise SpecError([mistake])
    return [name for name in known if only in (None, name)]


def _by_words(wanted: Sync, found: kubernetes.Services | None, tell: Callable[[str], None]) -> Spec:
    ways: Values = {way: getattr(wanted, way) for way in ("stack", "tag", "security_group", "ports")}
    given = {way: value for way, value in ways.items() if value}
    mistakes = []
    if len(given) != 1:
        mistakes.append(Mistake("ports", "are not told", "give a SPEC, or one of stack, tag, security group, ports"))
    if wanted.addresses is None and found is None:
        mistakes.append(Mistake("addresses", "are not told", "give some, or the Services that have them"))
    if found is not None and not wanted.within:
        remedy = "give the ranges they are handed out of; whoever may make a Service may ask for any, the gateway's too"
        mistakes.append(Mistake("within", "is missing", remedy))
    if wanted.within and found is None:
        mistakes.append(Mistake("within", "means nothing here", "give it with the Services, or leave it out"))
    if wanted.ports and not wanted.name:
        mistakes.append(Mistake("name", "is missing", "give one with ports: by it we know again what we put there"))
    addresses = _read("addresses", wanted.addresses or (), mistakes)
    within = _read("within", wanted.within, mistakes)
    if mistakes:
        raise SpecError(mistakes)
    if found is not None:
        addresses += sorted(_taken(found, ranges.read(within), tell))
    of_network = (wanted.network,) if wanted.network else ()
    name = wanted.name or "-".join(["sync", *itertools.chain(*given.items()), *of_network])
    given = {way: tuple(value) if way == "ports" else value for way, value in given.items()}
    pairs = AddressPairs(name=name, addresses=tuple(dict.fromkeys(addresses)), network=wanted.network, **given)
    return Spec(name, (pairs.resolve_among([pairs]),), checked=True)


def _read(where: str, texts: Iterable[str], mistakes: list[Mistake]) -> list[str]:
    read = []
    for text in texts:
        try:
            read.append(str(address_range(text)))
        except InvalidValue as error:
            mistakes.append(error.at(where, text))
    return read


def _taken(found: kubernetes.Services, within: Sequence[Range], tell: Callable[[str], None]) -> frozenset[str]:
    """Return the addresses of Services within some ranges; others are told of: who may make a Service may ask for any.

    Else one who can make a Service could have the gateway's address allowed on all nodes.
    """
    taken = set()
    for address, service in found.addresses.items():
        (one,) = Range.read(address)
        if any(one in each for each in within):
            taken.add(address)
        else:
            tell(f"{address} of Service {service} lies in no pool, and is left out")
    return frozenset(taken)
