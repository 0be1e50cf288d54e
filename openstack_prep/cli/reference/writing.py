"""``example`` and ``schema``: what to write a spec with."""

from __future__ import annotations

import argparse

from openstack_prep.base.errors import ConfigError
from openstack_prep.cli import AddCommand

FLEET = "fleet"
"""The example that is no spec."""


def add(command: AddCommand) -> None:
    """Add both to the parser."""
    what = command("schema", _schema, cloud=False).add_mutually_exclusive_group()
    what.add_argument(
        "--output", action="store_true", help="the schema of what commands print with --format json or yaml"
    )
    what.add_argument("--fleet", action="store_true", help="the schema of fleet files")
    what.add_argument("--included", action="store_true", help="the schema of files that specs include")
    example = command("example", _example, cloud=False)
    example.add_argument("name", nargs="?", metavar="NAME")


def _schema(options: argparse.Namespace) -> int:
    import json

    if options.output:
        from openstack_prep.cli.reference.output_schema import output_schema

        found = output_schema()
    elif options.fleet:
        from openstack_prep.fleet.file.schema import schema as schema_of_fleet

        found = schema_of_fleet()
    else:
        from openstack_prep.spec import schema

        found = schema(included=options.included)
    print(json.dumps(found, indent=2))
    return 0


def _example(options: argparse.Namespace) -> int:
    from importlib import resources

    shipped = resources.files("openstack_prep.install_configs")
    names = sorted(each.name.removesuffix(".yaml") for each in shipped.iterdir() if each.name.endswith(".yaml"))
    names.append(FLEET)
    if options.name is None:
        print("\n".join(names))
    elif options.name == FLEET:
        print((resources.files("openstack_prep.fleet.file") / "example.yaml").read_text(), end="")
    elif options.name in names:
        print((shipped / f"{options.name}.yaml").read_text(), end="")
    else:
        raise ConfigError(f"no example {options.name!r}; choose from {', '.join(names)}")
    return 0
