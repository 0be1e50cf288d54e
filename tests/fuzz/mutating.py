"""Hypothesis strategies for damaged files: a valid document with a few changes, then its text with some, or raw bytes.

A document changes as data: other types, missing, additional and repeated keys, nesting, huge numbers, hostile texts.
``Raw`` fragments become YAML that no data stands for: tags, anchors, dates, sexagesimal numbers. The text changes as
bytes: cut, doubled, another encoding, control characters, a bomb of aliases.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any, TypeAlias

import yaml
from hypothesis import strategies as st

Steps: TypeAlias = tuple[Any, ...]

FORGED = "openstack-prep: forged"
"""A line that no output may begin with: it stands in values, behind a line end."""
OWNED = "PWNED"
"""A file that nothing may create: hostile values try to."""
MARK = "\ufdd0RAW"
DEEP = 3000
"""Levels of nesting: more than Python's recursion limit."""

TEXTS = (
    *("", " ", "\0", "\n", "\t", "a\tb", "\x1b[31mred", "\x07", "\x7f", "\x85", "\u2028", "\u202eabc"),
    *("\u200b", "\ufeff"),
    *("\ud800", "\U0010ffff", "é" * 300, "a" * 5000, f"x\n{FORGED}", f"x\r\n{FORGED}", f"x\x85{FORGED}"),
    *(f"; touch {OWNED}", f"$(touch {OWNED})", f"`touch {OWNED}`", f"' touch {OWNED} '"),
    *(f'"; touch {OWNED}; "',),
    *("'", '"', "\\", "{}", "{0}", "%s", "%(x)s", "${x}", "#", "&", "*", "!", "|", "-", "--", "---", "-rf"),
    *("~", "~nobody/x"),
    *("/", ".", "..", "../../etc/passwd", "/dev/null", "/etc", "x/" * 2000, "a/b", "a\\b"),
    *("file:///etc/hostname",),
    *("http://", "http://[", "http://127.0.0.1:1/x", "http://127.0.0.1:99999/"),
    *("https://user:word@127.0.0.1:1/x",),
    *("127.0.0.1", "::1", "::1%eth0", "0.0.0.0", "255.255.255.255", "10.0.0.1/33", "0.0.0.0/0", "::/0"),
    *("10.0.0.9-10.0.0.1",),
    *("::ffff:10.0.0.1", "010.1.1.1", "1.1", "1e9", "0x10", "-1", "1_000", "\uff11\uff12", "²", "99999999999999999999"),
    *("1" * 5000,),
    *("true", "null", "no", "NaN", "2026-99-99", "2026-01-01T00:00:00Z", "1:30:30", "shipped:x"),
    *("shipped:../x", "4.20", "v1.35"),
)
VALUES: Sequence[object] = (
    *(None, True, False, 0, -1, 1, 80, 2**31, 2**63, 2**64, -(2**70), 10**300, 10**4400, 0.5, -0.0, 1e308),
    *(float("inf"), float("-inf"), float("nan"), [], {}, [[]], [None], {"": ""}, {"name": None}, ["a", "a"]),
    *([{}, {}],),
)
FRAGMENTS = (
    *("2026-01-01", "2026-99-99", "2026-01-01 25:00:00", "1:30", "-1:30:30.5", "1:" * 3000 + "1", "0o17"),
    *("0b11", "017"),
    *("0x" + "f" * 5000, "-0x" + "f" * 5000, "0b" + "1" * 20000, "1" * 5000, "1e99999", ".inf", "-.INF"),
    *(".nan", "=", "~", "<<"),
    *("!!binary aGk=", "!!binary '*'", "!!timestamp 2026-01-01", "!!timestamp x", "!!int x", "!!float x"),
    *("!!bool x",),
    *("!!null x", "!!str 1", "!!set {a, b}", "!!set [a]", "!!omap [a: 1, b: 2]", "!!omap {a: 1}"),
    *("!!pairs [a: 1, a: 2]",),
    *("!!map [a]", "!!seq {a: 1}", "!local x", "!<tag:example.com,2026:x> y", "! x", "!e!x y"),
    *("!!python/name:os.system ''",),
    *(f'!!python/object/apply:os.system ["touch {OWNED}"]', "!!python/tuple [a, b]", "!!js/function 'x'"),
    *("*unknown", "*name"),
    *("&same x", "&same [*same]", "&same {a: *same}", "&x [&y [*x], *y]", "{<<: x}", "{<<: [x]}"),
    *("{<<: {a: 1}, a: 2}",),
    *("{<<: !!set {a}}", "? [a, b]", "{? [a]: b}", "{? {a: b}: c}", "{1: a, '1': b}", "{null: a}"),
    *("{true: a, 1: b}",),
    *("{2026-01-01: a}", "{!!timestamp 2026-01-01: a}", "{!!binary aGk=: a}", "{1.5: a, .nan: b}"),
    *("{0x" + "f" * 5000 + ": a}",),
    *("[" * DEEP, "{a: " * DEEP, "[" * DEEP + "]" * DEEP, "{a: " * 50 + "1" + "}" * 50, "[[[[[[]]]]]]", "{"),
    *("]", '"', "'x", "@", "`"),
    *("%", "\t", "\\", "|\n x", ">-\n x", '"\\ud800"', '"\\0"', '"\\e[31m"', '"\\x85"', '"\\u202e"'),
    *('"\\n' + FORGED + '"',),
)
BOMB = "bomb: &b0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"b{n}: &b{n} [{', '.join([f'*b{n - 1}'] * 9)}]\n" for n in range(1, 12)
)
MERGES = "m0: &m0 {a: 1}\n" + "".join(f"m{n}: &m{n} {{<<: [*m{n - 1}, *m{n - 1}], b{n}: 1}}\n" for n in range(1, 40))


class Raw:
    """Stands in a document for a fragment of YAML."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"Raw({self.text[:60]!r})"


def any_value() -> st.SearchStrategy[Any]:
    """Return hostile values, and arbitrary ones of JSON."""
    scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
    keys = st.text(max_size=5)
    trees = st.recursive(scalars, lambda each: st.lists(each, max_size=3) | st.dictionaries(keys, each, max_size=3))
    return st.sampled_from(TEXTS) | st.sampled_from(VALUES).map(deepcopy) | st.sampled_from(FRAGMENTS).map(Raw) | trees


def steps_of(data: object, within: Steps = ()) -> Iterator[Steps]:
    """Yield the path of every part of a document."""
    yield within
    pairs = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for step, each in pairs:
        yield from steps_of(each, (*within, step))


def _parent(data: Any, steps: Steps) -> Any:
    for step in steps[:-1]:
        data = data[step]
    return data


def _replace(draw: Any, data: Any, steps: Steps) -> Any:
    value = draw(any_value())
    if not steps:
        return value
    _parent(data, steps)[steps[-1]] = value
    return data


def _remove(draw: Any, data: Any, steps: Steps) -> Any:
    if steps:
        del _parent(data, steps)[steps[-1]]
    return data


def _rename(draw: Any, data: Any, steps: Steps) -> Any:
    parent = _parent(data, steps) if steps else None
    if isinstance(parent, dict):
        parent[draw(st.sampled_from(TEXTS) | st.text(max_size=8))] = parent.pop(steps[-1])
    return data


def _add(draw: Any, data: Any, steps: Steps) -> Any:
    parent = _parent(data, (*steps, None))
    if isinstance(parent, dict):
        parent[draw(st.sampled_from(TEXTS) | st.text(max_size=8))] = draw(any_value())
    elif isinstance(parent, list):
        parent.append(draw(any_value()))
    return data


def _double(draw: Any, data: Any, steps: Steps) -> Any:
    parent = _parent(data, steps) if steps else None
    if isinstance(parent, list):
        parent.extend([deepcopy(parent[steps[-1]])] * draw(st.sampled_from((1, 2, 300))))
    return data


def _wrap(draw: Any, data: Any, steps: Steps) -> Any:
    value: Any = _parent(data, (*steps, None))
    for _ in range(draw(st.sampled_from((1, 2, 60)))):
        value = [value] if draw(st.booleans()) else {"name": value}
    if not steps:
        return value
    _parent(data, steps)[steps[-1]] = value
    return data


def _move(draw: Any, data: Any, steps: Steps) -> Any:
    """Put a part in the place of another one."""
    other = draw(st.sampled_from(list(steps_of(data))))
    value = deepcopy(_parent(data, (*other, None)))
    if not steps:
        return value
    _parent(data, steps)[steps[-1]] = value
    return data


CHANGES: Sequence[Callable[[Any, Any, Steps], Any]] = (
    *(_replace, _replace, _replace, _remove, _rename, _add, _double, _wrap, _move),
)


def _one_of(documents: Sequence[object]) -> st.SearchStrategy[object]:
    """Return a strategy like ``sampled_from``, but by number: errors would repeat all documents."""
    return st.integers(0, len(documents) - 1).map(documents.__getitem__)


@st.composite
def changed(draw: Any, documents: Sequence[object]) -> Any:
    """Draw one of the documents with one to three changes; it may hold ``Raw``."""
    data = deepcopy(draw(_one_of(documents)))
    for _ in range(draw(st.sampled_from((1, 1, 1, 2, 3)))):
        change = draw(st.sampled_from(CHANGES))
        data = change(draw, data, draw(st.sampled_from(list(steps_of(data)))))
    return data


# --- texts --------------------------------------------------------------------------------


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True


_Dumper.add_representer(Raw, lambda dumper, raw: dumper.represent_str(MARK + raw.text.encode().hex()))


def as_yaml(data: object) -> str:
    """Return a document as YAML, with its fragments."""
    text = _big(lambda: yaml.dump(data, Dumper=_Dumper, sort_keys=False, width=float("inf")))
    return re.sub(r'"\\uFDD0RAW([0-9a-f]*)"', lambda found: bytes.fromhex(found[1]).decode(), text)


def as_json(data: object) -> str:
    """Return a document as JSON; a fragment is written as it is."""
    texts: list[str] = []

    def plain(value: object) -> str:
        texts.append(value.text if isinstance(value, Raw) else str(value))
        return f"{MARK}{len(texts) - 1}"

    text = _big(lambda: json.dumps(data, default=plain, indent=1))
    for number in reversed(range(len(texts))):
        text = text.replace(f'"\\ufdd0RAW{number}"', texts[number])
    return text


def _big(dump: Callable[[], str]) -> str:
    """Write integers of any length, which Python otherwise refuses to."""
    most = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        return dump()
    finally:
        sys.set_int_max_str_digits(most)


def _insert(draw: Any, text: bytes) -> bytes:
    texts = [each.encode("utf-8", "surrogatepass") for each in TEXTS]
    what = draw(st.sampled_from(texts) | st.binary(min_size=1, max_size=4))
    place = draw(st.integers(0, len(text)))
    return text[:place] + what + text[place:]


def _cut(draw: Any, text: bytes) -> bytes:
    place = draw(st.integers(0, len(text)))
    return text[:place] + (text[place + draw(st.integers(1, 20)) :] if draw(st.booleans()) else b"")


def _repeat_line(draw: Any, text: bytes) -> bytes:
    lines = text.splitlines(keepends=True) or [b"a: 1\n"]
    number = draw(st.integers(0, len(lines) - 1))
    return b"".join([*lines[: number + 1], lines[number], *lines[number + 1 :]])


def _encode(draw: Any, text: bytes) -> bytes:
    other = draw(st.sampled_from(("utf-16", "utf-16-be", "utf-32", "utf-7")))
    return text.decode("utf-8", "replace").encode(other, "replace")


BEFORE = (
    *(b"\xef\xbb\xbf", b"\xff\xfe", b"%YAML 9.9\n---\n", b"%TAG ! x\n---\n", b"---\n...\n---\n"),
    *(BOMB.encode(), MERGES.encode()),
)
AFTER = (
    *(b"\n---\na: 1\n", b"\n...\nx", b"\n\t- x", b"\n<<<<<<< ours\n", b"\0"),
    *(b"[" * DEEP, b"\n{" * DEEP, b"\nname: again\n"),
)


def _surround(draw: Any, text: bytes) -> bytes:
    if draw(st.booleans()):
        return bytes(draw(st.sampled_from(BEFORE))) + text
    return text + bytes(draw(st.sampled_from(AFTER)))


def _line_ends(draw: Any, text: bytes) -> bytes:
    return text.replace(b"\n", draw(st.sampled_from((b"\r\n", b"\r", b"\xc2\x85", b"\n\n", b"\x0b", b"\x00\n"))))


def _tabs(draw: Any, text: bytes) -> bytes:
    return text.replace(b"  ", b"\t")


EDITS: Sequence[Callable[[Any, bytes], bytes]] = (
    *(_insert, _insert, _cut, _repeat_line, _encode, _surround, _line_ends, _tabs),
)


@st.composite
def damaged(draw: Any, documents: Sequence[object], form: Callable[[object], str] = as_yaml) -> bytes:
    """Draw the content of a file: mostly a changed document, sometimes its text changed as well, rarely any bytes."""
    kind = draw(st.sampled_from(("data",) * 6 + ("both", "text", "text", "bytes")))
    if kind == "bytes":
        texts = st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass"))
        return bytes(draw(st.binary(max_size=200) | texts))
    data = draw(_one_of(documents)) if kind == "text" else draw(changed(documents))
    text = form(data).encode("utf-8", "surrogatepass")
    for _ in range(draw(st.sampled_from((1, 1, 2))) if kind != "data" else 0):
        text = draw(st.sampled_from(EDITS))(draw, text)
    return text
