"""Parses JSON and YAML that others wrote: neither its size, its depth nor its aliases can end the process.

libyaml's parser keeps its state on the heap, but composing nodes recurses in C: some ten thousand levels end the
process with a segmentation fault (PyYAML 6.0.3, yaml/_yaml.pyx, _compose_node). So events measure the depth before,
and the number of parts: nodes take 500 bytes each, and 14 MB of a list took 2.7 GiB before they were counted.
"""

from __future__ import annotations

import json
import re
from importlib import resources
from typing import Any

import yaml

from openstack_prep.base.raw import Raw
from openstack_prep.base.secret_forms import HIDDEN

MOST_DEPTH = 100
"""Levels; a Helm chart's schema has 20."""
MOST_PARTS = 100_000
"""Parts of a document with its aliases written out; a spec has hundreds."""
MOST_STREAM = 5 * MOST_PARTS
"""Parts of all documents of a text together."""
MOST_JSON = 2_000_000
"""Parts of a JSON text: 4,000 Services have 200,000."""
TOO_DEEP = f"it is nested more than {MOST_DEPTH} levels deep"
TOO_MANY = f"it has more than {MOST_PARTS:,} parts, aliases written out"
TOO_LONG = f"its documents have more than {MOST_STREAM:,} parts"


class Excess(yaml.MarkedYAMLError):
    """The text may be YAML, but it is nested too deeply, or has too many parts."""


def parse_json(text: str | bytes) -> Any:
    """Return what a JSON text contains; raises ValueError, also for one that is nested too deeply."""
    marks = (",", "[", "{") if isinstance(text, str) else (b",", b"[", b"{")
    if sum(map(text.count, marks)) > MOST_JSON:  # type: ignore[arg-type]
        raise ValueError(f"it has more than {MOST_JSON:,} parts")
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    refuse_deep(found)
    return found


def refuse_deep(value: object) -> None:
    """Raise ValueError if plain data is nested too deeply for functions that call themselves."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MOST_DEPTH):
        inner = (each.values() if isinstance(each, dict) else each for each in level)
        level = [part for each in inner for part in each if isinstance(part, dict | list)]
        if not level:
            return
    raise ValueError(TOO_DEEP)


def parse_yaml(text: str) -> Any:
    """Return what a YAML text of one document contains; None for an empty one. Raises yaml.YAMLError."""
    found = parse_yaml_documents(text)
    if len(found) > 1:
        raise yaml.YAMLError("it has more than one document")
    return found[0] if found else None


def parse_yaml_documents(text: str) -> list[Any]:
    """Return the documents of a YAML text as PyYAML's safe_load_all; raises yaml.YAMLError for everything wrong."""
    refuse_large_yaml(text)
    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
        try:
            found = []
            while loader.check_node():
                node = loader.get_node()
                count_parts(node, {})
                found.append(loader.construct_document(node))
                refuse_deep(found[-1])  # also by aliases of aliases
            return found
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise yaml.YAMLError(explain_yaml(error)) from None
    except (LookupError, AttributeError, TypeError):  # of PyYAML's constructors, as for !!bool x
        raise yaml.YAMLError("a value does not match its tag") from None
    except (ValueError, RecursionError) as error:  # a date such as 2026-13-01; half a surrogate pair
        raise yaml.YAMLError(without_values(str(error))) from None


_QUOTED = re.compile(r"""(alias|anchor|tag|handle|base \d+:|to float:) ('[^']*'|"[^"]*")""")


def without_values(text: str) -> str:
    """Return PyYAML's message about a file without the values that it quotes: an unquoted *password is an alias."""
    return _QUOTED.sub(rf"\1 {HIDDEN}", text)


def explain_yaml(error: yaml.YAMLError) -> str:
    """Return an error of PyYAML without its quotation of the line, which may hold a password."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return without_values(" ".join(str(error).split()))
    line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
    return without_values(line + ", ".join(filter(None, (error.context, error.problem))))


def refuse_large_yaml(text: str) -> None:
    """Raise yaml.MarkedYAMLError if a YAML text is nested too deeply, or has too many parts; aliases count as one.

    What else is wrong is for its parser to say. It stops there, however long the text is.
    """
    depth = parts = total = 0
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if isinstance(event, yaml.DocumentStartEvent):
                parts, total = 0, total + 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            elif isinstance(event, yaml.NodeEvent):
                parts, total = parts + 1, total + 1
                depth += isinstance(event, yaml.CollectionStartEvent)
            if depth > MOST_DEPTH or parts > MOST_PARTS or total > MOST_STREAM:
                break
        else:
            return
    except (yaml.YAMLError, ValueError):
        return
    raise excess(event.start_mark, TOO_DEEP if depth > MOST_DEPTH else TOO_MANY if parts > MOST_PARTS else TOO_LONG)


def excess(mark: Any, problem: str = TOO_MANY) -> Exception:
    """Return the error of a YAML text that has more than is read."""
    return Excess(problem=problem, problem_mark=mark)


def count_parts(node: Any, known: dict[int, int]) -> int:
    """Count the parts of a document, aliases written out; raises MarkedYAMLError if it has too many."""
    if id(node) not in known:
        known[id(node)] = MOST_PARTS + 1  # its count while it is being counted
        inner: list[object] = []
        if isinstance(node, yaml.MappingNode):
            inner = [part for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            inner = node.value
        known[id(node)] = 1 + sum(count_parts(part, known) for part in inner)
    if known[id(node)] > MOST_PARTS:
        raise excess(node.start_mark)
    return known[id(node)]


def shipped_yaml(package: str, name: str) -> Raw:
    """Return the content of a YAML file of this package, which is known to be well-formed."""
    text = resources.files(package).joinpath(name).read_text(encoding="utf-8")
    found: Raw = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return found
