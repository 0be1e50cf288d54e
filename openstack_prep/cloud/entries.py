"""The entries of clouds.yaml, for the error of a choice that failed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from openstack_prep.base.foreign_text import parse_yaml
from openstack_prep.base.given_file import read_text
from openstack_prep.base.secret import without_values


def explain(cloud: str | None, reason: str, named: str | Path | None, usual: Sequence[str]) -> str:
    """Return what is wrong with the choice of a cloud, and the available entries.

    ``named`` is the file that the user has chosen, ``usual`` are those that the SDK searches.
    """
    chosen = cloud or os.environ.get("OS_CLOUD")
    chosen = f"cloud {chosen!r}" if chosen else "the cloud (no --os-cloud, OS_CLOUD or OS_AUTH_URL given)"
    choose = "choose one with --os-cloud" if cloud else "choose one with --os-cloud or OS_CLOUD"
    fix = f"{choose}, or set OS_CLIENT_CONFIG_FILE to the file"
    return f"{chosen}: {reason.rstrip('.')}; {_entries(named, usual)}; {fix}"


def _entries(named: str | Path | None, usual: Sequence[str]) -> str:
    """Return what clouds.yaml contains, or what is wrong with it: the SDK ignores a broken file."""
    import yaml

    path = next((each for each in [named, *usual] if each and os.path.exists(each)), None)
    if path is None:
        return "no clouds.yaml was found" + (f" ({named} does not exist)" if named else "")
    try:
        entries = (parse_yaml(read_text(Path(path))) or {}).get("clouds", {})
        broken = [name for name, entry in entries.items() if not isinstance(entry, dict)]
    except (OSError, ValueError, yaml.YAMLError) as error:
        return f"{path} cannot be read: {without_values(str(error))}"
    except AttributeError:
        return f"{path} is not a mapping with the key `clouds`"
    if broken:
        return f"{path}: entry {broken[0]} is not a mapping"
    return f"{path} has the entries {', '.join(sorted(entries)) or 'none'}"
