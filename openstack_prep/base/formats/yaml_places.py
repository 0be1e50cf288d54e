"""YAML with the line and column of every part.

Source: YAML 1.1 as PyYAML reads it, except that dates stay texts, and that booleans are those of YAML 1.2. Duplicate
keys, which YAML forbids and PyYAML accepts, are errors.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import math
import os
import re
import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import MisreadNumber, Mistake, SpecError
from openstack_prep.base.formats.foreign_text import (
    MOST_PARTS,
    Excess,
    count_parts,
    excess,
    refuse_deep,
    refuse_large_yaml,
    without_values,
)
from openstack_prep.base.given_file import name_of, read_text, unreadable
from openstack_prep.base.secret_forms import HIDDEN
from openstack_prep.base.suggestion import ask, similar

LONGEST = 4096
"""Bits of an integer; Python does not print one of 4300 digits (sys.get_int_max_str_digits)."""
UNLIKE = re.compile("[\t?!\x85\u2028\u2029\ufeff]|[>|][-+0-9]*#")
"""What libyaml and PyYAML's own parser do not read alike everywhere, such as ? in {a: b?c}."""
NOT_IN_JSON = ("binary", "timestamp", "set", "omap", "pairs")
"""Types of YAML by tag that have no use here, and of which bytes and dates could even be keys."""


class _Rules:
    """Keeps dates as texts, and reports the place of a scalar that does not match its type."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's loaders have it as an attribute of the class
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":timestamp", ":bool"))]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    yaml_constructors = {  # noqa: RUF012
        tag: construct
        for tag, construct in yaml.SafeLoader.yaml_constructors.items()
        if str(tag).rpartition(":")[2] not in NOT_IN_JSON
    }

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        try:
            if isinstance(node, yaml.ScalarNode):
                node.value.encode()  # half a surrogate pair is not a character, and no output accepts it
            value = super().construct_object(node, deep)  # type: ignore[misc]
        except ValueError as error:
            raise yaml.MarkedYAMLError(problem=str(error), problem_mark=node.start_mark) from None
        except (LookupError, AttributeError, TypeError):  # of PyYAML's constructors, as for !!bool x
            raise yaml.MarkedYAMLError(
                problem="the value does not match its tag", problem_mark=node.start_mark
            ) from None
        if isinstance(value, int) and value.bit_length() > LONGEST:
            raise yaml.MarkedYAMLError(problem="the number is too long", problem_mark=node.start_mark)
        return value


class _Loader(_Rules, yaml.SafeLoader):
    """PyYAML's own parser, whose words errors have; libyaml may not have measured what it reads."""

    parts = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self.parts += 1
        if self.parts > MOST_PARTS:
            raise excess(self.peek_event().start_mark)  # type: ignore[no-untyped-call]
        return super().compose_node(parent, index)


class _FastLoader(_Rules, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """libyaml's parser, several times as fast."""


for _each in (_Loader, _FastLoader):  # as YAML 1.2 has it: NO is a country, and on a word
    _each.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("true|True|TRUE|false|False|FALSE"), list("tTfF"))


_GO = "tag:yaml.org,2002:go"
_OF_GO: dict[str | None, list[tuple[str, re.Pattern[str]]]] = {
    "<": [("tag:yaml.org,2002:merge", re.compile("<<$"))],
    None: [(_GO, re.compile(""))],
}


class _GoLoader(_Loader):
    """Reads plain scalars as programs in Go do."""

    yaml_implicit_resolvers = _OF_GO


class _FastGoLoader(_FastLoader):
    yaml_implicit_resolvers = _OF_GO


def _with_other_tag(loader: Any, node: yaml.Node) -> object:
    """Return a value of a tag that is none of YAML's, which Go ignores; a scalar is a text (yaml.v2 resolve.go)."""
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    return loader.construct_sequence(node, deep=True) if isinstance(node, yaml.SequenceNode) else node.value


_GO_TYPES: dict[str, type] = {"bool": bool, "int": int, "float": float, "null": type(None)}
_GO_DAY, _GO_HOUR = r"\d{4}-(0?[1-9]|1[0-2])-(0?[1-9]|[12]\d|3[01])", r"\d{1,2}:\d{1,2}:\d{1,2}(\.\d+)?"
_GO_TIME = re.compile(rf"{_GO_DAY}([Tt]{_GO_HOUR}(Z|[-+]\d\d:\d\d)| {_GO_HOUR})?")


def _with_tag_of_yaml(loader: Any, node: yaml.Node) -> object:
    """Return the value of a scalar with a type of YAML as its tag; raises TypeError if Go cannot decode it as that.

    Source: go.yaml.in/yaml v2.4.2 resolve_go.go (resolve) and decode_go.go (scalar): a time stays a text.
    """
    if not isinstance(node, yaml.ScalarNode):
        return _with_other_tag(loader, node)
    kind, value = node.tag.rpartition(":")[2], resolve_go(node.value)
    if kind == "timestamp" and _GO_TIME.fullmatch(node.value):
        return node.value
    if kind == "binary":
        with contextlib.suppress(binascii.Error):
            return base64.b64decode(re.sub("[\r\n]", "", node.value), validate=True).decode(errors="replace")
    if kind == "float" and type(value) is int:
        return float(value)
    if type(value) is not _GO_TYPES.get(kind):
        raise TypeError(kind)
    return value


for _each in (_GoLoader, _FastGoLoader):
    _each.add_constructor(_GO, lambda loader, node: resolve_go(node.value))
    _each.add_constructor(None, _with_other_tag)
    for _kind in (*_GO_TYPES, "timestamp", "binary"):
        _each.add_constructor(f"tag:yaml.org,2002:{_kind}", _with_tag_of_yaml)


def _composed(text: str, *, of_go: bool = False) -> tuple[Any, Any]:
    """Return a loader and the only document of a text; raises YAMLError, ValueError, RecursionError.

    What libyaml refuses, PyYAML explains, or accepts. The parser of programs in Go (go.yaml.in/yaml) is libyaml's.
    """
    refuse_large_yaml(text)
    if of_go or not UNLIKE.search(text):
        with contextlib.suppress(yaml.YAMLError, ValueError):
            fast = (_FastGoLoader if of_go else _FastLoader)(text)
            return fast, fast.get_single_node()
    loader = (_GoLoader if of_go else _Loader)(text)
    return loader, loader.get_single_node()


def _unreadable(where: str, what: str, fix: str) -> SpecError:
    return SpecError([Mistake(where, what, fix, code=Code.SPEC_UNREADABLE)])


def _repeated(node: object, name: str) -> Iterator[tuple[int, Mistake]]:
    """Yield duplicate keys by where they begin in the text."""
    if isinstance(node, yaml.MappingNode):
        first: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                if key.value in first:
                    what = f"duplicate key {key.value}, also in line {first[key.value]}"
                    code = Code.SPEC_DUPLICATE_KEY
                    yield key.start_mark.index, Mistake(f"{name}:{line}", what, "remove one of them", code=code)
                first.setdefault(key.value, line)
            yield from _repeated(value, name)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _repeated(value, name)


def _pairs_in_braces(root: object) -> Iterator[tuple[Any, Any]]:
    """Yield the keys and values of all mappings in ``{...}``."""
    waiting, known = [root], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in known:
            continue
        known.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
        elif isinstance(node, yaml.MappingNode):
            if node.flow_style:
                yield from node.value
            waiting += [value for _, value in node.value]


_INTEGER = re.compile("-?(0|[1-9][0-9]*)")
_QUOTES = "put it in quotes if it is text"
_LOSES_DIGITS = "loses digits at its beginning or end, or an exponent"
_FORMS = {
    re.compile(".*:.*"): ("has colons, which YAML 1.1 reads in base 60", f"{_QUOTES}; a range has a hyphen: 22-30"),
    re.compile("[-+]?0[xb].*"): ("is in base 16 or 2", f"write it in base 10, or {_QUOTES}"),
    re.compile("[-+]?0[0-9_]+"): (
        "has a leading zero, which YAML 1.1 reads in base 8",
        f"remove the zero, or {_QUOTES}",
    ),
    re.compile(".*_.*"): ("has underscores, which YAML 1.1 ignores", f"remove them, or {_QUOTES}"),
    re.compile("[+].*"): ("has a plus sign, which gets lost", f"remove it, or {_QUOTES}"),
    re.compile(".*"): (_LOSES_DIGITS, f"{_QUOTES}, or shorten it"),
}
"""Numbers of YAML 1.1 that do not mean what they look like, and the fix; the first form that fits counts."""


_TAG = re.compile(r"(&\S+\s+)?!")
"""A tag before a value, perhaps behind an anchor, such as !!float 5."""


def _is_as_written(text: str, tag: str, *, is_tagged: bool) -> bool:
    """Whether a number is written as it is printed, so that text that looks like one stays the same.

    Who writes ``!!float`` means a number, whose form does not matter unless it changes the value.
    """
    if is_tagged and tag.endswith(":float") and not {":", "_"} & {*text}:
        return True
    if tag.endswith(":int"):
        return _INTEGER.fullmatch(text) is not None
    if text.lower().endswith((".inf", ".nan")):  # which each field refuses
        return True
    return not {":", "_"} & {*text} and str(float(text)) == text  # such as 1_.5, which Python refuses


class _Numbers:
    """The numbers of a text that YAML reads otherwise than they are written; keys as well.

    Keys of the document that begin with ``ignored`` are left out, except where an alias leads to their parts. JSON has
    numbers of one form: what YAML makes of it is the same number.
    """

    def __init__(self, text: str, ignored: str | None) -> None:
        self._text, self._ignored = text, ignored
        self._known: set[int] = set()

    def find(self, root: Any) -> Iterator[tuple[int, str, str]]:
        """Yield line, path and text of each."""
        if _is_json(self._text):
            return
        if self._ignored is None or not isinstance(root, yaml.MappingNode):
            yield from self._below(root, 0, "")
            return
        for key, value in root.value:
            if not (isinstance(key, yaml.ScalarNode) and key.value.startswith(self._ignored)):
                yield from self._of_pair(key, value, "")

    def _below(self, node: Any, line: int, where: str) -> Iterator[tuple[int, str, str]]:
        if id(node) in self._known:
            return
        self._known.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            is_tagged = _TAG.match(self._text, node.start_mark.index) is not None
            if node.tag.endswith((":int", ":float")) and not _is_as_written(node.value, node.tag, is_tagged=is_tagged):
                yield line, where, node.value
        elif isinstance(node, yaml.SequenceNode):
            for index, value in enumerate(node.value):
                yield from self._below(value, value.start_mark.line, f"{where}[{index}]")
        elif isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                yield from self._of_pair(key, value, where)

    def _of_pair(self, key: Any, value: Any, where: str) -> Iterator[tuple[int, str, str]]:
        name = key.value if isinstance(key, yaml.ScalarNode) and key.value != "<<" else ""
        inner = f"{where}.{name}".strip(".") if name else where
        yield from self._below(key, key.start_mark.line, inner)
        yield from self._below(value, key.start_mark.line, inner)


def _is_json(text: str) -> bool:
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _yaml_error(name: str, error: yaml.YAMLError, text: str) -> SpecError:
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        what = f"is not YAML: it contains the character U+{error.character:04X}"
        return _unreadable(f"{name}:{line}", what, "remove it, and save the file as UTF-8 text")
    if not isinstance(error, yaml.MarkedYAMLError):
        return _unreadable(name, f"is not YAML: {error}", "save it as UTF-8 text")
    line = error.problem_mark.line + 1 if error.problem_mark else 1
    if isinstance(error, Excess):
        return _unreadable(f"{name}:{line}", f"is too large: {error.problem}", "split it, or nest it less")
    if error.context == "expected a single document in the stream":
        return _unreadable(f"{name}:{line}", "begins a second document, and only one is read", "keep one document")
    if error.problem and "'\\t'" in error.problem:  # libyaml reads some of these
        return _unreadable(f"{name}:{line}", "has a tab where not every program reads one", "write blanks")
    problem = without_values(", ".join(filter(None, (error.context, error.problem))))
    fix = "quote a value that begins with *, & or !" if HIDDEN in problem else "correct the YAML"
    if any(each in "".join(text.splitlines()[line - 1 : line]) for each in ("{{", "{%")):
        fix = "it looks like a template of Ansible, Jinja or Helm: check the file that is made of it"
    return _unreadable(f"{name}:{line}", f"is not YAML: {problem}", fix)


def read_documents(name: str, text: str) -> list[tuple[int, object]]:
    """Return the documents of a YAML text, each with its first line; raises SpecError, also for duplicate keys."""
    try:
        refuse_large_yaml(text)
        if not UNLIKE.search(text):
            with contextlib.suppress(yaml.YAMLError, ValueError):
                return _documents(name, _FastLoader(text))
        return _documents(name, _Loader(text))
    except yaml.YAMLError as error:
        raise _yaml_error(name, error, text) from None
    except (ValueError, RecursionError):
        raise _unreadable(name, "is nested too deeply", "reduce the nesting") from None


def _documents(name: str, loader: Any) -> list[tuple[int, object]]:
    """Return the documents of a loader; raises YAMLError, ValueError, RecursionError, and SpecError for its keys."""
    found: list[tuple[int, object]] = []
    mistakes: list[Mistake] = []
    while loader.check_node():
        node: Any = loader.get_node()
        count_parts(node, {})
        mistakes += [each for _, each in _repeated(node, name)]
        found.append((node.start_mark.line + 1, loader.construct_document(node)))
        refuse_deep(found[-1][1])
    if mistakes:
        raise SpecError(mistakes)
    return found


def _text(path: Path, origin: Path | None = None) -> str:
    """Return the text of a file, which may be read from elsewhere; raises SpecError."""
    try:
        return read_text(origin or path)
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(name_of(path), unreadable(error), _other_file(path)) from None


def _other_file(path: Path) -> str:
    """Return which file to read in the place of one that cannot be read."""
    with contextlib.suppress(OSError):
        if not os.path.lexists(path) and path.parent.is_dir():
            beside = {each.stem: str(each) for each in path.parent.iterdir() if each.suffix in (".yaml", ".yml")}
            return ask([beside[stem] for stem in similar(path.stem, beside)], "choose a readable YAML file")
    return "choose a readable YAML file"


def shared_document(path: Path) -> Document:
    """Return the document of a file, parsed once for as long as the text stays the same; nobody may change its data.

    Many specs read the same files again and again, and parsing takes longer than all that a plan does with them.
    """
    return _parsed(path, _text(path))


@lru_cache(maxsize=32)
def _parsed(path: Path, text: str) -> Document:
    return Document(path, text)


class Document:
    """One YAML document: its ``data`` and the line of each part of it."""

    def __init__(self, path: Path, text: str | None = None, *, origin: Path | None = None, of_go: bool = False) -> None:
        """Read a file, or the text that it had; raises SpecError if it cannot be read or is not one YAML document.

        ``origin`` is where to read it from if ``path`` only names it in messages. ``of_go``: a program in Go reads it.
        """
        self.path, self.name = path, name_of(path)
        self._text = text = _text(path, origin) if text is None else text
        try:
            loader, self._root = _composed(text, of_go=of_go)
            count_parts(self._root, {})
            self.repeated_at = dict(_repeated(self._root, self.name))  # before construction expands merge keys
            self.data: object = loader.construct_document(self._root) if self._root else None
            refuse_deep(self.data)
        except yaml.YAMLError as error:
            raise _yaml_error(self.name, error, text) from None
        except (ValueError, RecursionError):
            raise _unreadable(self.name, "is nested too deeply", "reduce the nesting") from None

    @property
    def content(self) -> str:
        """The text that it was read from."""
        return self._text

    @property
    def repeated(self) -> list[Mistake]:
        """Duplicate keys; ``repeated_at`` has them by where they begin in the text, as ``part`` returns it."""
        return list(self.repeated_at.values())

    @property
    def overridden(self) -> list[Mistake]:
        """Keys that what a merge key adds has as well, which YAML allows and some programs do not.

        Construction has put what each merge key adds before the other keys of its mapping.
        """
        return [each for start, each in _repeated(self._root, self.name) if start not in self.repeated_at]

    def refuse_bare_keys(self, within: Sequence[str | int] = ()) -> None:
        """Raise SpecError for keys in ``{...}`` that have neither a colon nor a value, in that part of the document.

        ``{password:word}`` lacks the blank, and ``{password: a,b}`` ends at the comma: such a key may be a secret, so
        it is not shown. This is for files whose programs know no such key: our own, and those of RKE and OpenShift.
        """
        bare = (key.start_mark for key, value in _pairs_in_braces(self._found(within)[1]) if self._is_bare(key, value))
        lines = sorted({mark.line + 1 for mark in bare})
        fix = "write KEY: VALUE, with a blank after the colon, and quote a value that contains a comma"
        if lines:
            what = "has an entry in {...} that is not KEY: VALUE"
            raise SpecError([Mistake(f"{self.name}:{line}", what, fix, code=Code.SPEC_UNREADABLE) for line in lines])

    def _is_bare(self, key: Any, value: Any) -> bool:
        start, end = key.end_mark.index, value.start_mark.index
        is_empty = isinstance(value, yaml.ScalarNode) and end == value.end_mark.index
        return is_empty and start <= end and ":" not in self._text[start:end]

    def misread(self, *, ignored: str | None = None) -> list[MisreadNumber]:
        """Return numbers that YAML 1.1 reads otherwise than they are written, for files of our own and of RKE.

        They are not shown, because a password may look like one. Other programs read their own files as they do. What
        is below keys of the document that begin with ``ignored`` does not count.
        """
        mistakes = []
        for line, where, number in _Numbers(self._text, ignored).find(self._root):
            what, fix = next(words for form, words in _FORMS.items() if form.fullmatch(number))
            place = f"{self.name}:{line + 1}" + (f": {where}" if where else "")
            loses_digits = what == _LOSES_DIGITS
            mistake = MisreadNumber(
                place, f"this number {what}", fix, code=Code.SPEC_INVALID_VALUE, loses_digits=loses_digits
            )
            mistakes.append(mistake)
        return mistakes

    @property
    def doubled(self) -> set[str]:
        """The keys that the document itself has more than once; which of their values is meant, nobody knows."""
        starts = ((key.value, key.start_mark.index) for key, _ in getattr(self._root, "value", ()))
        return {name for name, start in starts if start in self.repeated_at}

    def place(self, where: Sequence[str | int]) -> str:
        """Return "file:line" of a part, or of the innermost part around it that exists."""
        return f"{self.name}:{self._found(where)[0]}"

    def part(self, where: Sequence[str | int]) -> int:
        """Return where in the text that part begins: the same for all aliases of a part."""
        node = self._found(where)[1]
        return node.start_mark.index if node else 0

    def is_quoted(self, where: Sequence[str | int]) -> bool:
        """Whether that part is a scalar in quotes, or a block of text."""
        node = self._found(where)[1]
        return isinstance(node, yaml.ScalarNode) and node.style not in (None, "")

    def plain(self, where: Sequence[str | int]) -> str | None:
        """Return the text of a scalar without quotes, from which each program makes its own value; None of others."""
        node = self._found(where)[1]
        return node.value if isinstance(node, yaml.ScalarNode) and node.style in (None, "") else None

    def _found(self, where: Sequence[str | int]) -> tuple[int, Any]:
        """Return the line of a part and its node, or those of the innermost part around it that exists."""
        node, line = self._root, 1
        for step in where:
            if isinstance(node, yaml.MappingNode):
                pair = next(((key, value) for key, value in reversed(node.value) if key.value == str(step)), None)
                if pair is None:
                    break
                line, node = pair[0].start_mark.line + 1, pair[1]
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                node = node.value[step]
                line = node.start_mark.line + 1
            else:
                break
        return line, node


# --- plain scalars of YAML as programs in Go read them: by yaml.v2, below sigs.k8s.io/yaml and ghodss/yaml ---
#
# They differ from YAML 1.2 (``yes`` is true), and from PyYAML (``1:30`` is a text, ``1e3`` a number, and ``08`` 8).
# Source: go.yaml.in/yaml v2.4.2 resolve_go.go (resolve_go); sigs.k8s.io/yaml 1.6 yaml.go (convertToJSONableObject).


_GO_WORDS: dict[str, bool | float | None] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_GO_INTEGER = re.compile("[-+]?(?:0[xX](?P<x>[0-9a-fA-F]+)|0[bB](?P<b>[01]+)|0[oO]?(?P<o>[0-7]+)|(?P<d>0|[1-9][0-9]*))")
_GO_BASES = {"x": 16, "b": 2, "o": 8, "d": 10}
_GO_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_GO_LONGEST = 4096
"""Characters of a number; all longer ones overflow."""


def resolve_go(text: str) -> bool | int | float | str | None:
    """Return the value of a plain scalar."""
    if text in _GO_WORDS:
        return _GO_WORDS[text]
    if not text[0].isascii() or not re.match("[-+.0-9]", text) or len(text) > _GO_LONGEST:
        return text
    between = "(?<=[0-9])_(?=[0-9])" if text[0] == "." else "_"  # where ParseFloat takes them, and ParseInt all
    plain = re.sub(between, "", text)
    number = _go_integer(plain)
    if number is not None:
        return number
    if _GO_FLOAT.fullmatch(plain) and math.isfinite(value := float(plain)):  # ParseFloat refuses what overflows
        return value
    return text


def _go_integer(plain: str) -> int | None:
    """Return an integer in the range of int64 or, without a sign, of uint64, as ParseInt and ParseUint read it."""
    found = _GO_INTEGER.fullmatch(plain)
    if found is None:
        return None
    kind = str(found.lastgroup)
    value = int(found[kind], _GO_BASES[kind])
    if plain[0] in "+-":
        value = -value if plain[0] == "-" else value
        return value if -(2**63) <= value < 2**63 else None
    return value if value < 2**64 else None


def go_text(value: object) -> object:
    """Return a boolean or a number as the text that a field for texts gets; anything else as it is."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    return _shortest(value) if isinstance(value, float) else value


def _shortest(value: float) -> str:
    """Return the shortest text that leads to the same number of 32 bits: FormatFloat(value, 'g', -1, 32)."""
    if not math.isfinite(value) or abs(value) > 3.4028235677973366e38:
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    single = struct.pack("f", value)
    if not any(single[:3]) and single[3] in (0, 0x80):
        return "-0" if single[3] else "0"
    text = next(each for each in (f"{value:.{digits - 1}e}" for digits in range(1, 10)) if _packed(each) == single)
    digits, _, exponent = text.partition("e")
    power = int(exponent)
    if -5 < power < 6:
        return f"{float(text):.{max(0, len(digits.lstrip('-').replace('.', '')) - 1 - power)}f}"
    return f"{digits}e{'-' if power < 0 else '+'}{abs(power):02}"


def _packed(text: str) -> bytes:
    value = float(text)
    return struct.pack("f", value) if abs(value) <= 3.4028235677973366e38 else b""
