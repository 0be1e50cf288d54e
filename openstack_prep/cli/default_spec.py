"""The default spec of a command."""

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
"""Options with which a command may delete resources in use."""


def choose_spec(options: argparse.Namespace) -> Path:
    """Return prep.yaml, or the only spec of the folder, and print a note that names it.

    Raises ConfigError if the folder has no spec or several, or if an option may delete, unless a plan only shows the
    deletions: a shell variable that is empty by mistake must not make a command delete resources of another spec.
    """
    command = options.called
    acts = getattr(options, "out", True)
    for option in (name for name in DELETING if acts and getattr(options, name, None)):
        what = f"--{option.replace('_', '-')} may delete, so it has no default spec"
        raise ConfigError(f"{command}: {what}; name the spec")
    specs = [NAME] if NAME.is_file() else sorted(_list_specs())
    if len(specs) == 1:
        say(f"using the spec {specs[0]}")
        return specs[0]
    if specs:
        names = ", ".join(map(str, specs))
        fix = "name one of them, or write a fleet for several: `openstack-prep example fleet` prints an example"
        raise ConfigError(f"{command}: the folder has several specs, {names}; {fix}")
    fix = "name a spec, or print one by `openstack-prep example minimal > prep.yaml`"
    raise ConfigError(f"{command}: the folder has neither {NAME} nor another spec; {fix}")


def _list_specs() -> Iterator[Path]:
    """Yield the specs of the folder; included files have no ``name``."""
    for path in (path for pattern in PATTERNS for path in Path().glob(pattern) if path.is_file()):
        try:
            data = Document(path).data
        except SpecError:  # not YAML, so not a spec
            continue
        known = recognise(data)
        if known and known[1].what == SPEC and isinstance(data, dict) and "name" in data:
            yield path
