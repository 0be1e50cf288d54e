"""YAML to resources; every mistake at once, each with its line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from openstack_prep.errors import Mistake, SpecError
from openstack_prep.model import Key, Resource
from openstack_prep.resources import Project
from openstack_prep.resources.project import InProject
from openstack_prep.spec.sections import Clouds, Sections, adapter
from openstack_prep.yaml_places import Document


@dataclass(frozen=True)
class Spec:
    """A spec that was read: its resources, and where each stands in the file."""

    name: str
    resources: tuple[Resource, ...]
    clouds: Clouds = field(default_factory=Clouds)
    places: Mapping[Key, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def placed(self, mistakes: Iterable[Mistake]) -> list[Mistake]:
        """Return mistakes with the line of the resource they speak of."""
        lines = {str(key): place for key, place in self.places.items()}
        return [
            replace(each, where=f"{lines[each.where]}: {each.where}") if each.where in lines else each
            for each in mistakes
        ]


def load_spec(path: str | Path) -> Spec:
    """Read a spec; raises SpecError that lists every mistake with its file, line and field."""
    from pydantic import ValidationError

    from openstack_prep.spec.mistakes import mistake

    document = Document(Path(path))
    if not isinstance(document.data, dict):
        what = "is empty" if document.data is None else "is not a mapping of sections"
        raise SpecError([Mistake(f"{path}:1", what, "begin with `name: my-cluster`")])
    warnings: list[str] = []
    context = {"base": document.path.resolve().parent, "warn": warnings.append}
    try:
        text = json.dumps(document.data, default=str)  # YAML's dates are texts to us
        sections = adapter().validate_json(text, context=context)
    except ValidationError as error:
        found = [mistake(document, each) for each in error.errors(include_url=False)]
        raise SpecError(document.repeated + found) from None
    return _assemble(document, sections, warnings)


def _assemble(document: Document, sections: Sections, warnings: Sequence[str]) -> Spec:
    mistakes = list(document.repeated)
    places: dict[Key, str] = {}
    resources: list[Resource] = []
    for where, declared in sections.placed():
        resource = _in_project(declared, sections.project)
        place = document.place(where)
        if resource.key in places:
            what = f"{resource.key} stands here and at {places[resource.key]}"
            mistakes.append(Mistake(place, what, "give each a name of its own"))
        for part in resource.parts():
            places.setdefault(part.key, place)
        resources.append(resource)
    if mistakes:
        raise SpecError(mistakes)
    return Spec(sections.name, tuple(resources), sections.clouds, places, tuple(warnings))


def _in_project(resource: Resource, project: Project | None) -> Resource:
    """Place what names no project into the one of the spec."""
    if isinstance(resource, InProject) and resource.project is None and project is not None:
        return resource.placed_in(project)
    return resource
