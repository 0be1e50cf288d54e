"""What the load balancers of Services have in common: pools, selectors and their checks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Annotated, Literal

from annotated_types import Ge, Le

from openstack_prep.base.errors import Mistake
from openstack_prep.base.fields import Name, Strict, Text
from openstack_prep.base.multicast import PoolRange
from openstack_prep.base.ranges import Range
from openstack_prep.kubernetes.model import LABEL, WORD
from openstack_prep.kubernetes.nodes import KEY

# --- pool -------------------------------------------------------------------------------------


Asn = Annotated[int, Ge(1), Le(2**32 - 1)]
Addresses = Mapping[str, Sequence[str]]
"""Addresses of the spec's address pools by pool name, as ranges in any form."""
Findings = Iterable[tuple[str, str, str]]
"""Fields, what is wrong with them, and the fixes."""
LABEL_FIX = "use at most 63 lower-case letters, digits and hyphens"


@dataclass(frozen=True, kw_only=True)
class LabelExpression(Strict):
    """One condition of a Kubernetes label selector."""

    key: Name
    """Name of the label."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """Condition for the label."""
    values: tuple[Text, ...] = ()
    """Values for In and NotIn."""


@dataclass(frozen=True, kw_only=True)
class LabelSelector(Strict):
    """A Kubernetes label selector; all conditions must hold."""

    match_labels: Mapping[Name, Text] | None = None
    """Labels and their values."""
    match_expressions: tuple[LabelExpression, ...] = ()
    """Further conditions."""


@dataclass(frozen=True, kw_only=True)
class ServicePool(Strict):
    """Addresses for Services of type LoadBalancer, from an address pool of the spec or listed here."""

    name: Name | None = None
    """Name in Kubernetes, a DNS label; default: the name of the address pool."""
    pool: Name | None = None
    """Address pool of the spec that provides the addresses."""
    addresses: tuple[PoolRange, ...] = ()
    """Addresses instead of an address pool: ranges, networks, single addresses."""

    @property
    def kubernetes_name(self) -> str:
        """The name in Kubernetes."""
        return self.name or self.pool or ""


def ranges(pool: ServicePool, addresses: Addresses) -> list[Range]:
    """Return the addresses of a pool; an empty list when the spec has no such address pool."""
    return [Range.read(each) for each in (addresses.get(pool.pool, ()) if pool.pool else pool.addresses)]


def selector_values(selector: LabelSelector | None) -> dict[str, object]:
    """Return a selector as Kubernetes spells it; an empty one for none."""
    if selector is None:
        return {}
    expressions = [
        {"key": match_expression.key, "operator": match_expression.operator}
        | ({"values": list(match_expression.values)} if match_expression.values else {})
        for match_expression in selector.match_expressions
    ]
    return drop_empty({"matchLabels": dict(selector.match_labels or {}), "matchExpressions": expressions})


def drop_empty(values: Mapping[str, object]) -> dict[str, object]:
    """Return the values that are not empty."""
    return {name: value for name, value in values.items() if value not in (None, (), [], {})}


# --- checks -------------------------------------------------------------------------------


def label_findings(name: str) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a name in Kubernetes, and the fix."""
    if not re.fullmatch(LABEL, name):
        yield f"{name!r} is not a DNS label", LABEL_FIX


def name_findings(pool: ServicePool) -> Findings:
    """Yield what is wrong with the name of a pool."""
    if not pool.kubernetes_name:
        yield "name", "is missing", "set name or pool"
    elif not re.fullmatch(LABEL, pool.kubernetes_name):
        what = f"{pool.kubernetes_name!r} is not a DNS label"
        yield ("name", what, LABEL_FIX) if pool.name else ("pool", what, "set name to a DNS label")


def address_findings(pool: ServicePool, addresses: Addresses) -> Findings:
    """Yield what is wrong with the addresses of a pool."""
    if pool.pool and pool.addresses:
        yield "", "sets both pool and addresses", "remove one of them"
    elif not pool.pool and not pool.addresses:
        yield "", "has no addresses", "set pool or addresses"
    elif pool.pool and pool.pool not in addresses:
        what = f"the spec has no address pool {pool.pool} (it has: {', '.join(addresses) or 'none'})"
        yield "pool", what, "correct the name, or declare the pool in address_pools"
    for each in ranges(pool, addresses):
        if each.first.version == 6 and int(each.first) >> 32 == 0xFFFF:
            yield "pool" if pool.pool else "addresses", f"{each} is IPv4 in the form of IPv6", "write it as IPv4"
    for one, other in combinations(ranges(pool, addresses), 2):
        if both := one.overlap(other):
            yield "addresses", f"{one} and {other} overlap in {both}", "list each address once"


def selector_findings(selectors: Sequence[LabelSelector]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with selectors, and the fixes."""
    for index, selector in enumerate(selectors):
        if not selector.match_labels and not selector.match_expressions:
            yield "an empty selector selects everything", "remove it"
        elif _sorted(selector) in map(_sorted, selectors[:index]) or _repeats(_sorted(selector).match_expressions):
            yield "a selector or one of its conditions is listed twice", "list it once"
        for match_expression in selector.match_expressions:
            if match_expression.operator in ("In", "NotIn") and not match_expression.values:
                yield f"{match_expression.operator} of label {match_expression.key} requires values", "add values"
            elif match_expression.operator in ("Exists", "DoesNotExist") and match_expression.values:
                yield (
                    f"{match_expression.operator} of label {match_expression.key} does not take values",
                    "remove values",
                )
            elif _repeats(match_expression.values):
                yield f"a value of label {match_expression.key} is listed twice", "list it once"
        yield from _label_texts(selector)


def _sorted(selector: LabelSelector) -> LabelSelector:
    """Return a selector for comparisons: the order of values says nothing (MetalLB, validateLabelSelectorDuplicate)."""
    expressions = tuple(
        replace(match_expression, values=tuple(sorted(match_expression.values)))
        for match_expression in selector.match_expressions
    )
    return replace(selector, match_expressions=expressions)


def _repeats(items: Sequence[object]) -> bool:
    return any(each in items[:index] for index, each in enumerate(items))


def _label_texts(selector: LabelSelector) -> Iterator[tuple[str, str]]:
    """Yield keys and values that no label can have."""
    texts: list[tuple[str, tuple[str, ...]]] = [(key, (value,)) for key, value in (selector.match_labels or {}).items()]
    for key, values in [
        *texts,
        *((match_expression.key, match_expression.values) for match_expression in selector.match_expressions),
    ]:
        if not re.fullmatch(KEY, key):
            yield f"{key!r} is not a label key", "write NAME or DOMAIN/NAME"
        for value in values:
            if value and not re.fullmatch(WORD, value):
                fix = "use at most 63 letters, digits, hyphens, underscores and dots"
                yield f"{value!r} is not a valid value of label {key}", fix


def list_mistakes(pools: Sequence[ServicePool], addresses: Addresses) -> Iterator[Mistake]:
    """Yield mistakes of the list of pools: none, repeated names, and ranges that are in two pools."""
    if not pools:
        yield Mistake("pools", "is empty", "declare at least one pool")
    yield from repeated("pools", [pool.kubernetes_name for pool in pools])
    held = [(index, each) for index, pool in enumerate(pools) for each in ranges(pool, addresses)]
    for (first, one), (second, other) in combinations(held, 2):
        if first != second and (both := one.overlap(other)):
            field = "pool" if pools[second].pool else "addresses"
            what = f"{both} of {pools[second].kubernetes_name} is also in {pools[first].kubernetes_name}"
            yield Mistake(f"pools[{second}].{field}", what, "put each address into one pool only")


def repeated(field: str, names: Sequence[str]) -> Iterator[Mistake]:
    """Yield names that are used twice."""
    for index, name in enumerate(names):
        if name in names[:index]:
            what = f"{name} is also the name of {field}[{names.index(name)}]"
            yield Mistake(f"{field}[{index}]", what, "give each its own name")
