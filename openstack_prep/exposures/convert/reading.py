"""Reads Services, the pools of old controllers, and Nodes, as ``kubectl get -o json`` or ``-o yaml`` prints them.

Sources: Kubernetes API, Service v1 and Node v1; Mirantis/k8s-externalipcontroller, pkg/extensions/types.go
(ipcontroller.ext/v1: IpClaimPool, IpClaim, IpNode) and pkg/scheduler/scheduler.go; openelb/openelb,
api/v1alpha2/eip_types.go (network.kubesphere.io/v1alpha2: Eip) and pkg/constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.formats.foreign_text import parse_json
from openstack_prep.base.formats.yaml_places import read_documents
from openstack_prep.base.ranges import overlaps
from openstack_prep.base.raw import Raw
from openstack_prep.exposures.convert.fields import Fields, type_name
from openstack_prep.exposures.convert.model import Old, OldPool, OldService
from openstack_prep.exposures.convert.old_pools import claim_pool, eip
from openstack_prep.exposures.convert.old_services import AUTOMATIC, is_balanced, of_others, service

COMMAND = "kubectl get services,nodes -A -o json"
REMEDY = f"pass the output of {COMMAND}"
MOST_YAML = 2 * 2**20
"""Bytes; YAML is slow to read, and kubectl prints JSON as well."""
VERSIONS = {
    "Service": "v1",
    "Node": "v1",
    "IpClaimPool": "ipcontroller.ext/v1",
    "Eip": "network.kubesphere.io/v1alpha2",
    "IpClaim": "ipcontroller.ext/v1",
    "IpNode": "ipcontroller.ext/v1",
}
"""API versions of what is read; IpClaim and IpNode are state of the old controller, which is ignored."""


def read(texts: Mapping[str, str]) -> Old:
    """Return what the texts contain, by their names; raises SpecError with all mistakes."""
    mistakes: list[Mistake] = []
    objects: list[Fields] = []
    for name, text in texts.items():
        try:
            found = list(_objects(name, text))
        except SpecError as error:
            mistakes += error.mistakes
            continue
        if not found:
            mistakes.append(Mistake(name, "contains no objects", REMEDY))
        objects += [each for item, where in found if (each := _known(item, where, mistakes))]
    old = _sorted(objects, mistakes)
    if not mistakes and not old.count:
        mistakes.append(Mistake(", ".join(texts), "contain no Services", REMEDY))
    if mistakes:
        raise SpecError(mistakes)
    return old


def _objects(name: str, text: str) -> Iterator[tuple[object, str]]:
    """Yield the objects of a text, and of lists in it, each with its place."""
    for where, document in _documents(name, text.removeprefix("\ufeff")):
        kind = document.get("kind") if isinstance(document, dict) else None
        items = document.get("items") if isinstance(document, dict) else None
        if isinstance(kind, str) and kind.endswith("List") and isinstance(items, list):
            inner = kind.removesuffix("List")
            for index, each in enumerate(items):
                if inner and isinstance(each, dict):  # members of a ServiceList need no kind
                    each = {"apiVersion": document.get("apiVersion"), "kind": inner, **each}
                yield each, f"{where}: items[{index}]"
        else:
            yield document, where


def _documents(name: str, text: str) -> Iterator[tuple[str, Any]]:
    if not text.strip():
        raise _unreadable(name, "is empty", REMEDY)
    if text.lstrip().startswith("{"):
        try:
            yield name, parse_json(text)
        except ValueError as error:
            raise _unreadable(name, f"is not JSON: {error}", REMEDY) from None
        return
    if len(text.encode()) > MOST_YAML:
        raise _unreadable(
            name, f"is YAML with more than {MOST_YAML // 2**20} MiB", f"{REMEDY}, which has no limit here"
        )
    yield from ((f"{name}:{line}", each) for line, each in read_documents(name, text) if each is not None)


def _unreadable(where: str, what: str, fix: str) -> SpecError:
    return SpecError([Mistake(where, what, fix, code=Code.SPEC_UNREADABLE)])


def _known(item: object, where: str, mistakes: list[Mistake]) -> Fields | None:
    """Return an object of a known kind."""
    if not isinstance(item, dict):
        mistakes.append(Mistake(where, f"is {type_name(item)}, not an object of Kubernetes", REMEDY))
        return None
    kind, version = item.get("kind"), item.get("apiVersion")
    if not isinstance(kind, str) or kind not in VERSIONS:
        shown = repr(kind)[:80] if kind else "an object without a kind"
        mistakes.append(Mistake(where, f"is {shown}; read are {', '.join(VERSIONS)}", REMEDY))
        return None
    if version != VERSIONS[kind]:
        fix = f"convert it to {VERSIONS[kind]}, as the API server prints it"
        mistakes.append(Mistake(where, f"is a {kind} of {str(version)[:80]!r}, not of {VERSIONS[kind]}", fix))
        return None
    return Fields(item, where, mistakes)


def _sorted(objects: list[Fields], mistakes: list[Mistake]) -> Old:
    """Return the objects by their kinds."""
    by_kind: dict[str, list[Fields]] = {kind: [] for kind in VERSIONS}
    for each in objects:
        by_kind[str(each.data["kind"])].append(each)
    first: dict[str, str] = {}
    services: list[OldService] = []
    others: dict[str, tuple[str, ...]] = {}
    for each in by_kind["Service"]:
        name, namespace = each.name("metadata.name"), each.name("metadata.namespace", default="default")
        key = f"{namespace}/{name}"
        if name and namespace and key in first:
            mistakes.append(Mistake(each.where, f"Service {key} is also in {first[key]}", "pass each Service once"))
        first.setdefault(key, each.where)
        found = service(each, namespace, name)
        if found is not None:
            services.append(found)
        elif is_balanced(each):
            others[key] = of_others(each)
    read_pools = [*map(claim_pool, by_kind["IpClaimPool"]), *map(eip, by_kind["Eip"])]
    pools = [each for each in read_pools if each is not None]
    _distinct(pools, mistakes)
    nodes = {address: name for each in by_kind["Node"] for name, address in _node(each)}
    return Old(
        services=tuple(sorted(services, key=lambda each: (each.namespace, each.name))),
        pools=tuple(pools),
        nodes=nodes,
        taken=frozenset(first),
        others=others,
        has_claims=any(by_kind[kind] for kind in ("IpClaimPool", "IpClaim", "IpNode"))
        or any(each.keeps_annotation == AUTOMATIC for each in services),
        has_nodes=bool(by_kind["Node"]),
        count=len(by_kind["Service"]),
    )


def _node(item: Fields) -> Iterator[tuple[str, str]]:
    name = item.text("metadata.name")
    for each in item.items("status.addresses", dict):
        inner: Raw = each
        if inner.get("type") in ("InternalIP", "ExternalIP"):
            one = Fields({"list": [inner.get("address")]}, item.where, item.mistakes)
            for address in one.addresses("list"):
                yield name, address


def _distinct(pools: list[OldPool], mistakes: list[Mistake]) -> None:
    """Report pools with one name, and addresses that are in two pools."""
    first: dict[str, OldPool] = {}
    for pool in pools:
        if pool.name in first:
            what = f"pool {pool.name} is also in {first[pool.name].where}"
            mistakes.append(Mistake(pool.where, what, "give each pool its own name"))
        first.setdefault(pool.name, pool)
    holders = {id(each): pool for pool in pools for each in pool.ranges}
    for one, other, both in overlaps([each for pool in pools for each in pool.ranges]):
        what = f"{both} is also in pool {holders[id(one)].name} ({holders[id(one)].where})"
        mistakes.append(Mistake(holders[id(other)].where, what, "put each address into one pool only"))
