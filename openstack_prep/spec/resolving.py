"""From the declared resources of a spec to the resources of a plan."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from openstack_prep import extensions
from openstack_prep.base.errors import Mistake, PrepError, SpecError
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.model import Context, Resource
from openstack_prep.spec import written_files
from openstack_prep.spec.loading import Spec
from openstack_prep.spec.targets import NoCloud


def refuse_mistakes(spec: Spec) -> None:
    """Raise SpecError with all mistakes and contradictions if the selected resources have mistakes.

    It asks no cloud.
    """
    cloud = NoCloud.as_cloud()
    context = Context(resources=spec.resources, cloud=cloud)
    found: list[Mistake] = []
    for each in spec.chosen:
        try:
            found += each.list_mistakes(context)
        except SpecError as error:
            found += error.mistakes
    checks = (extensions.load(each.check) for each in extensions.installed() if each.check)
    for check in (partial(written_files.list_conflicts, spec), *checks):
        try:
            found += check(context)
        except SpecError as error:
            found += error.mistakes
    if not found:
        return
    mistakes = spec.placed(dict.fromkeys(found))
    try:
        resolve_spec(spec, cloud, for_apply=False)
    except SpecError as error:
        mistakes += error.mistakes
    raise SpecError(list(dict.fromkeys(mistakes)))


def list_warnings(spec: Spec) -> list[str]:
    """Return the warnings of the selected resources of a spec without mistakes, each with its place."""
    context = Context(resources=spec.resources, cloud=NoCloud.as_cloud())
    found: list[str] = []
    for each in spec.chosen:
        place = f"{spec.places[each.key]}: " if each.key in spec.places else ""
        found += (f"{place}{each.key}: {warning}" for warning in each.list_warnings(context))
    found += written_files.list_warnings(spec, context)
    return list(dict.fromkeys(found))


def resolve_spec(spec: Spec, cloud: Cloud, *, for_apply: bool) -> Spec:
    """Return the spec with all its resources resolved; raises SpecError with all contradictions.

    Only selected resources read what an apply needs. ``unread`` lists what could not be read.
    """
    context = Context(resources=spec.resources, cloud=cloud)
    resources: list[Resource] = []
    contradictions: list[Mistake] = []
    unread: list[Mistake] = []
    warnings = list(spec.warnings)
    places, only = dict(spec.places), set(spec.only or ())
    for each in spec.resources:
        chosen = spec.is_chosen(each)
        try:
            parts = each.resolve(replace(context, for_apply=for_apply and chosen))
        except SpecError as error:
            contradictions += error.mistakes
            continue
        except PrepError as error:
            unread.append(Mistake.about(each.key, str(error), code=error.code))
            parts = (each,)
        resources += parts
        if for_apply and chosen:
            place = f"{spec.places[each.key]}: " if each.key in spec.places else ""
            warnings += (f"{place}{each.key}: {warning}" for warning in each.list_inherited(parts[0]))
        if each.key in places:
            places |= {part.key: places[each.key] for part in parts}
        if chosen:
            only |= {part.key for part in parts}
    if contradictions:
        raise SpecError(spec.placed(dict.fromkeys(contradictions)))
    return replace(
        spec,
        resources=tuple(resources),
        places=places,
        only=None if spec.only is None else frozenset(only),
        unread=tuple(unread),
        warnings=tuple(dict.fromkeys(warnings)),
    )
