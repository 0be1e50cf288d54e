"""Plans saved to a file, to be reviewed and applied later, possibly on another machine.

The file contains no secret, and no path of this machine except in values of variables, of which ``plan`` warns. Its
digest reveals edits; it is not a signature, because whoever can replace the file can compute a new digest. Therefore
nothing is done because the file says so: the plan is created again, and must be the same, from the same spec and files,
in the same cloud and project. The file only adds the permission for exactly the replacements that it names.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import TypeAdapter, ValidationError

from openstack_prep.base import shell
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import ConfigError, Mistake, PlanRefused, PrepError, SpecError
from openstack_prep.base.formats.foreign_text import parse_json
from openstack_prep.base.given_file import MIB, folder_of, name_of, read_bytes, unreadable
from openstack_prep.base.invalid import shown
from openstack_prep.base.private_file import write_private_here
from openstack_prep.base.raw import Values
from openstack_prep.base.secret import digest
from openstack_prep.base.secret_forms import has_url_secrets, list_named_secrets
from openstack_prep.core.permission import refuse_replacements
from openstack_prep.core.plan import Plan, differences
from openstack_prep.spec.sections import is_in_files
from openstack_prep.verbs.spec_files import fingerprints, names_own_folder, portable
from openstack_prep.version import __version__

# --- the content of a saved plan: its format, its digest, and what is wrong with a file that should be one ---

FORMAT = 3
AGAIN = "plan again with the same options, and save it with --out"
"""No command: without its --destroy, or other options, it would save a different plan."""
MOST_BYTES = 64 * MIB

_STRICT = {"extra": "forbid", "strict": True}


@dataclass(frozen=True, kw_only=True)
class SavedSpec:
    """The spec that a plan was created from; ``path`` is relative to the folder of the plan."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT

    name: str
    path: str
    content: str


@dataclass(frozen=True, kw_only=True)
class SavedCloud:
    """The cloud and project of a plan's connection, not its user; ``entry`` only serves the error message."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT

    entry: str
    auth_url: str
    region: str | None
    project_id: str

    def differences(self, now: SavedCloud) -> list[str]:
        """Return the differences that make it another cloud or project, as text."""
        pairs = {
            "auth_url": (self.auth_url, now.auth_url),
            "region": (self.region, now.region),
            "project": (self.project_id, now.project_id),
        }
        return [f"{name} {before}, not {after}" for name, (before, after) in pairs.items() if before != after]


@dataclass(frozen=True, kw_only=True)
class SavedLoss:
    """What the deletion of a step takes from others, as far as this module needs it."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "ignore", "strict": True}

    address: str
    allowed: bool


@dataclass(frozen=True, kw_only=True)
class SavedStep:
    """A step as far as this module needs it; the rest of it is compared with the present plan."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "ignore", "strict": True}

    resource: str
    action: Literal["create", "update", "adopt", "replace", "delete", "keep"]
    duplicate_of: str = ""
    losses: tuple[SavedLoss, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Content:
    """The content of a saved plan, without its digest."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT

    format: Literal[3]
    made_by: str
    salt: str
    spec: SavedSpec
    cloud: SavedCloud
    tenant: SavedCloud | None
    files: dict[str, str]
    variables: dict[str, Any]
    """Values of the spec's variables that are neither secrets nor defaults."""
    allow_replace: tuple[str, ...]
    """Resources that may be replaced, or that may lose something in an update."""
    steps: tuple[SavedStep, ...]
    purpose: Literal["apply", "destroy"] = "apply"


def read(path: Path) -> dict[str, Any]:
    try:
        content = parse_json(read_bytes(path, MOST_BYTES))
    except OSError as error:
        raise SpecError([Mistake(name_of(path), unreadable(error), AGAIN)]) from None
    except ValueError:
        content = None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise SpecError([Mistake(str(path), "is not a saved plan of this version", AGAIN)])
    return content


def validated(path: Path, raw: dict[str, Any]) -> Content:
    """Return the content of a saved plan; raises SpecError if its digest or its format is wrong."""
    content = {name: value for name, value in raw.items() if name != "digest"}
    try:
        intact = raw.get("digest") == digest_of(content)
    except RecursionError:
        intact = False
    if not intact:
        raise SpecError([Mistake(str(path), "was edited or damaged: its digest does not match", AGAIN)])
    try:
        found: Content = _adapter().validate_json(json.dumps(content))
        bytes.fromhex(found.salt)
    except ValidationError as error:
        place = ".".join(map(str, error.errors(include_input=False)[0]["loc"]))
        raise SpecError([Mistake(f"{path}: {place}", "is not valid in a saved plan", AGAIN)]) from None
    except ValueError:
        raise SpecError([Mistake(f"{path}: salt", "is not hexadecimal", AGAIN)]) from None
    _check_steps(path, found)
    return found


def _check_steps(path: Path, content: Content) -> None:
    """Refuse duplicate steps, and permissions for resources without a step."""
    mistakes = []
    times = Counter(step.resource for step in content.steps)
    for name in sorted(name for name, number in times.items() if number > 1):
        mistakes.append(Mistake(f"{path}: steps", f"contain {name} more than once", AGAIN))
    changing = {step.resource for step in content.steps if step.action in ("update", "adopt", "replace")}
    for name in sorted({*content.allow_replace} - changing):
        mistakes.append(Mistake(f"{path}: allow_replace", f"{name!r} is not a resource that the plan changes", AGAIN))
    if Path(content.spec.path).is_absolute():
        mistakes.append(Mistake(f"{path}: spec.path", "is not relative to the plan", AGAIN))
    if mistakes:
        raise SpecError(mistakes)


@cache
def _adapter() -> Any:
    return TypeAdapter(Content)


def digest_of(content: Mapping[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def id_of(raw: Mapping[str, Any]) -> str:
    """Return the first characters of a saved plan's digest."""
    return str(raw["digest"])[:8]


if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud
    from openstack_prep.spec import Spec


# --- the file: written by plan, and the plan from it that is compared with one made now ---

MADE_BY = b'"made_by": "openstack-prep '
LONGEST_HEAD = 200
"""Bytes of a saved plan within which it says who made it."""


def refuse_other_file(path: Path) -> None:
    """Raise ConfigError if there is a file that is no saved plan: a slip of the shell's completion names the spec.

    A link is replaced, not followed, so what it leads to is safe.
    """
    if path.is_symlink() or not path.is_file():
        return
    try:
        head = _head(path)
    except OSError as error:
        raise ConfigError(f"{path} {unreadable(error)}; choose another file for the plan") from error
    if head and MADE_BY not in head:
        what = f"{path} is no saved plan, and would be replaced"
        raise ConfigError(f"{what}; choose another file for the plan, or delete this one")


def refuse_as_spec(path: Path, command: str) -> None:
    """Raise ConfigError if a path that is given for a spec is a saved plan, which Terraform takes in this place."""
    try:
        is_plan = path.is_file() and MADE_BY in _head(path)
    except OSError:
        return  # whoever reads the spec says why it cannot be read
    if is_plan:
        raise ConfigError(f"{path} is a saved plan, not a spec; use `openstack-prep {command} --plan {path}`")


def _head(path: Path) -> bytes:
    with open(path, "rb") as file:  # of a fleet it may be larger than what read_bytes takes
        return file.read(LONGEST_HEAD)


def save(
    path: Path, plan: Plan, spec: Path, declared: Spec, read: bytes, cloud: Cloud, tenant: Cloud | None = None
) -> str:
    """Write a plan without refusals, and its inputs, and return its id; raises PrepError.

    ``spec`` is the file, ``declared`` what it declares, and ``read`` its content as it was before it was loaded.
    ``tenant`` is the connection of its ``clouds.tenant``.
    """
    refuse_other_file(path)
    found = saved(path, plan, spec, declared, read, cloud, tenant, salt=secrets.token_bytes(16))
    write_private_here(path, json.dumps(found, indent=1) + "\n")
    return id_of(found)


def saved(
    path: Path,
    plan: Plan,
    spec: Path,
    declared: Spec,
    read: bytes,
    cloud: Cloud,
    tenant: Cloud | None = None,
    *,
    salt: bytes,
) -> Values:
    """Return what ``save`` writes to ``path``; raises PrepError."""
    if content_of(spec) != read:
        raise PrepError(f"{spec} was modified while the plan was created; plan again")
    if declared.values and declared.has_plain_secrets:
        what = (
            "has a secret in plain text, or a variable in a URL's login or query, and the plan would hold its variables"
        )
        fix = "declare the variable with secret: true, or use a source of the secret; "
        fix += "for a URL, put the login into ~/.netrc, or apply without a saved plan"
        raise SpecError([Mistake(str(spec), what, fix, code=Code.SPEC_VARIABLE)])
    base = Path(os.path.realpath(spec)).parent
    if exposed := [*_exposed(declared)]:
        raise SpecError(exposed)
    content = {
        "format": FORMAT,
        "made_by": f"openstack-prep {__version__}",
        "salt": salt.hex(),
        "spec": asdict(SavedSpec(name=plan.spec, path=_seen_from(path, spec), content=digest(read, salt))),
        "cloud": asdict(_where(cloud)),
        "tenant": asdict(_where(tenant)) if tenant else None,
        "files": portable(fingerprints(declared, plan, salt), base),
        "variables": dict(declared.values),
        "allow_replace": portable(sorted(allowed_replacements(plan)), base),
        "steps": portable(plan.data(), base),
        **({"purpose": plan.purpose} if plan.purpose == "destroy" else {}),  # so earlier releases read all others
    }
    return {**content, "digest": digest_of(content)}


def _exposed(declared: Spec) -> Iterator[Mistake]:
    """Yield the variables with values that a saved plan must not hold: whoever reviews it would read them."""
    for name in sorted(name for name, value in declared.values.items() if has_url_secrets(value)):
        what = "has a URL with a login or a query, which may be a signature, and the plan would hold it"
        fix = "put the login into ~/.netrc, write the URL into the spec itself, or apply without a saved plan"
        yield Mistake(f"variables.{name}", what, fix, code=Code.SPEC_VARIABLE)
    for name in sorted(name for name, value in declared.values.items() if any(list_named_secrets(value, name))):
        what = "has a secret by the name of a field, and the plan would hold it"
        fix = "declare a variable with secret: true for it, or pass only the fields that the spec uses"
        yield Mistake(f"variables.{name}", what, fix, code=Code.SPEC_VARIABLE)


def list_warnings(spec: Path, declared: Spec) -> Iterator[str]:
    """Yield what a saved plan would tell about this machine."""
    base = folder_of(spec)
    for name in sorted(name for name, value in declared.values.items() if names_own_folder(value, base)):
        what = "has the path of a folder of this machine, which the saved plan contains"
        yield f"variable {name} {what}; give a relative path"


def content_of(spec: Path) -> bytes:
    """Return a spec's bytes; a plan can only be saved if its spec can be read again."""
    if spec.exists() and not spec.is_file():
        raise SpecError([Mistake(str(spec), "is not a regular file", "save the plan from a copy in a regular file")])
    try:
        return read_bytes(spec)
    except OSError:
        return b""  # load_spec reports what is wrong


def _seen_from(path: Path, spec: Path) -> str:
    """Return a spec's path relative to the plan's folder if one of the two folders contains the other."""
    plan_folder, spec_path = Path(os.path.realpath(path)).parent, Path(os.path.realpath(spec))
    if plan_folder in spec_path.parents or spec_path.parent in plan_folder.parents:
        return os.path.relpath(spec_path, plan_folder)
    return spec.name  # a path through a common ancestor would contain directories of this machine


def _where(cloud: Cloud) -> SavedCloud:
    auth_url = cloud.auth_url.rstrip("/").removesuffix("/v3")
    return SavedCloud(entry=cloud.name, auth_url=auth_url, region=cloud.region, project_id=cloud.project_id)


def allowed_replacements(plan: Plan) -> set[str]:
    """Return the resources, in terms of steps, that a plan or its run may replace or take something from."""
    needed, labels = refuse_replacements(plan), {step.key: str(step) for step in plan}
    found = {labels[key] for mistake in needed for key in mistake.keys} | {
        mistake.where for mistake in needed if not mistake.keys
    }
    return found | {str(step) for step in plan if plan.allow_replace and step.previewed_later}


class SavedPlan:
    """A plan that was read from its file; raises SpecError if it is not a plan, or was edited."""

    def __init__(self, path: Path, raw: Values | None = None) -> None:
        """Read the file, unless ``raw`` is its content; ``path`` names it in messages."""
        self.path = path
        self.raw = read(path) if raw is None else raw
        self.content = validated(path, self.raw)
        self.salt = bytes.fromhex(self.content.salt)
        self.digest = str(self.raw["digest"])

    @property
    def id(self) -> str:
        """What people call the plan by."""
        return id_of(self.raw)

    @property
    def allow_replace(self) -> bool:
        """Whether the plan allows any replacement; ``check`` refuses those that it does not name."""
        return bool(self.content.allow_replace)

    @property
    def allow_loss(self) -> frozenset[str]:
        """What its deletions may take from others."""
        return frozenset(loss.address for step in self.content.steps for loss in step.losses if loss.allowed)

    @property
    def adopts(self) -> bool:
        """Whether the plan changes resources that the spec does not manage."""
        return any(step.action == "adopt" for step in self.content.steps)

    @property
    def prunes(self) -> bool:
        """Whether the plan deletes resources that are no longer in the spec."""
        return any(step.action == "delete" and not step.duplicate_of for step in self.content.steps)

    def find_spec(self, given: Path | None = None) -> Path:
        """Return the spec that the plan was created from; raises PlanRefused if no spec with the same content is found.

        Without an argument, it is searched at its place relative to the plan, then in the working directory.
        """
        saved = self.content.spec
        places = [given] if given else [self.path.parent / saved.path, Path(Path(saved.path).name)]
        existing = [place for place in places if place.is_file()]
        for each in existing:
            if digest(read_bytes(each), self.salt) == saved.content:
                return each
        made_from = f"was created from spec {saved.name} ({saved.path})"
        if not existing:
            what = f"{made_from}, but {' and '.join(map(str, dict.fromkeys(places)))} does not exist"
            command = f"{shell.join(['openstack-prep', 'apply', '--plan', str(self.path)])} SPEC"
            raise PlanRefused([Mistake(str(self.path), what, f"pass the spec: {command}")])
        what = f"{made_from}, but {existing[0]} is a different spec, or has changed since"
        raise PlanRefused([Mistake(str(self.path), what, f"pass the spec that it was created from, or {AGAIN}")])

    def check_variables(self, declared: Spec) -> None:
        """Raise PlanRefused if variables have other values: whatever else differs would follow from them."""
        was, now = self.content.variables, declared.values
        differing = sorted(name for name in was.keys() | now.keys() if was.get(name) != now.get(name))
        texts = {
            name: [shown(values[name]) if name in values else "its default" for values in (now, was)]
            for name in differing
        }
        fix = f"leave it out, the plan holds the values; or {AGAIN}"
        refusals = [
            self._refusal(f"variables.{name}", f"is {here} now, and was {there} when the plan was created", fix)
            for name, (here, there) in texts.items()
        ]
        if refusals:
            raise PlanRefused(refusals)

    def check_cloud(self, cloud: Cloud) -> None:
        """Raise PlanRefused if the cloud, region or project differs; the user may differ."""
        self._refuse_another(self.content.cloud, _where(cloud))

    def check(self, now: Plan, spec: Path, declared: Spec, tenant: Cloud | None = None) -> None:
        """Raise PlanRefused, naming all differences, unless the present plan of the spec equals the saved one.

        When the saved one was applied before, there is nothing left to do, except to write files of a fresh checkout
        again. ``spec`` is the file, and ``declared`` what it declares. Replacements that the saved plan does not allow
        are refused, too.
        """
        self.find_spec(spec)
        if self.content.tenant and tenant:
            self._refuse_another(self.content.tenant, _where(tenant))
        base = Path(os.path.realpath(spec)).parent
        files = fingerprints(declared, now, self.salt)
        refusals = []
        if (name := self.content.spec.name) != now.spec:
            refusals.append(self._refusal("spec.name", f"is {name!r}, but the spec's name is {now.spec!r}", AGAIN))
        refusals += self._other_files({portable(path, base): (path, found) for path, found in files.items()})
        written = {str(step) for step in now.pending if is_in_files(type(step.resource))}
        steps = self.raw["steps"]
        if now.purpose == "destroy":  # files of the machine that planned it may be missing here
            absent = {str(resource.key) for resource in declared.resources if is_in_files(type(resource))} - {
                *map(str, now)
            }
            names = portable(sorted(absent), base)
            steps = [step for step in steps if step["resource"] not in names]
        moved = differences(steps, portable(now.data(), base), portable(sorted(written), base))
        refusals += [self._refusal(key, "has changed since the plan was created", AGAIN) for key in moved]
        needed = portable(sorted(allowed_replacements(now)), base)
        what = "would be replaced, which the plan does not allow"
        refusals += [self._refusal(key, what, AGAIN) for key in needed if key not in self.content.allow_replace]
        if refusals:
            raise PlanRefused(refusals)

    def _refusal(self, where: str, what: str, fix: str) -> Mistake:
        return Mistake(f"{self.path}: {where}", what, fix)

    def _refuse_another(self, saved: SavedCloud, now: SavedCloud) -> None:
        if differing := saved.differences(now):
            what = f"was created for a different cloud or project (entry {saved.entry}): {', '.join(differing)}"
            fix = "choose the clouds.yaml entry of that cloud and project with --os-cloud"
            raise PlanRefused([Mistake(str(self.path), what, fix)])

    def _other_files(self, now: Mapping[str, tuple[str, str]]) -> list[Mistake]:
        """Return the files of the present plan that differ; the saved one also names sources of images to upload."""
        mistakes = []
        for name, (path, found) in sorted(now.items()):
            if found != self.content.files.get(name):
                mistakes.append(self._refusal(path, "this file has changed since the plan was created", AGAIN))
        return mistakes
