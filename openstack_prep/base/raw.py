"""Data without declared members: answers of APIs, documents of JSON and YAML, fields by name; and walks through it.

The reader of an answer creates a record from it as soon as possible; from then on, members have types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeAlias, TypeVar, cast

T = TypeVar("T")

Raw: TypeAlias = Mapping[str, Any]
"""An object of JSON or YAML, which must not be changed."""
Values: TypeAlias = dict[str, Any]
"""Values by name that the caller may change: fields of a resource in terms of a spec, or a body to send."""
Steps: TypeAlias = tuple[str | int, ...]
"""The keys and indexes that lead to a part of data."""
_NOTHING = object()


def dotted(steps: Sequence[str | int]) -> str:
    """Return a path such as ``nodes[0].role``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")


def value_at(data: Any, path: str | Sequence[str | int], default: object = None) -> Any:
    """Return the value at a dotted path of mappings, or at steps; ``default`` when they lead nowhere."""
    for step in path.split(".") if isinstance(path, str) else path:
        is_item = isinstance(step, int) and isinstance(data, list | tuple) and step < len(data)
        if not is_item and not (isinstance(data, Mapping) and step in data):
            return default
        data = data[step]
    return data


def has_value(data: object, steps: Sequence[str | int]) -> bool:
    """Whether steps lead to a value, which may be null."""
    return value_at(data, steps, _NOTHING) is not _NOTHING


def record_of(kind: type[T], raw: Raw, **others: Any) -> T:
    """Return a record of the fields that an API names alike, and of ``others``; raises KeyError.

    A field with a default has that if the API leaves it out, or reports null. Lists become tuples.
    """
    values = dict(others)
    for each in fields(cast(Any, kind)):
        needed = each.default is MISSING and each.default_factory is MISSING
        if each.name not in others and (needed or raw.get(each.name) is not None):
            value = raw[each.name]
            values[each.name] = tuple(value) if isinstance(value, list) else value
    return kind(**values)


def _inner(value: object) -> Iterable[tuple[object, object]]:
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, list | tuple | frozenset):
        return enumerate(value)
    if is_dataclass(value) and not isinstance(value, type):
        return ((field.name, getattr(value, field.name)) for field in fields(value))
    return ()


def walk(value: object) -> Iterator[Any]:
    """Yield data and all its parts, at any depth, each before its own; of mappings, lists and dataclasses."""
    yield value
    for _, part in _inner(value):
        yield from walk(part)


def walk_steps(value: object, steps: Steps = ()) -> Iterator[tuple[Steps, Any]]:
    """Yield the same with the steps to each part, which begin with ``steps``."""
    yield steps, value
    for name, part in _inner(value):
        yield from walk_steps(part, (*steps, name if isinstance(name, int) else str(name)))


def rewrite(value: object, change: Callable[[Any], object]) -> Any:
    """Return plain data with each part replaced by what ``change`` returns for it, after its own parts."""
    if isinstance(value, Mapping):
        value = {key: rewrite(each, change) for key, each in value.items()}
    elif isinstance(value, list | tuple):
        value = [rewrite(each, change) for each in value]
    return change(value)


def map_texts(value: object, change: Callable[[str], str]) -> Any:
    """Return plain data with each of its texts changed, keys as well."""

    def changed(part: object) -> object:
        if isinstance(part, Mapping):
            return {change(key) if isinstance(key, str) else key: each for key, each in part.items()}
        return change(part) if isinstance(part, str) else part

    return rewrite(value, changed)
