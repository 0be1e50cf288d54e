"""The spec of a command, read with the values of its variables."""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from openstack_prep.base.given_file import name_of
from openstack_prep.cli.output import warn
from openstack_prep.spec import Spec
from openstack_prep.spec.spec import read_spec as read_file
from openstack_prep.spec.variables import Given


def read_of(
    options: argparse.Namespace,
    path: Path,
    sections: Collection[str] | None = None,
    saved: Mapping[str, object] | None = None,
    *,
    needs_secrets: bool = True,
) -> Spec:
    """Return a spec, or some of its sections, with the values that the options have for its variables.

    ``saved`` are values in a saved plan. A command that only checks a spec needs no values of secrets. Raises
    SpecError.
    """
    given = Given(options.var, options.vars_file, saved=saved or {}, needs_secrets=needs_secrets)
    return read_file(path, given, sections)


def read_spec(
    options: argparse.Namespace,
    path: Path,
    saved: Mapping[str, object] | None = None,
    *,
    needs_secrets: bool = True,
) -> Spec:
    """Return a spec with the values of its variables, its warnings printed; raises SpecError.

    ``needs_secrets``: a secret without a value is a mistake.
    """
    with no_garbage(), _no_plugins():
        spec = read_of(options, path, saved=saved, needs_secrets=needs_secrets)
    for warning in spec.warnings:
        warn(f"{name_of(path)}: {warning}")
    return spec


@contextlib.contextmanager
def no_garbage() -> Iterator[None]:
    """Spare what is made meanwhile from the collector: the libraries stay, and searching them costs a tenth."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextlib.contextmanager
def _no_plugins() -> Iterator[None]:
    """Have pydantic use no plugins: to find some it reads the metadata of all installed packages, and they see secrets.

    Source: pydantic's documentation, "Plugins".
    """
    if (name := "PYDANTIC_DISABLE_PLUGINS") in os.environ:
        yield
        return
    os.environ[name] = "true"
    try:
        yield
    finally:
        del os.environ[name]
