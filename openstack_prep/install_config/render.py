"""From what is declared to the text of a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from openstack_prep.errors import SpecError
from openstack_prep.install_config.document import document
from openstack_prep.install_config.model import Cluster, Contents
from openstack_prep.install_config.rules import mistakes
from openstack_prep.secret import Secret


def render(cluster: Cluster, contents: Contents) -> dict[str, Any]:
    """Return the install-config; raises SpecError with everything that the release refuses."""
    found = mistakes(cluster, contents)
    if found:
        raise SpecError(found)
    return document(cluster, contents)


class _Dumper(yaml.SafeDumper):
    """Writes what has several lines as a block, a secret as what it is, and no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(Secret, lambda dumper, value: _text(dumper, value.reveal()))


def dump(document: Mapping[str, Any]) -> str:
    """Return the text of a file, which holds the pull secret openly."""
    text = yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=float("inf"))
    return str(text)
