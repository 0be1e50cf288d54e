"""``validate``: the mistakes in a spec that can be found without a cloud."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from openstack_prep.base.errors import SpecError
from openstack_prep.cli import AddCommand
from openstack_prep.cli.of_spec import add_spec
from openstack_prep.cli.running import error_data, no_garbage, print_result, read_spec
from openstack_prep.cli.style import warn

if TYPE_CHECKING:
    from openstack_prep.spec import Spec


def add(command: AddCommand) -> None:
    """Add it to the parser."""
    parser = command("validate", _run, cloud=False, data=True)
    add_spec(parser)


def _run(options: argparse.Namespace) -> int:
    try:
        spec = read_spec(options, options.spec)
        warnings = check(spec)
    except SpecError as error:
        print_result(options, "", _data(None, error))
        raise
    for warning in warnings:
        warn(warning)
    data = _data(spec)
    data["warnings"] = [*spec.warnings, *warnings]
    print_result(options, f"{options.spec}: valid, {len(spec.resources)} resources", data)
    return 0


def check(spec: Spec) -> list[str]:
    """Return the warnings about the resources of a spec; raises SpecError with everything that is wrong with them."""
    with no_garbage():
        from openstack_prep.core import planner
        from openstack_prep.spec.resolving import list_warnings, refuse_mistakes, resolve_spec
        from openstack_prep.spec.targets import NoCloud

    refuse_mistakes(spec)
    resolved = resolve_spec(spec, NoCloud.as_cloud(), for_apply=False)
    if resolved.unread:
        raise SpecError(spec.placed(resolved.unread))
    planner.in_order(resolved.resources, planner.dependencies(resolved.resources))
    return list_warnings(spec)


def _data(spec: Spec | None, error: SpecError | None = None) -> dict[str, object]:
    return {
        "spec": spec.name if spec else None,
        "valid": error is None,
        "resources": [str(each.key) for each in spec.resources] if spec else [],
        "errors": error_data(error) if error else [],
        "warnings": list(spec.warnings) if spec else [],
        "exit_code": error.exit_code if error else 0,
    }
