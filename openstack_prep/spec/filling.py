"""Puts values of variables into the data of a spec, and repeats what has ``for_each``.

Only values are replaced, not keys, and what was put in is not searched again: no value of a variable can bring in
another variable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake
from openstack_prep.base.formats.yaml_places import Document
from openstack_prep.base.raw import Raw
from openstack_prep.spec.variables import Value, Values, is_name, unknown

Path: TypeAlias = tuple[str | int, ...]
REFERENCE = re.compile(r"\$\$\{|\$\{([^{}]*)\}|\$\{")
FOR_EACH = "for_each"
MOST = 10_000
"""Items that one for_each may make."""


class _Refused(Exception):
    """A reference that has no value; its mistake is noted."""


@dataclass
class Filling:
    """The data of one file of a spec, filled in.

    ``moved`` has, by the path of a list whose items were repeated, the index in the file of each item. ``failed`` are
    the paths of values that could not be filled in.
    """

    document: Document
    values: Values
    mistakes: list[Mistake] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    moved: dict[Path, list[int]] = field(default_factory=dict)
    failed: set[Path] = field(default_factory=set)

    def fill(self, data: Raw) -> dict[str, Any]:
        """Return the data with all values of variables in it."""
        return {key: self._of(value, (key,), (key,), {}) for key, value in data.items()}

    def _of(self, data: Any, source: Path, to: Path, loops: Mapping[str, Value]) -> Any:
        if isinstance(data, str):
            return self._text(data, source, to, loops) if "${" in data else data
        if isinstance(data, list):
            return self._list(data, source, to, loops)
        if not isinstance(data, dict):
            return data
        for key in data:
            if isinstance(key, str) and "${" in key:
                self._refuse((*source, key), f"{key} is a key, where variables are not replaced", "write it out")
        return {key: self._of(value, (*source, key), (*to, key), loops) for key, value in data.items()}

    def _list(self, data: Sequence[Any], source: Path, to: Path, loops: Mapping[str, Value]) -> list[Any]:
        found: list[Any] = []
        origins: list[int] = []
        for index, item in enumerate(data):
            here = (*source, index)
            if isinstance(item, dict) and FOR_EACH in item:
                rest = {key: value for key, value in item.items() if key != FOR_EACH}
                for within in self._loops(item[FOR_EACH], here, to, loops):
                    found.append(self._of(rest, here, (*to, len(found)), {**loops, **within}))
                    origins.append(index)
            else:
                found.append(self._of(item, here, (*to, len(found)), loops))
                origins.append(index)
        if origins != [*range(len(data))]:
            self.moved[to] = origins
        return found

    def _loops(self, given: object, here: Path, to: Path, loops: Mapping[str, Value]) -> list[dict[str, Value]]:
        """Return the variable of a for_each with each of its values."""
        where = (*here, FOR_EACH)
        if not isinstance(given, dict) or len(given) != 1:
            self._refuse(where, "is not one variable with its list", "write for_each: {team: [red, blue]}")
            return []
        ((name, items),) = given.items()
        if not isinstance(name, str) or not is_name(name):
            self._refuse(where, f"{name} is not the name of a variable", "use a-z, 0-9 and _")
        elif name in loops or name in self.values.declared:
            self._refuse(where, f"{name} is already a variable", "choose another name")
        failed = len(self.failed)
        items = self._of(items, (*where, str(name)), (*to, FOR_EACH), loops)
        if len(self.failed) > failed:
            return []
        if not isinstance(items, list) or len(items) > MOST:
            self._refuse((*where, str(name)), f"is not a list of at most {MOST} items", "write [A, B]")
            return []
        return [{str(name): Value(each)} for each in items]

    def _text(self, text: str, source: Path, to: Path, loops: Mapping[str, Value]) -> Any:
        try:
            if (whole := REFERENCE.fullmatch(text)) and whole[1] is not None:
                return self._value(whole[1], source, loops).data
            return REFERENCE.sub(lambda match: self._part(match, source, loops), text)
        except _Refused:
            self.failed.add(to)
            return None

    def _part(self, match: re.Match[str], source: Path, loops: Mapping[str, Value]) -> str:
        """Return what replaces one reference within a text."""
        if match[0] == "$${":
            return "${"
        if match[1] is None:
            raise self._refused(source, "${ has no }", "write ${name}, or $${ for these two characters themselves")
        value = self._value(match[1], source, loops)
        if value.is_secret:
            what = f"variable {match[1]} is a secret, which cannot be part of a text"
            raise self._refused(source, what, "make the whole value the secret")
        if isinstance(value.data, dict | list):
            what = f"variable {match[1]} is a {'map' if isinstance(value.data, dict) else 'list'}, not part of a text"
            raise self._refused(source, what, "use it as the whole value")
        return str(value.data).lower() if isinstance(value.data, bool) else str(value.data)

    def _value(self, reference: str, source: Path, loops: Mapping[str, Value]) -> Value:
        name, *steps = reference.split(".")
        declared = self.values.declared
        if not is_name(name):
            what = f"${{{reference}}} does not name a variable"
            raise self._refused(source, what, "write ${name}, or $${ for these two characters themselves")
        if name not in loops and name not in declared:
            self.mistakes.append(unknown(self.document.place(source), name, [*loops, *declared]))
            raise _Refused
        self.used.add(name)
        value = loops.get(name) or self.values.get(name)
        if value is None:  # reported once, where it is declared
            raise _Refused
        data = value.data
        for step in steps:
            if value.is_secret or not isinstance(data, dict) or step not in data:
                known = f"it has {', '.join(map(str, data))}" if isinstance(data, dict) and not value.is_secret else ""
                raise self._refused(source, f"${{{reference}}}: variable {name} has no {step}", known)
            data = data[step]
        return Value(data, value.is_secret)

    def _refused(self, source: Path, what: str, fix: str) -> _Refused:
        self._refuse(source, what, fix)
        return _Refused()

    def _refuse(self, source: Path, what: str, fix: str) -> None:
        dotted = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in source).lstrip(".")
        where = f"{self.document.place(source)}: {dotted}"
        self.mistakes.append(Mistake(where, what, fix, code=Code.SPEC_VARIABLE))
