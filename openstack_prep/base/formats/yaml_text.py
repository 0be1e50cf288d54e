"""YAML for current and old programs: plain, in the given order, without anchors.

PyYAML writes some texts without quotes that programs in Go read as booleans or numbers (y, 1e3, 09, 0o17).
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from openstack_prep.base.formats.yaml_places import resolve_go
from openstack_prep.base.raw import Raw
from openstack_prep.base.secret import Secret

_RARE_BREAKS = re.compile("[\x85\u2028\u2029]")
"""Line breaks that PyYAML writes as they are, and that readers turn into spaces unless they are escaped."""


class _Dumper(yaml.SafeDumper):
    """Writes texts with several lines as blocks, a secret as its value, and no anchors."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    style = "|" if "\n" in value else "'" if resolve_go(value) != value else None
    style = '"' if _RARE_BREAKS.search(value) else style
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)
_Dumper.add_multi_representer(dict, yaml.SafeDumper.represent_dict)  # also the objects and lists of an answer
_Dumper.add_multi_representer(list, yaml.SafeDumper.represent_list)
_Dumper.add_representer(Secret, lambda dumper, value: _text(dumper, value.reveal()))


def dump(*documents: Raw | list[Any]) -> str:
    """Return the text of a file, with the documents' secrets in plain text; ``---`` separates several documents."""
    plain = (document if isinstance(document, list) else dict(document) for document in documents)
    return "---\n".join(map(_dumped, plain))


def _dumped(document: object, **options: Any) -> str:
    """Return YAML in which only printable characters stand for themselves, so that a terminal shows what there is."""
    options |= {"Dumper": _Dumper, "sort_keys": False, "width": float("inf")}
    text: str = yaml.dump(document, allow_unicode=True, **options)
    if not text.replace("\n", "").isprintable():
        text = yaml.dump(document, allow_unicode=False, **options)
    return text


def one_line(document: Raw) -> str:
    """Return a document on a single line, with braces and brackets."""
    return _dumped(dict(document), default_flow_style=True).rstrip("\n")
