"""The specs of all targets, read before anything is asked of a cloud."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.secret import SOURCE_NAMES
from openstack_prep.cloud.connection import chosen_entry
from openstack_prep.fleet import process
from openstack_prep.fleet.file.model import Target
from openstack_prep.fleet.order import Order
from openstack_prep.spec import Spec
from openstack_prep.spec.variables import ENVIRONMENT
from openstack_prep.verbs.spec_files import local_files


@dataclass
class Checked:
    """What was read: the entry of clouds.yaml of each target, and warnings about specs."""

    clouds: dict[str, str] = field(default_factory=dict)
    orders: dict[str, Order] = field(default_factory=dict)
    """The order of each target, with what the environment adds: that of a worker differs."""
    specs: dict[str, str] = field(default_factory=dict)
    """Names of the specs by target."""
    files: dict[str, list[str]] = field(default_factory=dict)
    """The files of the spec of each target, and those that it names."""
    resources: dict[str, int] = field(default_factory=dict)
    """How many resources a plan of each target lists."""
    warnings: dict[str, list[str]] = field(default_factory=dict)
    """Which targets a warning is about."""


def check(
    targets: Mapping[str, Target],
    orders: Mapping[str, Order],
    cloud: str | None = None,
    examine: Callable[[Spec], tuple[Spec, list[str]]] | None = None,
) -> Checked:
    """Read the spec of each target; raises SpecError with the mistakes of all, and for targets that are doubles.

    ``cloud`` is the entry for targets that name none. ``examine`` returns a spec with the resources that
    a plan lists, and warnings about them, or raises SpecError;
    with it the specs are only checked, which needs no values of secrets.
    """
    found, wrong = Checked(), dict[Mistake, list[str]]()
    owners: dict[tuple[str, str, str], str] = {}
    entries: dict[str | None, tuple[str | None, str, str]] = {}
    doubles: list[Mistake] = []
    for name, order in orders.items():
        try:
            spec = process.spec_of(order, needs_secrets=examine is None)
            _refuse_sources(spec, order, targets[name].from_row)
            resolved, more = examine(spec) if examine else (spec, [])
        except SpecError as error:
            for mistake in error.mistakes:
                wrong.setdefault(mistake, []).append(name)
            continue
        for warning in (*spec.warnings, *more):
            found.warnings.setdefault(warning, []).append(name)
        named = order.cloud or cloud or spec.clouds.admin
        if named not in entries:
            entries[named] = chosen_entry(named)
        entry, region, address = entries[named]
        region = order.region or region
        labels, environment = tuple(filter(None, (region, entry))), _environment(spec)
        found.orders[name] = replace(order, cloud=entry, address=address, labels=labels, environment=environment)
        found.clouds[name], found.specs[name], found.resources[name] = entry or "", spec.name, len(resolved.resources)
        found.files[name] = [*(str(each.path) for each in spec.parts), *local_files(spec)]
        other = owners.setdefault((spec.name, entry or "", region), name)
        if other != name:
            what = f"target {name} is the same spec {spec.name} in the same cloud and region as target {other}"
            fix = f"remove one of them, or give their specs different names; {other} is at {targets[other].place}"
            doubles.append(Mistake(targets[name].place, what, fix, code=Code.SPEC_DUPLICATE_NAME))
    mistakes = [_of_targets(mistake, names, targets) for mistake, names in wrong.items()]
    if mistakes or doubles:
        raise SpecError([*mistakes, *doubles])
    return found


def _environment(spec: Spec) -> dict[str, str]:
    """Return the variables of the environment that have values for a spec, without secrets."""
    names = (f"{ENVIRONMENT}{each.upper()}" for each in spec.values)
    return {name: os.environ[name] for name in names if name in os.environ}


def _refuse_sources(spec: Spec, order: Order, names: Collection[str]) -> None:
    """Raise SpecError if a value from a row could be the source of a secret in the spec: any file, or any program."""
    what, fix = "contains a source of a secret, which cannot come from a row", "write it in the fleet file or the spec"
    wrong = [each for each in sorted(names) if _has_source(spec.values.get(each))]
    if wrong:
        raise SpecError([Mistake(order.places[each], what, fix, code=Code.SPEC_VARIABLE) for each in wrong])


def _has_source(value: object) -> bool:
    if isinstance(value, dict):
        is_source = len(value) == 1 and next(iter(value)) in SOURCE_NAMES
        return is_source or any(map(_has_source, value.values()))
    return isinstance(value, list) and any(map(_has_source, value))


def _of_targets(mistake: Mistake, names: list[str], targets: Mapping[str, Target]) -> Mistake:
    """Return a mistake of the spec of some targets, with the first of them."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    first = targets[names[0]]
    return replace(mistake, where=f"{mistake.where} (target {first.name}{more}, {first.place})")
