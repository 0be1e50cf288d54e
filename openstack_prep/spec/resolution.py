"""From the declared resources of a spec to the resources of a plan."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from openstack_prep import extensions
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, PrepError, SpecError
from openstack_prep.base.raw import dotted, walk_steps
from openstack_prep.base.secret import Secret
from openstack_prep.cloud.no_cloud import NoCloud
from openstack_prep.core.model import SEPARATOR, Context, Key, Resource
from openstack_prep.core.resource import (
    CarriesTag,
    ListsInherited,
    ListsMistakes,
    ListsWarnings,
    WritesFiles,
    WrittenFile,
    resolve,
    supports,
)
from openstack_prep.spec.spec import Spec

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud


def _name_mistakes(spec: Spec) -> Iterable[Mistake]:
    """Yield that an ownership tag would not show where the name of the spec ends; destroy goes by such a name, too."""
    if SEPARATOR in spec.name:
        where = f"{spec.parts[0].place(('name',))}: name" if spec.parts else "name"
        what = f"{spec.name!r} contains {SEPARATOR}, which ends the name in ownership tags"
        fix = f"remove {SEPARATOR}; if the spec was applied before, destroy it by its old name first"
        yield Mistake(where, what, fix, code=Code.SPEC_INVALID_VALUE)


def refuse_mistakes(spec: Spec, *, for_plan: bool = False) -> None:
    """Raise SpecError with all mistakes and contradictions if the selected resources have mistakes.

    It asks no cloud. ``for_plan``: a plan does so next, and judges what depends on existing resources.
    """
    cloud = NoCloud.as_cloud()
    context = Context(resources=spec.resources, cloud=cloud, for_plan=for_plan)
    found: list[Mistake] = list(_name_mistakes(spec))
    for resource in spec.chosen:
        try:
            found += resource.list_mistakes(context) if supports(resource, ListsMistakes) else ()
            found += resource.list_long_texts(spec.name) if supports(resource, CarriesTag) else ()
        except SpecError as error:
            found += error.mistakes
    checks: list[Callable[[Context], Iterable[Mistake]]] = [partial(list_file_conflicts, spec)]
    checks += (partial(extensions.call, extension, "check") for extension in _judging(spec))
    for check in checks:
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


def _judging(spec: Spec) -> list[extensions.Extension]:
    """Return the extensions that judge the kinds of a spec."""
    kinds = {resource.kind for resource in spec.resources}
    return [
        extension
        for extension in extensions.installed()
        if not extension.checked or not kinds.isdisjoint(extension.checked)
    ]


def list_warnings(spec: Spec) -> list[str]:
    """Return the warnings of the selected resources of a spec without mistakes, each with its place."""
    context = Context(resources=spec.resources, cloud=NoCloud.as_cloud())
    texts: dict[Key, list[str]] = {resource.key: [] for resource in spec.chosen}
    for resource in spec.chosen:
        texts[resource.key] += resource.list_warnings(context) if supports(resource, ListsWarnings) else ()
    for extension in _judging(spec):
        for key, text in extensions.call(extension, "warn", context):
            texts.get(key, []).append(text)
    found = [
        f"{spec.places[key]}: {key}: {text}" if key in spec.places else f"{key}: {text}"
        for key, mine in texts.items()
        for text in mine
    ]
    found += list_file_warnings(spec, context)
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
    for resource in spec.resources:
        chosen = spec.is_chosen(resource)
        try:
            parts = resolve(resource, replace(context, for_apply=for_apply and chosen))
        except SpecError as error:
            contradictions += error.mistakes
            continue
        except PrepError as error:
            unread.append(Mistake.about(resource.key, str(error), code=error.code))
            parts = (resource,)
        resources += parts
        if for_apply and chosen and supports(resource, ListsInherited):
            place = f"{spec.places[resource.key]}: " if resource.key in spec.places else ""
            warnings += (f"{place}{resource.key}: {warning}" for warning in resource.list_inherited(parts[0]))
        if resource.key in places:
            places |= {part.key: places[resource.key] for part in parts}
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


# --- no two resources write the same file, whatever the paths are by which they name it -----

GENERATED = "generated secret"
"""A part that excludes every other file, but not another use of the same secret."""


def list_file_conflicts(spec: Spec, context: Context) -> Iterator[Mistake]:
    """Yield each file that two resources would write, at the place of the second one."""
    before: dict[object, list[tuple[Resource, WrittenFile]]] = defaultdict(list)
    for resource in spec.resources:
        for file in _written(resource, context):
            same = before[_identity(file.path)]
            for other, earlier in same:
                if _exclude(file, earlier):
                    line = spec.line_of(other.key, earlier.field)
                    where = f"{other.key}" + (f" ({line})" if line else "")
                    part = f", entry {file.part}" if file.part and file.part == earlier.part else ""
                    what = f"{file.field}: {file.path}{part} is also written by {where}"
                    fix = "write to different files" if not part else "choose another entry or file"
                    yield Mistake.about(resource.key, what, fix, field=file.field, code=Code.SPEC_CONTRADICTION)
                    break
            same.append((resource, file))


def list_file_warnings(spec: Spec, context: Context) -> Iterator[str]:
    """Yield each secret without a second copy in a folder that users of another program delete as a whole."""
    written = [(resource, file) for resource in spec.resources for file in _written(resource, context)]
    folders = {os.path.realpath(os.path.dirname(file.path)): file for _, file in written if file.in_folder_of}
    for resource, file in written:
        path = os.path.realpath(file.path)
        folder = next((each for each in folders if file.is_only_copy and path.startswith(f"{each}{os.sep}")), None)
        if folder is not None:
            line = spec.line_of(resource.key, file.field)
            what = f"{file.path} would be lost with the folder of {folders[folder].in_folder_of}, which"
            what += " many delete after a failed installation; choose a path outside of it"
            yield f"{f'{line}: ' if line else ''}{resource.key}: {what}"


def _exclude(file: WrittenFile, other: WrittenFile) -> bool:
    """Whether one of two that have the same path would overwrite the other."""
    if GENERATED in (file.part, other.part):
        return file.part != other.part
    return not (file.part and other.part) or file.part == other.part


def _identity(path: str) -> object:
    """Return what two paths of the same file share: links are followed, and an existing file may have two names."""
    target = os.path.realpath(path)
    try:
        found = os.stat(target)
    except OSError:
        return target
    return found.st_dev, found.st_ino


def _written(resource: Resource, context: Context) -> Iterator[WrittenFile]:
    if supports(resource, WritesFiles):
        yield from resource.written_files(context)
    for steps, secret in walk_steps(resource):
        if isinstance(secret, Secret) and secret.path is not None and not secret.awaited:
            yield WrittenFile(dotted(steps), secret.path, GENERATED, is_only_copy=True)
