"""The spec of a command that is given none."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from openstack_prep.base.errors import ConfigError, SpecError
from openstack_prep.base.formats.yaml_places import Document
from openstack_prep.cli.output import say
from openstack_prep.resources.file_forms import SPEC, recognise

NAME = Path("prep.yaml")
PATTERNS = ("*.yaml", "*.yml")
DELETING = ("destroy", "prune", "allow_replace", "allow_loss")
"""The options by which a command may delete what is in use."""


def choose_spec(options: argparse.Namespace) -> Path:
    """Return prep.yaml, or the only spec of the folder, and say so.

    Raises ConfigError if there is not just one, and beside options that delete, unless a plan only shows it: an empty
    variable of a shell must not delete by another spec than the one that is meant.
    """
    command = options.called
    acts = getattr(options, "out", True)
    for option in (name for name in DELETING if acts and getattr(options, name, None)):
        what = f"--{option.replace('_', '-')} may delete, so it has no default spec"
        raise ConfigError(f"{command}: {what}; name the spec")
    found = [NAME] if NAME.is_file() else sorted(_specs())
    if len(found) == 1:
        say(f"the spec is {found[0]}")
        return found[0]
    if found:
        names = ", ".join(map(str, found))
        fix = "name one; a fleet has several: `openstack-prep example fleet` prints one"
        raise ConfigError(f"{command}: the folder has several specs, {names}; {fix}")
    fix = "name a spec, or print one by `openstack-prep example minimal > prep.yaml`"
    raise ConfigError(f"{command}: the folder has neither {NAME} nor another spec; {fix}")


def _specs() -> Iterator[Path]:
    """Yield the specs of the folder; files that are included by others have no name."""
    for path in (path for pattern in PATTERNS for path in Path().glob(pattern) if path.is_file()):
        try:
            data = Document(path).data
        except SpecError:  # not YAML, so not the spec that is meant
            continue
        known = recognise(data)
        if known and known[1].what == SPEC and isinstance(data, dict) and "name" in data:
            yield path
