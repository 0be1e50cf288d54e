"""Puts values of variables into the data of a spec, and repeats what has ``for_each``.

Only values are replaced, not keys, and what was put in is not searched again: no value of a variable can bring in
another variable.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake
from openstack_prep.base.formats.yaml_places import Document
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.raw import Raw, dotted, rewrite, walk
from openstack_prep.base.secret import Secret
from openstack_prep.base.secret_forms import has_url_secrets, is_in_url_secret, list_named_secrets
from openstack_prep.base.suggestion import suggest
from openstack_prep.spec.variables import Value, VariableValues, has_type, is_name, unknown

# --- secrets on their way through data: a token stands for each until a field for secrets takes it ---


@dataclass
class Tokens:
    """Secrets that never become text, by their tokens; each place has a token of its own."""

    given: dict[str, tuple[str, Secret]] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    plain: bool = False
    """Whether a field for secrets was given a text, or a variable is part of a URL's login or query."""

    def add(self, secret: Secret, place: str) -> dict[str, str]:
        """Return what stands for a secret in the data."""
        token = secrets.token_hex(16)
        self.given[token] = place, secret
        return {"token": token}

    def get(self, value: object) -> Secret | None:
        """Return the secret that a value stands for; None if it is not a token."""
        token = value["token"] if isinstance(value, dict) and list(value) == ["token"] else None
        given = self.given.get(token) if isinstance(token, str) else None  # a spec may have such a mapping itself
        return given[1] if given else None

    def take(self, value: object) -> Secret | None:
        """Return the same for a field for secrets, which may hold it."""
        self.plain |= isinstance(value, str)
        if (secret := self.get(value)) and isinstance(value, dict):
            self.taken.add(value["token"])
        return secret

    def drop(self, value: object) -> Secret | None:
        """Return the same, and forget the token: nothing will hold it."""
        secret = self.get(value)
        if secret and isinstance(value, dict):
            del self.given[value["token"]]
        return secret

    @property
    def left(self) -> list[str]:
        """The places of the tokens that no field for secrets has taken."""
        return [place for token, (place, _) in self.given.items() if token not in self.taken]


# --- values of variables and repeated items, put into the data of one file --------------

Path: TypeAlias = tuple[str | int, ...]
REFERENCE = re.compile(r"\$\$\{|\$\{([^{}]*)\}|\$\{")
FOR_EACH = "for_each"
MOST = 10_000
"""Items that all for_each of a file may make together."""


def escape(data: Any) -> Any:
    """Return plain data whose texts stand for themselves in a spec: ``${`` is not the beginning of a reference."""
    return rewrite(data, lambda part: part.replace("${", "$${") if isinstance(part, str) else part)


def has_reference_in_key(data: Any) -> bool:
    """Whether a key has the beginning of a reference, which a spec cannot express."""
    return any("${" in str(name) for part in walk(data) if isinstance(part, dict) for name in part)


def _beginning(reference: str) -> str:
    """Return a reference as far as it is a name: in ``${PASSWORD:-word}``, as of a shell, the rest may be a secret."""
    name = re.match(r"\$\{[\w.]*", reference)
    return reference if name is None or f"{name[0]}}}" == reference else f"{name[0]}..."


def _is_secret(text: str, source: Path) -> bool:
    """Whether a text is the value of a field whose name is that of a secret."""
    return any(list_named_secrets(text, str(source[-1])))


PLACE = "\ue000"
"""What marks where a value begins and ends; no URL has it."""


@dataclass(frozen=True)
class Reference:
    """What a file has in the place of a value, or of a part of it."""

    text: str
    variable: str = ""
    """The declared variable without a type that is the whole value, so that what was given for it is text."""


class _Refused(Exception):
    """A reference that has no value; its mistake is noted."""


@dataclass
class Substitution:
    """The data of one file of a spec, filled in.

    ``moved`` has, by the path of a list whose items were repeated, the index in the file of each item. ``failed`` are
    the paths of values that could not be filled in.
    """

    document: Document
    values: VariableValues
    tokens: Tokens
    mistakes: list[Mistake] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    moved: dict[Path, list[int]] = field(default_factory=dict)
    failed: set[Path] = field(default_factory=set)
    made: int = 0
    """Items that were made by for_each."""
    rows: Callable[[Raw, Path], list[Any]] | None = None
    """Returns the list that a mapping in the for_each of an item describes, by the path of the item; or raises
    InvalidValue. The list is not searched for references."""

    def fill(self, data: Raw) -> dict[str, Any]:
        """Return the data with all values of variables in it."""
        for key, value in data.items():
            self._examine(value, (key,), frozenset())
        found = {key: self._of(value, (key,), (key,), {}) for key, value in data.items()}
        self.mistakes = list(dict.fromkeys(self.mistakes))  # items that are repeated have the same ones
        return found

    def reference(self, source: Sequence[str | int]) -> Reference | None:
        """Return the references in the text at a place of the file, or around it."""
        data: Any = self.document.data
        for step in source:
            if isinstance(data, str):  # a whole reference, whose value has the other steps
                break
            try:
                data = data[step]
            except (LookupError, TypeError):
                break
        text = data if isinstance(data, str) else ""
        references = dict.fromkeys(_beginning(match[0]) for match in REFERENCE.finditer(text) if match[1] is not None)
        if not references:
            return None
        whole = REFERENCE.fullmatch(text)
        declared = self.values.declared.get(whole[1] or "") if whole else None
        is_text = declared is not None and declared.variable.type is None
        return Reference(", ".join(references), whole[1] if whole and is_text else "")

    # --- what the file says, whatever the values are ------------------------------------------

    def _examine(self, data: Any, source: Path, loops: frozenset[str]) -> None:
        """Note which variables a part refers to, and what is wrong with its references and for_each."""
        if isinstance(data, str):
            is_hidden = not REFERENCE.fullmatch(data) and _is_secret(data, source)
            for match in REFERENCE.finditer(data):
                self._examine_reference(match, source, loops, is_hidden=is_hidden)
        elif isinstance(data, list):
            for index, item in enumerate(data):
                within = loops
                if isinstance(item, dict) and FOR_EACH in item:
                    within |= self._examine_for_each(item[FOR_EACH], (*source, index, FOR_EACH), loops)
                    item = _without_for_each(item)
                self._examine(item, (*source, index), within)
        elif isinstance(data, dict):
            for key, value in data.items():
                if isinstance(key, str) and "${" in key:  # as has_reference_in_key says
                    self._refuse((*source, key), f"{key} is a key, where variables are not replaced", "write it out")
                self._examine(value, (*source, key), loops)

    def _examine_reference(self, match: re.Match[str], source: Path, loops: frozenset[str], *, is_hidden: bool) -> None:
        """Note a reference and what is wrong with it; ``is_hidden`` says that it may be a part of a password."""
        name = match[1].partition(".")[0] if match[1] is not None else ""
        declared = self.values.declared
        if match[0] == "$${":
            return
        if not is_name(name):
            shown = "${...}" if is_hidden else _beginning(match[0])
            what = "${ has no }" if match[1] is None else f"{shown} does not name a variable"
            self._refuse(source, what, "write ${name}, or $${ for these two characters themselves")
        elif name not in loops and name not in declared and is_hidden:
            self._refuse(source, "${...} names no declared variable", "write $${ for these two characters themselves")
        elif name not in loops and name not in declared:
            self.mistakes.append(unknown(self._place(source), name, [*loops, *declared]))
        self.used.add(name)

    def _examine_for_each(self, given: object, where: Path, loops: frozenset[str]) -> frozenset[str]:
        """Return the name of the variable of a for_each."""
        if not isinstance(given, dict) or len(given) != 1:
            self._refuse(where, "is not one variable with its list", "write for_each: {team: [red, blue]}")
            return frozenset()
        ((name, items),) = given.items()
        if not isinstance(name, str) or not is_name(name):
            self._refuse(where, f"{name} is not the name of a variable", "use a-z, 0-9 and _")
        elif name in loops or name in self.values.declared:
            self._refuse(where, f"{name} is already a variable", "choose another name")
        self._examine(items, (*where, str(name)), loops)
        return frozenset({str(name)})

    # --- the values --------------------------------------------------------------------------

    def _of(self, data: Any, source: Path, to: Path, loops: Mapping[str, Value]) -> Any:
        if isinstance(data, str):
            return self._text(data, source, to, loops) if "${" in data else data
        if isinstance(data, list):
            return self._list(data, source, to, loops)
        if not isinstance(data, dict):
            return data
        return {key: self._of(value, (*source, key), (*to, key), loops) for key, value in data.items()}

    def _list(self, data: Sequence[Any], source: Path, to: Path, loops: Mapping[str, Value]) -> list[Any]:
        found: list[Any] = []
        origins: list[int] = []
        for index, item in enumerate(data):
            here = (*source, index)
            scopes: list[Mapping[str, Value]] = [loops]
            if isinstance(item, dict) and FOR_EACH in item:
                scopes = [{**loops, **within} for within in self._loops(item[FOR_EACH], here, to, loops)]
                item = _without_for_each(item)
            for scope in scopes:
                found.append(self._of(item, here, (*to, len(found)), scope))
                origins.append(index)
        if origins != [*range(len(data))]:
            self.moved[to] = origins
        return found

    def _loops(self, given: object, here: Path, to: Path, loops: Mapping[str, Value]) -> list[dict[str, Value]]:
        """Return the variable of a for_each with each of its values."""
        if not isinstance(given, dict) or len(given) != 1:
            return []
        ((name, items),) = given.items()
        where, failed = (*here, FOR_EACH, str(name)), len(self.failed)
        items = self._of(items, where, (*to, FOR_EACH), loops)
        if len(self.failed) > failed:
            return []
        if isinstance(items, dict) and self.rows:
            try:
                items = self.rows(items, here)
            except InvalidValue as error:
                self._refuse(where, error.what, error.fix)
                return []
        if not isinstance(items, list):
            found = self.reference(where)
            what = f"is {'a map' if isinstance(items, dict) else 'one value'}, not a list"
            fix = has_type("list", found.variable) if found and found.variable else "write [A, B]"
            self._refuse(where, f"{found.text} {what}" if found else what, fix)
            return []
        self.made += len(items)
        if self.made > MOST:
            self._refuse(where, f"makes more than {MOST} items together with the others", "split the spec")
            return []
        secrets = [self.tokens.drop(each) for each in items]
        return [
            {str(name): Value(secret or each, is_secret=secret is not None)}
            for each, secret in zip(items, secrets, strict=True)
        ]

    def _text(self, text: str, source: Path, to: Path, loops: Mapping[str, Value]) -> Any:
        try:
            if not (whole := REFERENCE.fullmatch(text)) or whole[1] is None:
                parts = [self._part(match, source, loops) for match in REFERENCE.finditer(text)]
                # a value that is a whole URL shows by itself what is secret in it
                marked = [part if has_url_secrets(part) else f"{PLACE}{part}{PLACE}" for part in parts]
                self.tokens.plain |= is_in_url_secret(PLACE, _filled(text, marked))
                return _filled(text, parts)
            value = self._value(whole[1], source, loops)
            return self.tokens.add(value.data, self._place(source)) if value.is_secret else value.data
        except _Refused:
            self.failed.add(to)
            return None

    def _part(self, match: re.Match[str], source: Path, loops: Mapping[str, Value]) -> str:
        """Return what replaces one reference within a text."""
        if match[0] == "$${":
            return "${"
        value = self._value(match[1] or "", source, loops)
        if value.is_secret:
            what = f"variable {match[1]} is a secret, which cannot be part of a text"
            raise self._refused(source, what, "make the whole value the secret")
        if isinstance(value.data, dict | list):
            what = f"variable {match[1]} is a {'map' if isinstance(value.data, dict) else 'list'}, not part of a text"
            raise self._refused(source, what, "use it as the whole value")
        return str(value.data).lower() if isinstance(value.data, bool) else str(value.data)

    def _value(self, reference: str, source: Path, loops: Mapping[str, Value]) -> Value:
        name, *steps = reference.split(".")
        value = loops.get(name) or (self.values.get(name) if name in self.values.declared else None)
        if value is None:  # reported where it is declared, or by _examine
            raise _Refused
        data = value.data
        for step in steps:
            if value.is_secret or not isinstance(data, dict) or step not in data:
                # not all names: those of a CSV file without its first line are values
                names = map(str, data) if isinstance(data, dict) and not value.is_secret else ()
                what = f"${{{reference}}}: there is no {step or 'empty name'}"
                raise self._refused(source, what, suggest(step, names, "use the name of a field of the map"))
            data = data[step]
        return Value(data, value.is_secret)

    def _refused(self, source: Path, what: str, fix: str) -> _Refused:
        self._refuse(source, what, fix)
        return _Refused()

    def _refuse(self, source: Path, what: str, fix: str) -> None:
        self.mistakes.append(Mistake(self._place(source), what, fix, code=Code.SPEC_VARIABLE))

    def _place(self, source: Path) -> str:
        return f"{self.document.place(source)}: {dotted(source)}"


def _filled(text: str, parts: Sequence[str]) -> str:
    """Return a text with its references replaced."""
    left = iter(parts)
    return REFERENCE.sub(lambda _: next(left), text)


def _without_for_each(item: Raw) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key != FOR_EACH}
