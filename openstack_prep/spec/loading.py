"""YAML to resources; all errors at once, each with its line."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.formats.yaml_places import Document
from openstack_prep.base.key import Key, labels
from openstack_prep.base.raw import Raw
from openstack_prep.core.model import Resource
from openstack_prep.resources.identity.in_project import InProject
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.identity.role_assignment import RoleAssignment
from openstack_prep.spec.sections import Clouds, Sections, read

if TYPE_CHECKING:
    from openstack_prep.exposures.cluster_fields import ClusterFields
    from openstack_prep.kubernetes.networks import ClusterNetworks
    from openstack_prep.resources.orchestration.stack import Stack
    from openstack_prep.spec.mistakes import Placed


@dataclass(frozen=True)
class Spec:
    """A spec that was read: its resources, and the place of each in the file.

    ``only``: the selected resources, if not all are; the others are only read to resolve these.
    """

    name: str
    resources: tuple[Resource, ...]
    clouds: Clouds = field(default_factory=Clouds)
    places: Mapping[Key, str] = field(default_factory=dict)
    parameter_places: Mapping[tuple[Key, str], str] = field(default_factory=dict)
    """The place of each parameter of a stack, by the stack's key and the parameter's name."""
    warnings: tuple[str, ...] = ()
    only: frozenset[Key] | None = None
    unread: tuple[Mistake, ...] = ()
    """Errors that occurred while resources were resolved; a plan to apply them is refused."""
    checked: bool = False
    """Whether the declarations have read its resources; resources made in Python are read when a verb gets them."""
    complete: bool = False
    """Whether it declares everything that its name manages: other resources with that name were declared earlier."""
    document: Placed | None = field(default=None, repr=False, compare=False)
    """What the spec was read from."""
    paths: Mapping[Key, Sequence[str | int]] = field(default_factory=dict, repr=False)
    """The path of each resource in the document."""

    @property
    def folder(self) -> Path | None:
        """The folder of its file; None if it was not read from one."""
        return Path(os.path.realpath(self.document.path)).parent if isinstance(self.document, Document) else None

    @property
    def is_whole(self) -> bool:
        """Whether no resource is excluded."""
        return self.complete and self.only is None

    @property
    def chosen(self) -> tuple[Resource, ...]:
        """The selected resources."""
        return tuple(filter(self.is_chosen, self.resources))

    def limited_to(self, kind: str, name: str | None = None) -> Spec:
        """Return the spec with only one kind selected, or one resource of it; raises SpecError if there is none."""
        found = [each.key for each in self.resources if each.key.kind == kind]
        keys = frozenset(key for key in found if name in (None, key.name))
        if not keys:
            hint = f"choose one of {', '.join(key.name for key in found)}" if found else f"it declares no {kind}"
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
        line = self.parameter_places.get((first, mistake.parameter)) or self._line(first, mistake.field)
        where = ", ".join(names.get(key, str(key)) for key in mistake.keys)
        return replace(mistake, where=f"{line}: {where}" if line else where)

    def _line(self, key: Key, field: str) -> str | None:
        """Return the place of a field of a resource, or of the innermost part around it that the document has."""
        path = self.paths.get(key) if field else None
        if self.document is None or path is None:
            return self.places.get(key)
        steps = (int(each[1:-1]) if each[0] == "[" else each for each in re.findall(r"\[\d+\]|[^.\[]+", field))
        return self.document.place((*path, *steps))


def load_spec(path: str | Path, sections: Collection[str] | None = None) -> Spec:
    """Read a spec, or some sections of it; raises SpecError that lists all errors with file, line and field."""
    document = Document(Path(path))
    if not isinstance(document.data, dict):
        what = "is empty" if document.data is None else "is not a mapping of sections"
        raise SpecError(
            [Mistake(f"{path}:1", what, "start the file with `name: my-cluster`", code=Code.SPEC_UNREADABLE)]
        )
    data = {name: each for name, each in document.data.items() if sections is None or name in sections}
    if sections is not None and "exposed_clusters" in data:
        data["exposed_clusters"] = _without_secrets(data["exposed_clusters"])
    spec = _read(data, document, Path(os.path.realpath(document.path)).parent, document.repeated)
    return replace(spec, complete=sections is None)


def _without_secrets(clusters: object) -> object:
    """Return exposed clusters without passwords, for those who need a part of a spec and no secrets."""
    if not isinstance(clusters, list):
        return clusters
    found = []
    for each in clusters:
        if isinstance(each, dict) and isinstance(each.get("external_ips"), dict):
            each = each | {"external_ips": {key: value for key, value in each["external_ips"].items() if key != "bgp"}}
        found.append(each)
    return found


@dataclass(frozen=True)
class _Elsewhere:
    """Represents a document if the spec was not read from YAML."""

    origin: str

    def place(self, where: Sequence[str | int]) -> str:
        return self.origin

    def part(self, where: Sequence[str | int]) -> Hashable:
        return tuple(where)


def spec_of(data: Raw, place: str, base: Path) -> Spec:
    """Return the spec that plain data describe; ``place`` names their origin, paths are relative to ``base``.

    Raises SpecError.
    """
    return _read(data, _Elsewhere(place), base, ())


def _read(data: Raw, document: Document | _Elsewhere, base: Path, repeated: Sequence[Mistake]) -> Spec:
    from pydantic import ValidationError

    from openstack_prep.spec.mistakes import mistakes

    warnings: list[str] = []
    context = {"base": base, "warn": warnings.append}
    try:
        text = json.dumps(data, default=str)  # dates of YAML are texts in a spec
        sections = read(text, data, context)
    except ValidationError as error:
        raise SpecError([*repeated, *mistakes(document, error.errors(include_url=False))]) from None
    return _assemble(document, sections, warnings, repeated)


def _assemble(
    document: Document | _Elsewhere, sections: Sections, warnings: Sequence[str], repeated: Sequence[Mistake]
) -> Spec:
    mistakes = list(repeated)
    places: dict[Key, str] = {}
    paths: dict[Key, tuple[str | int, ...]] = {}
    parameters: dict[tuple[Key, str], str] = {}
    resources: list[Resource] = []
    for where, declared in sections.placed():
        resource = place_in(_on_networks(declared, sections.cluster_networks), sections.project)
        place = document.place(where)
        if resource.key in places:
            what = f"{resource.key} is declared twice, also at {places[resource.key]}"
            mistakes.append(Mistake(place, what, "choose distinct names", code=Code.SPEC_DUPLICATE_NAME))
        places.setdefault(resource.key, place)
        paths.setdefault(resource.key, where)
        if resource.kind == "stack":
            stack = cast("Stack", resource)
            for section, given in (("secret_parameters", stack.secret_parameters), ("parameters", stack.parameters)):
                parameters |= {(resource.key, name): document.place((*where, section, name)) for name in given or ()}
        resources.append(resource)
    if mistakes:
        raise SpecError(mistakes)
    return Spec(
        sections.name,
        tuple(with_opened(resources, places)),
        sections.clouds,
        places,
        parameters,
        tuple(dict.fromkeys(warnings)),
        checked=True,
        document=document,
        paths=paths,
    )


def with_opened(resources: Sequence[Resource], places: dict[Key, str]) -> list[Resource]:
    """Return resources with what the exposures of a spec need in OpenStack; it has the place of their cluster."""
    found = list(resources)
    for cluster in (each for each in resources if each.kind == "exposed_cluster"):
        from openstack_prep.exposures.opened import with_opened as opened
        from openstack_prep.exposures.recordsets import with_recordsets

        found = [*with_recordsets(opened(found, cast("ClusterFields", cluster)), cast("ClusterFields", cluster))]
        places |= {each.key: places.get(cluster.key, "") for each in found if each.key not in places}
    return found


def _on_networks(resource: Resource, networks: ClusterNetworks | None) -> Resource:
    """Set the networks of a cluster from those of the spec, unless it has its own."""
    if networks is None:
        return resource
    from openstack_prep.kubernetes.cluster.rke_cluster import RkeCluster

    if isinstance(resource, RkeCluster) and resource.networks is None:
        return replace(resource, networks=networks)
    return resource


def place_in(resource: Resource, project: Project | None) -> Resource:
    """Return a resource in the project of its spec, unless it names a project or a domain itself."""
    if project is None or not isinstance(resource, InProject) or resource.project is not None:
        return resource
    if isinstance(resource, RoleAssignment) and resource.domain is not None:
        return resource
    return replace(resource, project=project.name, project_domain=project.domain)
