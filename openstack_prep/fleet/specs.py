"""The specs of all targets, read before anything is asked of a cloud."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.cloud import entries
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
    """The order of each target, with what the environment of the command adds: other processes have another one."""
    specs: dict[str, str] = field(default_factory=dict)
    """Names of the specs by target."""
    files: dict[str, list[str]] = field(default_factory=dict)
    """The files of the spec of each target, and those that it names."""
    resources: dict[str, int] = field(default_factory=dict)
    """How many resources the spec of each target declares."""
    warnings: dict[str, list[str]] = field(default_factory=dict)
    """Which targets a warning is about."""


def check(
    targets: Mapping[str, Target],
    orders: Mapping[str, Order],
    cloud: str | None = None,
    examine: Callable[[Spec], list[str]] | None = None,
) -> Checked:
    """Read the spec of each target; raises SpecError with the mistakes of all, and for targets that are doubles.

    ``cloud`` is the entry for targets that name none. ``examine`` returns warnings about a spec, or raises SpecError.
    """
    found, wrong = Checked(), dict[Mistake, list[str]]()
    owners: dict[tuple[str, str, str], str] = {}
    regions: dict[str | None, str] = {}
    doubles: list[Mistake] = []
    for name, order in orders.items():
        try:
            spec = process.spec_of(order)
            warnings = [*spec.warnings, *(examine(spec) if examine else ())]
        except SpecError as error:
            for mistake in error.mistakes:
                wrong.setdefault(mistake, []).append(name)
            continue
        for warning in warnings:
            found.warnings.setdefault(warning, []).append(name)
        entry = entries.in_use(order.cloud or cloud or spec.clouds.admin)
        if entry not in regions:
            regions[entry] = entries.described(entry)[0]
        region = order.region or regions[entry]
        found.orders[name] = replace(
            order,
            cloud=entry,
            labels=tuple(filter(None, (region, entry))),
            variables={**order.variables, **_of_environment(spec)},
        )
        found.clouds[name], found.specs[name], found.resources[name] = entry or "", spec.name, len(spec.resources)
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


def _of_environment(spec: Spec) -> dict[str, object]:
    """Return the values of variables that the environment has, or that override them; an empty one is the default."""
    given = {name: value for name, value in spec.values.items() if f"{ENVIRONMENT}{name.upper()}" in os.environ}
    return {name: value for name, value in given.items() if value != ""}


def _of_targets(mistake: Mistake, names: list[str], targets: Mapping[str, Target]) -> Mistake:
    """Return a mistake of the spec of some targets, with the first of them."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    first = targets[names[0]]
    return replace(mistake, where=f"{mistake.where} (target {first.name}{more}, {first.place})")
