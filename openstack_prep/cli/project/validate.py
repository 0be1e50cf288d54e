"""``validate``: the mistakes in specs that can be found without a cloud."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from openstack_prep.base.errors import SpecError
from openstack_prep.base.given_file import name_of
from openstack_prep.base.key import labels
from openstack_prep.cli.default_spec import choose_spec
from openstack_prep.cli.output import error_data, judge_reports, print_result, report, warn
from openstack_prep.cli.spec import read_spec
from openstack_prep.cloud.no_cloud import NoCloud
from openstack_prep.core import planner
from openstack_prep.reports.findings import of_warning
from openstack_prep.spec.resolution import list_warnings, refuse_mistakes, resolve_spec

if TYPE_CHECKING:
    from openstack_prep.spec import Spec


@dataclass(frozen=True)
class Validated:
    """A spec that was read, or why it was not."""

    path: Path
    spec: Spec | None = None
    """With its resources as a plan counts them."""
    warnings: tuple[str, ...] = ()
    """About resources, each with its place; the others are in the spec."""
    error: SpecError | None = None

    @property
    def placed(self) -> list[str]:
        """All warnings, with their places."""
        return (
            [*(f"{name_of(self.path)}: {warning}" for warning in self.spec.warnings), *self.warnings]
            if self.spec
            else []
        )

    def data(self) -> dict[str, object]:
        """Return it as JSON has it."""
        return {
            "spec": self.spec.name if self.spec else None,
            "valid": self.error is None,
            "resources": [*labels(resource.key for resource in self.spec.resources).values()] if self.spec else [],
            "errors": error_data(self.error) if self.error else [],
            "warnings": [*self.spec.warnings, *self.warnings] if self.spec else [],
            "exit_code": self.error.exit_code if self.error else 0,
        }

    def __str__(self) -> str:
        return f"{name_of(self.path)}: valid, {len(self.spec.resources)} resources" if self.spec else ""


def run(options: argparse.Namespace) -> int:
    options.specs = options.specs or [choose_spec(options)]
    judge_reports(options)
    found = [_validated(options, path) for path in options.specs]
    mistakes = [mistake for each in found if each.error for mistake in each.error.mistakes]
    error = SpecError(mistakes) if mistakes else None
    code = error.exit_code if error else 0
    data = found[0].data() if len(found) == 1 else _data(found, error)
    print_result(options, "\n".join(filter(None, map(str, found))), data)
    warnings = (of_warning(text) for each in found for text in each.placed)
    invalid = (each.path for each in found if each.error)
    code = report(options, [*(error.diagnostics if error else ()), *warnings], code, invalid=invalid)
    if error:
        raise error
    return code


def _validated(options: argparse.Namespace, path: Path) -> Validated:
    try:
        spec, warnings = check(read_spec(options, path, needs_secrets=False))
    except SpecError as error:
        return Validated(path, error=error)
    for warning in warnings:
        warn(warning)
    return Validated(path, spec, tuple(warnings))


def check(spec: Spec) -> tuple[Spec, list[str]]:
    """Return a spec with the resources that a plan lists, and the warnings about them.

    Raises SpecError with everything that is wrong with them.
    """

    refuse_mistakes(spec)
    resolved = resolve_spec(spec, NoCloud.as_cloud(), for_apply=False)
    if resolved.unread:
        raise SpecError(spec.placed(resolved.unread))
    planner.in_order(resolved.resources, planner.dependencies(resolved.resources))
    return resolved, list_warnings(spec)


def _data(found: list[Validated], error: SpecError | None) -> dict[str, object]:
    """Return several specs as ``rke check`` has several files."""
    return {
        "files": [str(each.path) for each in found],
        "valid": error is None,
        "errors": error_data(error) if error else [],
        "warnings": [warning for each in found for warning in each.placed],
        "exit_code": error.exit_code if error else 0,
    }
