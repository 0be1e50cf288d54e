"""The spec: one YAML file a cluster, read into resources; every mistake at once, each with its line."""

from __future__ import annotations

import ast
import difflib
import inspect
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

from openstack_prep.errors import Mistake, SpecError
from openstack_prep.fields import Name
from openstack_prep.install_config import Pool
from openstack_prep.model import Key, Resource
from openstack_prep.resources import (
    KINDS,
    AddressPairs,
    ApplicationCredential,
    CloudsEntry,
    EnvFile,
    Flavor,
    FloatingIP,
    FloatingIPAttachment,
    Image,
    InstallConfig,
    Keypair,
    Network,
    ObjectStore,
    Project,
    Quota,
    RoleAssignment,
    Router,
    SecurityGroup,
    ServerGroup,
    Subnet,
    User,
)
from openstack_prep.resources.project import InProject
from openstack_prep.yaml_places import Document


@dataclass(frozen=True, kw_only=True)
class Clouds:
    """Which entries of clouds.yaml to work with."""

    admin: Name | None = None
    """Entry for an administrator's work; --os-cloud is stronger, OS_CLOUD weaker."""
    tenant: Name | None = None
    """Entry scoped to the project, for the project's own work; default: the user the spec makes."""


@dataclass(frozen=True, kw_only=True)
class Sections:
    """What stands in a spec, in the order in which it is reported."""

    __pydantic_config__: ClassVar[dict[str, Any]] = Resource.__pydantic_config__ | {"title": "openstack_prep spec"}

    name: Name
    """Name of the cluster; marks everything made from this spec, so do not change it later."""
    clouds: Clouds = Clouds()
    """Which entries of clouds.yaml to work with."""
    project: Project | None = None
    """The project; without it everything is made in the one that the cloud entry is scoped to."""
    users: tuple[User, ...] = ()
    """Users; the first with a password and a role in the project does the project's own work."""
    role_assignments: tuple[RoleAssignment, ...] = ()
    """Who may do what where."""
    quota: Quota | None = None
    """Limits of the project."""
    flavors: tuple[Flavor, ...] = ()
    """Sizes of servers."""
    images: tuple[Image, ...] = ()
    """Images to upload."""
    keypairs: tuple[Keypair, ...] = ()
    """SSH public keys."""
    networks: tuple[Network, ...] = ()
    """Networks."""
    subnets: tuple[Subnet, ...] = ()
    """Subnets."""
    routers: tuple[Router, ...] = ()
    """Routers."""
    security_groups: tuple[SecurityGroup, ...] = ()
    """Security groups and their rules."""
    server_groups: tuple[ServerGroup, ...] = ()
    """Server groups."""
    floating_ips: tuple[FloatingIP, ...] = ()
    """Floating IPs."""
    floating_ip_attachments: tuple[FloatingIPAttachment, ...] = ()
    """Floating IPs on ports that exist already."""
    address_pairs: tuple[AddressPairs, ...] = ()
    """Addresses that ports may use besides their own."""
    object_store: ObjectStore | None = None
    """The project's account in the object store."""
    application_credentials: tuple[ApplicationCredential, ...] = ()
    """Application credentials, each with the clouds.yaml entry that keeps its secret."""
    clouds_yaml: tuple[CloudsEntry, ...] = ()
    """Entries to write into clouds.yaml files."""
    env_file: EnvFile | None = None
    """A file of shell variables to write."""
    install_config: InstallConfig | None = None
    """An install-config.yaml to write."""

    def placed(self) -> Iterator[tuple[tuple[str | int, ...], Resource]]:
        """Yield every resource and its place."""
        for section in fields(self):
            value = getattr(self, section.name)
            if isinstance(value, Resource):
                yield (section.name,), value
            elif isinstance(value, tuple):
                for index, resource in enumerate(value):
                    yield (section.name, index), resource


@dataclass(frozen=True)
class Spec:
    """A spec that was read: its resources, and where each stands in the file."""

    name: str
    resources: tuple[Resource, ...]
    clouds: Clouds = Clouds()
    places: Mapping[Key, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def placed(self, mistakes: Iterable[Mistake]) -> list[Mistake]:
        """Return mistakes with the line of the resource they speak of."""
        lines = {str(key): place for key, place in self.places.items()}
        return [
            replace(each, where=f"{lines[each.where]}: {each.where}") if each.where in lines else each
            for each in mistakes
        ]


@cache
def _adapter() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(Sections)


@cache
def _bare_schema() -> Any:
    return _adapter().json_schema()


def schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a spec, for editors."""
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", **deepcopy(_bare_schema())}
    docstrings = _docstrings()
    kinds: dict[str, type[Any]] = {kind.__name__: kind for kind in (*KINDS.values(), Pool)}
    for name, part in [(Sections.__name__, whole), *whole["$defs"].items()]:
        for owner in [each.__name__ for each in kinds[name].__mro__] if name in kinds else [name]:
            for field_name, text in docstrings.get(owner, {}).items():
                part.get("properties", {}).get(field_name, {}).setdefault("description", text)
    return whole


def _docstrings() -> dict[str, dict[str, str]]:
    """Return the docstrings of fields by class.

    pydantic can read them too, but parses a module anew for each class, and passes over base classes.
    """
    places = (f"{__package__}.resources.", f"{__package__}.install_config.model")
    modules = [module for name, module in sys.modules.items() if name.startswith(places)]
    classes = [
        node for module in [sys.modules[__name__], *modules] for node in ast.parse(inspect.getsource(module)).body
    ]
    return {
        node.name: {
            field.target.id: str(text.value.value)
            for field, text in pairwise(node.body)
            if isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
        }
        for node in classes
        if isinstance(node, ast.ClassDef)
    }


def load_spec(path: str | Path) -> Spec:
    """Read a spec; raises SpecError that lists every mistake with its file, line and field."""
    from pydantic import ValidationError

    document = Document(Path(path))
    if not isinstance(document.data, dict):
        what = "is empty" if document.data is None else "is not a mapping of sections"
        raise SpecError([Mistake(f"{path}:1", what, "begin with `name: my-cluster`")])
    warnings: list[str] = []
    context = {"base": document.path.resolve().parent, "warn": warnings.append}
    try:
        text = json.dumps(document.data, default=str)  # YAML's dates are texts to us
        sections = _adapter().validate_json(text, context=context)
    except ValidationError as error:
        found = [_mistake(document, each) for each in error.errors(include_url=False)]
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


# --- mistakes -----------------------------------------------------------------------------


def _mistake(document: Document, error: Mapping[str, Any]) -> Mistake:
    """Return pydantic's finding in our words."""
    loc = error["loc"]
    dotted = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in loc).lstrip(".")
    where = f"{document.place(loc)}: {dotted}"
    if error["type"] == "unexpected_keyword_argument":
        known = sorted(_known_keys(loc[:-1]))
        close = difflib.get_close_matches(str(loc[-1]), known, n=1)
        return Mistake(where, "unknown key", f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}")
    if error["type"] in ("missing", "missing_argument", "missing_keyword_only_argument"):
        return Mistake(where, "is missing", "add it")
    if error["type"] == "secret":
        return Mistake(where, *_parted(error["msg"]))
    said = str(error["ctx"]["error"]) if error["type"] == "value_error" else _plain(error["msg"])
    what, remedy = _parted(said)
    return Mistake(where, f"{_shown(error['input'])} {what}", remedy)


def _parted(said: str) -> tuple[str, str]:
    what, _, remedy = said.partition("; ")
    return what, remedy


def _plain(message: str) -> str:
    return re.sub(r"^(Input|String|Value|List|Tuple|Dictionary) ", "", message)


def _shown(value: Any) -> str:
    """Return a value as it stands in the spec; what is composed may hold a secret."""
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = json.dumps(value, default=str)
    return text if len(text) <= 40 else text[:37] + "..."


def _known_keys(where: Sequence[str | int]) -> Iterable[str]:
    """Return the keys that the schema allows at a place."""
    whole = part = _bare_schema()
    for step in where:
        options = [part, *part.get("anyOf", ())]
        for option in options:
            option = _resolved(whole, option)
            if isinstance(step, int) and "items" in option:
                part = option["items"]
            elif step in option.get("properties", {}):
                part = option["properties"][step]
            elif isinstance(option.get("additionalProperties"), dict):
                part = option["additionalProperties"]
    options = [_resolved(whole, option) for option in (part, *part.get("anyOf", ()))]
    return {key for option in options for key in option.get("properties", {})}


def _resolved(whole: Mapping[str, Any], part: Mapping[str, Any]) -> Any:
    return whole["$defs"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part
