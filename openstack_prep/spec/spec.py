"""YAML to resources; all errors at once, each with its line."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.formats.yaml_places import Document
from openstack_prep.base.key import Key, labels
from openstack_prep.base.raw import Raw
from openstack_prep.core.model import Resource
from openstack_prep.core.resource import needs_cloud
from openstack_prep.resources.identity.project import Project
from openstack_prep.spec import completion
from openstack_prep.spec.completion import Declaration
from openstack_prep.spec.mistakes import mistakes
from openstack_prep.spec.parts import NoDocument, Part, merged, read_parts
from openstack_prep.spec.sections import Clouds, Sections, read
from openstack_prep.spec.substitution import Tokens
from openstack_prep.spec.variables import Given

if TYPE_CHECKING:
    from openstack_prep.resources.orchestration.stack import Stack
    from openstack_prep.spec.mistakes import Placed


@dataclass(frozen=True)
class Spec:
    """A spec that was read: its resources, and the place of each in the file.

    ``only``: the selected resources, if not all are; the others are only read to resolve these.
    """

    name: str
    """Its name, which the ownership tags contain."""
    resources: tuple[Resource, ...]
    """Everything that it declares."""
    clouds: Clouds = field(default_factory=Clouds)
    """The entries of clouds.yaml that it names, for the administrator and for the project's own work."""
    places: Mapping[Key, str] = field(default_factory=dict)
    """The file and line of each resource."""
    parameter_places: Mapping[tuple[Key, str], str] = field(default_factory=dict)
    """The place of each parameter of a stack, by the stack's key and the parameter's name."""
    warnings: tuple[str, ...] = ()
    """Warnings about its text, such as passwords in plain text."""
    only: frozenset[Key] | None = None
    unread: tuple[Mistake, ...] = ()
    """Errors that occurred while resources were resolved; a plan to apply them is refused."""
    checked: bool = False
    """Whether the declarations have read its resources; resources made in Python are read when a verb gets them."""
    complete: bool = False
    """Whether it declares everything that its name manages: other resources with that name were declared earlier."""
    parts: tuple[Part, ...] = field(default=(), repr=False, compare=False)
    """The files that it was read from, itself first."""
    paths: Mapping[Key, tuple[Placed, Sequence[str | int]]] = field(default_factory=dict, repr=False, compare=False)
    """The file of each resource, and its path in there."""
    values: Mapping[str, object] = field(default_factory=dict, repr=False)
    """Values of variables that were given and are no secrets."""
    has_plain_secrets: bool = False
    """Whether the value of a field for secrets is the secret itself, or a variable is part of a URL's login or query.
    """
    sources: tuple[object, ...] = field(default=(), repr=False, compare=False)
    """Sources of the secrets among its variables, with absolute paths."""

    @property
    def folder(self) -> Path | None:
        """The folder of its file; None if it was not read from one."""
        return self.parts[0].base if self.parts and isinstance(self.parts[0].document, Document) else None

    @property
    def is_whole(self) -> bool:
        """Whether no resource is excluded."""
        return self.complete and self.only is None

    @property
    def needs_cloud(self) -> bool:
        """Whether anything of the spec is in a cloud; an entry that it names for its work is one, too."""
        return bool(self.clouds.admin or self.clouds.tenant) or any(map(needs_cloud, self.resources))

    @property
    def chosen(self) -> tuple[Resource, ...]:
        """The selected resources."""
        return tuple(filter(self.is_chosen, self.resources))

    def limited_to(self, kind: str, name: str | None = None) -> Spec:
        """Return the spec with only one kind selected, or one resource of it; raises SpecError if there is none."""
        found = [each.key for each in self.resources if each.key.kind == kind]
        keys = frozenset(key for key in found if name in (None, key.name))
        if not keys:
            hint = f"choose one of {', '.join(key.name for key in found)}" if found else f"declare one in {kind}s"
            raise SpecError([Mistake(self.name, f"the spec has no {kind} {name or ''}".rstrip(), hint)])
        return replace(self, only=keys)

    def is_chosen(self, resource: Resource) -> bool:
        """Whether a resource is selected."""
        return self.only is None or resource.key in self.only

    def placed(self, mistakes: Iterable[Mistake]) -> list[Mistake]:
        """Return mistakes with the line of their resource, the first of several, or of its field or parameter."""
        names = labels(each.key for each in self.resources)
        return [self._placed(each, names) for each in mistakes]

    def _placed(self, mistake: Mistake, names: Mapping[Key, str]) -> Mistake:
        if not mistake.keys:
            return mistake
        first = mistake.keys[0]
        line = self.parameter_places.get((first, mistake.parameter)) or self.line_of(first, mistake.field)
        where = ", ".join(names.get(key, str(key)) for key in mistake.keys)
        return replace(mistake, where=f"{line}: {where}" if line else where)

    def line_of(self, key: Key, field: str) -> str | None:
        """Return the place of a field of a resource, or of the innermost part around it that the document has."""
        if not field or key not in self.paths:
            return self.places.get(key)
        part, path = self.paths[key]
        steps = (int(each[1:-1]) if each[0] == "[" else each for each in re.findall(r"\[\d+\]|[^.\[]+", field))
        return part.place((*path, *steps))


def load_spec(
    path: str | Path,
    sections: Collection[str] | None = None,
    *,
    variables: Mapping[str, object] | None = None,
    vars_files: str | Path | Sequence[str | Path] = (),
) -> Spec:
    """Read the spec at ``path``, or only some ``sections`` of it.

    ``variables`` are values of its variables by name, of the declared type; ``vars_files`` are YAML files of such
    values, of which the last one counts, and any of which ``variables`` override. Raises SpecError that lists all
    errors with file, line and field.
    """
    listed = [vars_files] if isinstance(vars_files, str | Path) else vars_files
    files = tuple(Path(os.path.expanduser(each)) for each in listed)
    if not isinstance(variables, Mapping | None):
        what = f"is a {type(variables).__name__}, not a mapping"
        raise SpecError([Mistake("variables", what, "pass values by name", code=Code.SPEC_VARIABLE)])
    values = {str(name): value for name, value in (variables or {}).items()}
    return read_spec(Path(path), Given(files=files, values=values), sections)


def read_spec(
    path: Path,
    given: Given,
    sections: Collection[str] | None = None,
    read: Callable[[Path], Document] = Document,
) -> Spec:
    """Read a spec with values for its variables; raises SpecError.

    ``read`` returns the document of a file, also of one that was read for another spec.
    """
    parts = read_parts(path, sections, given, read)
    found: list[tuple[Part, Sections]] = []
    mistakes, warnings = parts.mistakes, list[str]()
    for file in parts.files:
        name = found[0][1].name if found else None
        valid, wrong = _sections(file, warnings, parts.tokens, name, needs_secrets=given.needs_secrets)
        found.append((file, valid))
        mistakes += wrong
    what, fix = "a variable that is a secret stands here, which only fields for secrets take", "use another variable"
    mistakes += [Mistake(each, what, fix, code=Code.SPEC_VARIABLE) for each in parts.tokens.left]
    spec = _assemble(found, warnings, [*dict.fromkeys(mistakes)])
    return replace(
        spec,
        complete=sections is None,
        values=parts.values,
        sources=parts.sources,
        has_plain_secrets=parts.tokens.plain,
    )


def spec_of(data: Raw, place: str, base: Path) -> Spec:
    """Return the spec that plain data describe; ``place`` names their origin, paths are relative to ``base``.

    Raises SpecError.
    """
    part, warnings = Part(NoDocument(place), base / place, base, dict(data)), list[str]()
    tokens = Tokens()
    sections, wrong = _sections(part, warnings, tokens, None)
    return replace(_assemble([(part, sections)], warnings, wrong), has_plain_secrets=tokens.plain)


def _sections(
    part: Part, warnings: list[str], tokens: Tokens, name: str | None, *, needs_secrets: bool = True
) -> tuple[Sections, list[Mistake]]:
    """Return the sections of one file without their wrong items, and what is wrong with these.

    ``name`` is the spec's for the files that it includes.
    """
    context = {"base": part.base, "warn": warnings.append, "given": tokens.take, "needed": needs_secrets}
    try:
        return read(_json(part.data), part.data, context, name), []
    except ValidationError as error:
        errors = error.errors(include_url=False)
    valid, wrong = _without_wrong_items(part.data, [each["loc"] for each in errors])
    sections = read(_json(valid), valid, context, name if "name" in valid else name or "")
    # what could not be filled in, and secrets where none belongs, are reported as such
    errors = [each for each in errors if not part.has_failed(each["loc"]) and not tokens.get(each["input"])]
    return _with_places(sections, wrong), mistakes(part, errors, reference=part.reference)


def _json(data: Raw) -> str:
    return json.dumps(data, default=str)  # dates of YAML are texts in a spec


def _without_wrong_items(data: Raw, places: Iterable[Sequence[str | int]]) -> tuple[Raw, dict[str, set[int]]]:
    """Return data without what is wrong, and the indexes of the items of lists that are left out."""
    wrong: dict[str, set[int]] = {}
    left_out = set[str]()
    for section, *inner in places:
        if inner and isinstance(inner[0], int):
            wrong.setdefault(str(section), set()).add(inner[0])
        else:
            left_out.add(str(section))
    # a key that is no text, such as on, which YAML reads as true, has no section and another name in JSON
    valid = {key: value for key, value in data.items() if isinstance(key, str) and key not in left_out}
    for section in wrong.keys() & valid.keys():
        valid[section] = [item for index, item in enumerate(data[section]) if index not in wrong[section]]
    return valid, wrong


def _with_places(sections: Sections, wrong: Mapping[str, Collection[int]]) -> Sections:
    """Return sections with None for each item that was left out, so that an index means the same as in the file."""
    lists: dict[str, Any] = {}
    for section, indexes in wrong.items():
        items = list(getattr(sections, section, ()))
        for index in sorted(indexes):
            items.insert(index, None)
        lists[section] = tuple(items)
    return replace(sections, **lists)


def _assemble(read: Sequence[tuple[Part, Sections]], warnings: Sequence[str], mistakes: list[Mistake]) -> Spec:
    """Return the spec that several files declare together; raises SpecError, also with the given mistakes."""
    whole, twice = merged(read)
    mistakes += twice
    declared = [
        Declaration(resource, part.place(where), (part, where))
        for part, sections in read
        for where, resource in sections.placed()
        if not isinstance(resource, Project) or resource is getattr(whole, "project", None)  # several were reported
    ]
    complete, ambiguous = completion.complete(declared)
    mistakes += ambiguous
    if mistakes:
        raise SpecError(mistakes)
    places = {declaration.resource.key: declaration.place for declaration in complete}
    return Spec(
        whole.name,
        tuple(completion.derive([declaration.resource for declaration in complete], places, vars(whole))),
        whole.clouds,
        places,
        dict(_places_of_parameters(complete)),
        tuple(dict.fromkeys(warnings)),
        checked=True,
        parts=tuple(part for part, _ in read),
        paths={declaration.resource.key: declaration.source for declaration in complete},
    )


def _places_of_parameters(
    declarations: Iterable[Declaration[tuple[Part, tuple[str | int, ...]]]],
) -> Iterator[tuple[tuple[Key, str], str]]:
    """Yield the place of each parameter of a stack."""
    for declaration in declarations:
        if declaration.resource.kind == "stack":
            stack, (part, where) = cast("Stack", declaration.resource), declaration.source
            for section, given in (("secret_parameters", stack.secret_parameters), ("parameters", stack.parameters)):
                for name in given or ():
                    yield (stack.key, name), part.place((*where, section, name))
