"""The content of a saved plan: its format, its digest, and what is wrong with a file that should be one."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.formats.foreign_text import parse_json
from openstack_prep.base.given_file import MIB, read_bytes, unreadable

FORMAT = 3
AGAIN = "create it again with `openstack-prep plan -o`"
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


def read(path: Path) -> dict[str, Any]:
    try:
        content = parse_json(read_bytes(path, MOST_BYTES))
    except OSError as error:
        raise SpecError([Mistake(str(path), unreadable(error), AGAIN)]) from None
    except ValueError:
        content = None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise SpecError([Mistake(str(path), "is not a saved plan of this version", AGAIN)])
    return content


def validated(path: Path, raw: dict[str, Any]) -> Content:
    """Return the content of a saved plan; raises SpecError if its digest or its format is wrong."""
    from pydantic import ValidationError

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
    from pydantic import TypeAdapter

    return TypeAdapter(Content)


def digest_of(content: Mapping[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
