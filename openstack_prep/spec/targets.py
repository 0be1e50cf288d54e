"""A spec limited to some of its resources and what these need."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from openstack_prep.base.errors import ConfigError, PrepError
from openstack_prep.base.key import Key, labels
from openstack_prep.base.style import first_of
from openstack_prep.base.suggestion import ask, similar
from openstack_prep.cloud.no_cloud import NoCloud
from openstack_prep.core.model import Context, Resource
from openstack_prep.core.planner import dependencies
from openstack_prep.core.resource import resolve
from openstack_prep.resources.identity.project import Project
from openstack_prep.spec.spec import Spec


def limit_to(spec: Spec, targets: Collection[str]) -> Spec:
    """Return the spec with only the targets, as KIND/NAME, and what they need looked after.  Raises ConfigError."""
    needs = _needs(spec)
    home = next((resource.key for resource in spec.resources if isinstance(resource, Project)), None)
    waiting = _targets(spec, targets)
    waiting += [home] if home else []  # the lease is stored in it, and ownership tags name it
    chosen: set[Key] = set()
    while waiting:
        key = waiting.pop()
        if key not in chosen:
            chosen.add(key)
            waiting += [need for group in needs[key] for need in group]
    return replace(spec, only=frozenset(chosen))


def limit_to_dependents(spec: Spec, targets: Collection[str]) -> Spec:
    """Return the spec with only the targets, and what cannot exist without them, for a destroy.  Raises ConfigError."""
    needs, chosen = _needs(spec, existing=True), {*_targets(spec, targets)}
    while added := {key for key in needs.keys() - chosen if any(group <= chosen for group in needs[key])}:
        chosen |= added  # of several that provide what a resource needs, any that stays is enough
    return replace(spec, only=frozenset(chosen))


def _needs(spec: Spec, *, existing: bool = False) -> dict[Key, list[frozenset[Key]]]:
    """Return for each resource the groups of resources of which it needs one each; ``existing``: in order to exist."""
    parts = {resource.key: _parts(resource, spec.resources) for resource in spec.resources}
    owners = {part.key: key for key, found in parts.items() for part in found}
    edges = dependencies([part for found in parts.values() for part in found], creating=False, existing=existing)
    return {
        key: [frozenset(owners[need] for need in group) for part in found for group in edges[part.key]]
        for key, found in parts.items()
    }


def _targets(spec: Spec, targets: Collection[str]) -> list[Key]:
    names = labels(resource.key for resource in spec.resources)
    return [key for target in targets for key in _find(target, names)]


def _parts(resource: Resource, resources: Sequence[Resource]) -> Sequence[Resource]:
    """Return what represents a resource in a plan; what cannot be read is reported when it is planned."""
    try:
        return resolve(resource, Context(resources=resources, cloud=NoCloud.as_cloud()))
    except PrepError:
        return (resource,)


def _find(target: str, names: Mapping[Key, str]) -> list[Key]:
    """Return the resources that a target names; several if their names differ by the project or domain alone."""
    found = [key for key, name in names.items() if target in (name, str(key))]
    if not found:
        raise ConfigError(f"--target {target}: the spec has no such resource; {_meant(target, [*names.values()])}")
    return found


def _meant(target: str, labels: Sequence[str]) -> str:
    """Return which resources a target may mean: a similar name of its kind, otherwise of any kind."""
    kind, _, name = target.partition("/" if "/" in target else ".")  # Terraform's addresses have a dot
    kinds = similar(kind, {label.partition("/")[0] for label in labels})
    of_kind = [label for label in labels if label.partition("/")[0] in kinds]
    for candidates in (of_kind, labels):
        near = similar(name or kind, [label.partition("/")[2] for label in candidates])
        if found := [label for label in candidates if label.partition("/")[2] in near]:
            return ask(found[:3])
    return f"of this kind it has {first_of(of_kind)}" if of_kind else "write KIND/NAME, as plan --all shows them"
