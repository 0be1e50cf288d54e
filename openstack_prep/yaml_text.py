"""YAML for programs of today and of yesterday: plain, in the order given, without anchors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from openstack_prep.secret import Secret


class _Dumper(yaml.SafeDumper):
    """Writes what has several lines as a block, a secret as what it is, and no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(Secret, lambda dumper, value: _text(dumper, value.reveal()))


def dump(*documents: Mapping[str, Any]) -> str:
    """Return the text of a file, which holds the documents' secrets openly; several have a line --- between."""
    texts = (
        yaml.dump(dict(each), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=float("inf"))
        for each in documents
    )
    return "---\n".join(texts)
