"""A configuration's keys as a tree of names and types, and what is wrong with data by it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from openstack_prep.base.errors import Mistake
from openstack_prep.base.raw import Raw, Values
from openstack_prep.base.secret import Secret

Steps: TypeAlias = tuple[str | int, ...]


class Kind(Enum):
    """What may stand at the end of a path."""

    TEXT = "a text"  # in YAML a number or a truth value will do: Go takes its letters
    TEXTS = "a text, or a list of texts"
    NUMBER = "a whole number"
    REAL = "a number"
    TRUTH = "true or false"
    ANY = "anything"
    SECRET = "a text that nobody may see"
    PRIVATE = "a mapping that nobody may see"


@dataclass(frozen=True)
class Each:
    """A mapping whose keys are the user's own."""

    of: Kind | list[Kind] | Raw


Tree: TypeAlias = Kind | Each | Sequence["Tree"] | Mapping[str, "Tree"]
"""A kind; a list of one tree; a mapping of known keys, or of any."""

TEXT, TEXTS, NUMBER, REAL, TRUTH, ANY, SECRET, PRIVATE = Kind

_SCALARS: dict[Kind, type | tuple[type, ...]] = {
    TEXT: (str, int, float, bool),
    TEXTS: (str, int, float, bool, list, tuple),
    SECRET: (str, int, float, bool, Secret),
    NUMBER: int,
    REAL: (int, float),
    TRUTH: bool,
    PRIVATE: Mapping,
    ANY: object,
}
WANTED = {SECRET: "a text", PRIVATE: "a mapping"}
"""What people are told to write where nobody may see it."""


@dataclass(frozen=True)
class Fault:
    """One thing wrong in data, by the way to it."""

    steps: Steps
    what: str
    remedy: str

    def mistake(self, where: str) -> Mistake:
        return Mistake(where, self.what, self.remedy)


def words(names: str, kind: Tree = TEXT) -> dict[str, Tree]:
    """Return keys of one kind, of their names in a row."""
    return dict.fromkeys(names.split(), kind)


def dotted(steps: Steps) -> str:
    """Return ``nodes[0].role``."""
    return "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in steps).lstrip(".")


def faults(data: object, tree: Tree, steps: Steps = (), root: Tree | None = None) -> Iterator[Fault]:
    """Yield unknown keys and wrong types; what is null is as good as absent.

    ``steps`` lead to the data; ``root`` is the whole tree, where a key may be at home that is unknown here.
    """
    root = tree if root is None else root
    if data is None:
        return
    if isinstance(tree, Kind):
        if not isinstance(data, _SCALARS[tree]) or (tree in (NUMBER, REAL) and isinstance(data, bool)):
            yield _of_other_type(data, steps, WANTED.get(tree, tree.value), hide=tree in WANTED)
        elif tree is TEXTS and isinstance(data, list | tuple):
            yield from faults(data, [TEXT], steps, root)
    elif isinstance(tree, Mapping | Each):
        if not isinstance(data, Mapping):
            yield _of_other_type(data, steps, "a mapping")
            return
        for name, value in data.items():
            if isinstance(tree, Each):
                yield from faults(value, tree.of, (*steps, str(name)), root)
            elif name in tree:
                yield from faults(value, tree[name], (*steps, name), root)
            else:
                yield Fault((*steps, str(name)), "unknown key", nearest(str(name), tree) or _home(str(name), root))
    elif not isinstance(data, list | tuple):
        yield _of_other_type(data, steps, "a list")
    else:
        for index, value in enumerate(data):
            yield from faults(value, tree[0], (*steps, index), root)


def _of_other_type(data: object, steps: Steps, wanted: str, *, hide: bool = False) -> Fault:
    """Return the fault, without the value when that is long or may be a secret."""
    shown = "that" if hide or isinstance(data, Secret) else repr(data)
    if isinstance(data, Mapping | list | tuple):
        shown = "a mapping" if isinstance(data, Mapping) else "a list"
    return Fault(steps, f"{shown} is not {wanted}", f"write {wanted}")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a question after the nearest known name; none of them near, nothing."""
    by_letters = {_letters(each): each for each in known}
    close = difflib.get_close_matches(_letters(name), by_letters, n=1, cutoff=0.7)
    return f"did you mean {by_letters[close[0]]}?" if close else ""


def _home(name: str, root: Tree) -> str:
    """Return where a key is at home that is unknown where it stands."""
    homes = [dotted(steps) for steps in _folders(root) if steps and steps[-1] == name]
    return f"it belongs to {homes[0].rpartition('.')[0]}" if len(homes) == 1 and "." in homes[0] else "take it out"


def _folders(tree: Tree, steps: Steps = ()) -> Iterator[Steps]:
    """Yield the paths of all keys, those that hold others too."""
    yield steps
    if isinstance(tree, Mapping):
        for name, inner in tree.items():
            yield from _folders(inner, (*steps, name))
    elif not isinstance(tree, Kind | Each):
        yield from _folders(tree[0], (*steps, 0))


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def mapped(data: object, tree: Tree, change: Callable[[object, Kind, Steps], object], steps: Steps = ()) -> object:
    """Return data with what stands at the tree's ends changed; what the tree does not know stays."""
    if isinstance(tree, Kind):
        return change(data, tree, steps)
    if isinstance(data, Mapping) and isinstance(tree, Mapping | Each):
        inner = tree if isinstance(tree, Mapping) else dict.fromkeys(data, tree.of)
        return {name: mapped(each, inner.get(name, ANY), change, (*steps, str(name))) for name, each in data.items()}
    if isinstance(data, list | tuple) and not isinstance(tree, Mapping | Each):
        return [mapped(each, tree[0], change, (*steps, index)) for index, each in enumerate(data)]
    return data


def hidden(data: object, tree: Tree) -> object:
    """Return data with the texts that nobody may see as Secret."""
    return mapped(data, tree, lambda value, kind, _: _all_hidden(value) if kind in (SECRET, PRIVATE) else value)


def _all_hidden(data: object) -> object:
    if isinstance(data, Mapping):
        return {name: _all_hidden(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [_all_hidden(value) for value in data]
    return Secret(data) if isinstance(data, str) else data


def ordered(data: Any, tree: Tree) -> Any:
    """Return data with its keys in the tree's order; those of the user's own in theirs."""
    if isinstance(data, Mapping) and isinstance(tree, Mapping):
        known = [name for name in tree if name in data]
        rest = [name for name in data if name not in tree]
        return {name: ordered(data[name], tree.get(name, ANY)) for name in (*known, *rest)}
    if isinstance(data, Mapping) and isinstance(tree, Each):
        return {name: ordered(value, tree.of) for name, value in data.items()}
    if isinstance(data, list | tuple) and not isinstance(tree, Kind | Mapping | Each):
        return [ordered(value, tree[0]) for value in data]
    return data


def merged(first: Raw, second: Raw) -> Values:
    """Return both as one; where both have a mapping, those are merged, else the first stays."""
    result = dict(second) | dict(first)
    for name in first.keys() & second.keys():
        if isinstance(first[name], Mapping) and isinstance(second[name], Mapping):
            result[name] = merged(first[name], second[name])
    return result


def value_at(data: Any, path: str) -> Any:
    """Return what stands at a dotted path of mappings, None when nothing does."""
    for name in path.split("."):
        data = data.get(name) if isinstance(data, Mapping) else None
    return data
