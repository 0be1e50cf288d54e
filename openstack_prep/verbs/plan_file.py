"""Plans kept in a file, to be reviewed and applied later, perhaps on another machine.

The file holds no secret and no path of this machine.  Its digest shows that it was edited; it is no signature,
for whoever can replace the file can compute another.  Therefore nothing is done because the file says so:
the plan is made again, and must come out the same, from the same spec and files, in the same cloud and project.
The file adds the consent alone, to exactly the replacements that it names.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from openstack_prep.base.errors import Mistake, PlanRefused, PrepError, SpecError
from openstack_prep.base.private_file import write_private_here
from openstack_prep.base.yaml_places import Document
from openstack_prep.core.consent import to_consent
from openstack_prep.core.plan import Plan, differences
from openstack_prep.verbs.spec_files import digest, fingerprints, portable
from openstack_prep.version import __version__

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud

FORMAT = 2
AGAIN = "make it again with `openstack-prep plan -o`"
MOST_BYTES = 64 * 2**20

_STRICT = {"extra": "forbid", "strict": True}


@dataclass(frozen=True, kw_only=True)
class SavedSpec:
    """The spec that a plan was made from; ``path`` is relative to the folder of the plan."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT

    name: str
    path: str
    content: str


@dataclass(frozen=True, kw_only=True)
class SavedCloud:
    """A connection that a plan was made by: not who acts, but where.  ``entry`` only serves the error message."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT

    entry: str
    auth_url: str
    region: str | None
    project_id: str

    def differences(self, now: SavedCloud) -> list[str]:
        """Return in words what makes it another cloud or project."""
        pairs = {
            "auth_url": (self.auth_url, now.auth_url),
            "region": (self.region, now.region),
            "project": (self.project_id, now.project_id),
        }
        return [f"{name} {before}, not {after}" for name, (before, after) in pairs.items() if before != after]


@dataclass(frozen=True, kw_only=True)
class SavedStep:
    """A step as far as it must be known here; the rest of it is compared with what is planned now."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "ignore", "strict": True}

    resource: str
    action: Literal["create", "update", "adopt", "replace", "delete", "keep"]
    duplicate_of: str = ""


@dataclass(frozen=True, kw_only=True)
class Content:
    """What a saved plan holds, without its digest."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT

    format: Literal[2]
    made_by: str
    salt: str
    spec: SavedSpec
    cloud: SavedCloud
    tenant: SavedCloud | None
    files: dict[str, str]
    allow_replace: tuple[str, ...]
    """Resources that may be deleted and made again, or that an update may take something from."""
    steps: tuple[SavedStep, ...]


def save(path: Path, plan: Plan, spec: Path, read: bytes, cloud: Cloud, tenant: Cloud | None = None) -> None:
    """Write a plan that has no refusals, and what it was made from; raises PrepError.

    ``read`` is the spec as it was before it was loaded; ``tenant`` is the connection of its ``clouds.tenant``.
    """
    if content_of(spec) != read:
        raise PrepError(f"{spec} was changed while the plan was made; plan again")
    salt, base = secrets.token_bytes(16), spec.resolve().parent
    content = {
        "format": FORMAT,
        "made_by": f"openstack-prep {__version__}",
        "salt": salt.hex(),
        "spec": asdict(SavedSpec(name=plan.spec, path=_seen_from(path, spec), content=digest(read, salt))),
        "cloud": asdict(_where(cloud)),
        "tenant": asdict(_where(tenant)) if tenant else None,
        "files": portable(fingerprints(Document(spec).data, base, plan, salt), base),
        "allow_replace": portable(sorted(_consented(plan)), base),
        "steps": portable(plan.data(), base),
    }
    write_private_here(path, json.dumps({**content, "digest": _sum(content)}, indent=1) + "\n")


def content_of(spec: Path) -> bytes:
    """Return a spec's bytes; a plan can only be kept of one that can be read again."""
    if spec.exists() and not spec.is_file():
        raise SpecError([Mistake(str(spec), "is not a regular file", "a saved plan needs one, to compare it later")])
    try:
        return spec.read_bytes()
    except OSError:
        return b""  # load_spec says what is wrong


def _seen_from(path: Path, spec: Path) -> str:
    """Return a spec's path relative to the plan's folder when one of the two folders holds the other."""
    here, there = path.resolve().parent, spec.resolve()
    if here in there.parents or there.parent in here.parents:
        return os.path.relpath(there, here)
    return spec.name  # a path by way of a common ancestor would be one of this machine


def _where(cloud: Cloud) -> SavedCloud:
    auth_url = cloud.auth_url.rstrip("/").removesuffix("/v3")
    return SavedCloud(entry=cloud.name, auth_url=auth_url, region=cloud.region, project_id=cloud.project_id)


def _consented(plan: Plan) -> set[str]:
    """Return the resources, as steps call them, that a plan replaces or takes something from, or may when it runs."""
    needed, labels = to_consent(plan), {step.key: str(step) for step in plan}
    found = {labels[key] for each in needed for key in each.keys} | {each.where for each in needed if not each.keys}
    return found | {str(step) for step in plan if plan.allow_replace and step.previewed_later}


class SavedPlan:
    """A plan read back from its file; raises SpecError when it is not one, or was edited."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.raw = _read(path)
        self.content = _validated(path, self.raw)
        self.salt = bytes.fromhex(self.content.salt)

    @property
    def allow_replace(self) -> bool:
        """Whether the plan allows any replacement; ``check`` refuses those that it does not name."""
        return bool(self.content.allow_replace)

    @property
    def adopts(self) -> bool:
        """Whether the plan changes what is not managed by the spec."""
        return any(step.action == "adopt" for step in self.content.steps)

    @property
    def prunes(self) -> bool:
        """Whether the plan deletes what is no longer in the spec."""
        return any(step.action == "delete" and not step.duplicate_of for step in self.content.steps)

    def find_spec(self, given: Path | None = None) -> Path:
        """Return the spec that the plan was made from; raises PlanRefused when there is none of the same content.

        Without one given, it is looked for at its place relative to the plan, then in the working directory.
        """
        saved = self.content.spec
        places = [given] if given else [self.path.parent / saved.path, Path(Path(saved.path).name)]
        there = [each for each in places if each.is_file()]
        for each in there:
            if digest(each.read_bytes(), self.salt) == saved.content:
                return each
        made_from = f"was made from the spec {saved.name} ({saved.path})"
        if not there:
            what = f"{made_from}, and {' and '.join(map(str, dict.fromkeys(places)))} does not exist"
            raise PlanRefused([Mistake(str(self.path), what, f"name it: openstack-prep apply --plan {self.path} SPEC")])
        what = f"{made_from}; {there[0]} differs from it, or has changed since"
        raise PlanRefused([Mistake(str(self.path), what, f"give the spec it was made from, or {AGAIN}")])

    def check_cloud(self, cloud: Cloud) -> None:
        """Raise PlanRefused when it is another cloud, region or project; who acts there may differ."""
        self._refuse_another(self.content.cloud, _where(cloud))

    def check(self, now: Plan, spec: Path, tenant: Cloud | None = None) -> None:
        """Raise PlanRefused, naming all that differs, unless today's plan for the spec is the saved one.

        A replacement that the saved plan does not allow is refused, too.
        """
        self.find_spec(spec)
        if self.content.tenant and tenant:
            self._refuse_another(self.content.tenant, _where(tenant))
        base = spec.resolve().parent
        files = fingerprints(Document(spec).data, base, now, self.salt)
        refusals = self._other_files({portable(path, base): (path, found) for path, found in files.items()})
        moved = differences(self.raw["steps"], portable(now.data(), base))
        refusals += [self._refusal(key, "has changed since the plan was made", AGAIN) for key in moved]
        needed = portable(sorted(_consented(now)), base)
        what = "would be replaced, which the plan does not allow"
        refusals += [self._refusal(key, what, AGAIN) for key in needed if key not in self.content.allow_replace]
        if refusals:
            raise PlanRefused(refusals)

    def _refusal(self, where: str, what: str, remedy: str) -> Mistake:
        return Mistake(f"{self.path}: {where}", what, remedy)

    def _refuse_another(self, saved: SavedCloud, now: SavedCloud) -> None:
        if differing := saved.differences(now):
            what = f"was made for another cloud or project (entry {saved.entry}): {', '.join(differing)}"
            remedy = "choose the entry of clouds.yaml for that cloud and project by --os-cloud"
            raise PlanRefused([Mistake(str(self.path), what, remedy)])

    def _other_files(self, now: Mapping[str, tuple[str, str]]) -> list[Mistake]:
        mistakes = []
        for name in sorted(self.content.files.keys() | now.keys()):
            path, found = now.get(name, (name, None))
            if found != self.content.files.get(name):
                mistakes.append(self._refusal(path, "this file has changed since the plan was made", AGAIN))
        return mistakes


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1)
        content = json.loads(text) if len(text) <= MOST_BYTES else None
    except OSError as error:
        raise SpecError([Mistake(str(path), f"cannot be read: {error.strerror}", AGAIN)]) from None
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise SpecError([Mistake(str(path), "is not a saved plan of this version", AGAIN)])
    return content


def _validated(path: Path, raw: dict[str, Any]) -> Content:
    """Return the content of a saved plan; raises SpecError when its digest or its shape is wrong."""
    from pydantic import ValidationError

    content = {name: value for name, value in raw.items() if name != "digest"}
    try:
        intact = raw.get("digest") == _sum(content)
    except RecursionError:
        intact = False
    if not intact:
        raise SpecError([Mistake(str(path), "was edited or damaged: its digest does not match", AGAIN)])
    try:
        found: Content = _adapter().validate_json(json.dumps(content))
        bytes.fromhex(found.salt)
    except ValidationError as error:
        place = ".".join(map(str, error.errors(include_input=False)[0]["loc"]))
        raise SpecError([Mistake(f"{path}: {place}", "is not what a saved plan holds there", AGAIN)]) from None
    except ValueError:
        raise SpecError([Mistake(f"{path}: salt", "is not hexadecimal", AGAIN)]) from None
    _check_steps(path, found)
    return found


def _check_steps(path: Path, content: Content) -> None:
    """Refuse steps that are doubled, and consent to what is no step."""
    mistakes = []
    times = Counter(step.resource for step in content.steps)
    for name in sorted(name for name, number in times.items() if number > 1):
        mistakes.append(Mistake(f"{path}: steps", f"hold {name} more than once", AGAIN))
    changing = {step.resource for step in content.steps if step.action in ("update", "adopt", "replace")}
    for name in sorted({*content.allow_replace} - changing):
        mistakes.append(Mistake(f"{path}: allow_replace", f"{name!r} is not a resource that the plan changes", AGAIN))
    if Path(content.spec.path).is_absolute():
        mistakes.append(Mistake(f"{path}: spec.path", "is not relative to the plan", AGAIN))
    if mistakes:
        raise SpecError(mistakes)


@cache
def _adapter() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(Content)


def _sum(content: Mapping[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
