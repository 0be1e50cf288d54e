"""The specs of all targets, read before anything is asked of a cloud."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.fleet import process
from openstack_prep.fleet.file.model import Target
from openstack_prep.fleet.order import Order
from openstack_prep.spec import Spec


@dataclass
class Checked:
    """What was read: the entry of clouds.yaml of each target, and warnings about specs."""

    clouds: dict[str, str] = field(default_factory=dict)
    specs: dict[str, str] = field(default_factory=dict)
    """Names of the specs by target."""
    files: dict[str, list[str]] = field(default_factory=dict)
    """The files of the spec of each target."""
    resources: dict[str, int] = field(default_factory=dict)
    """How many resources the spec of each target declares."""
    warnings: dict[str, list[str]] = field(default_factory=dict)
    """Which targets a warning is about."""


def check(
    targets: Mapping[str, Target], orders: Mapping[str, Order], examine: Callable[[Spec], list[str]] | None = None
) -> Checked:
    """Read the spec of each target; raises SpecError with the mistakes of all, and for targets that are doubles.

    ``examine`` returns warnings about a spec, or raises SpecError.
    """
    found, wrong = Checked(), dict[Mistake, list[str]]()
    owners: dict[tuple[str, str, str], str] = {}
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
        cloud = process.entry_of(order, spec) or ""
        found.clouds[name], found.specs[name], found.resources[name] = cloud, spec.name, len(spec.resources)
        found.files[name] = [str(each.path) for each in spec.parts]
        other = owners.setdefault((spec.name, cloud, order.region or ""), name)
        if other != name:
            what = f"target {name} is the same spec {spec.name} in the same cloud and region as target {other}"
            fix = f"remove one of them, or give their specs different names; {other} is at {targets[other].place}"
            doubles.append(Mistake(targets[name].place, what, fix, code=Code.SPEC_DUPLICATE_NAME))
    mistakes = [_of_targets(mistake, names, targets) for mistake, names in wrong.items()]
    if mistakes or doubles:
        raise SpecError([*mistakes, *doubles])
    return found


def _of_targets(mistake: Mistake, names: list[str], targets: Mapping[str, Target]) -> Mistake:
    """Return a mistake of the spec of some targets, with the first of them."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    first = targets[names[0]]
    return replace(mistake, where=f"{mistake.where} (target {first.name}{more}, {first.place})")
