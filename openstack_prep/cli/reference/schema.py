"""``example`` and ``schema``: what to write a spec with."""

from __future__ import annotations

import argparse

from openstack_prep import extensions
from openstack_prep.base.errors import ConfigError
from openstack_prep.cli import AddCommand


def add(command: AddCommand) -> None:
    """Add both to the parser."""
    what = command("schema", _schema, cloud=False).add_mutually_exclusive_group()
    what.add_argument(
        "--output", action="store_true", help="the schema of what commands print with --format json or yaml"
    )
    for name in (name for each in extensions.installed() for name in each.schemas):
        what.add_argument(f"--{name}", dest="of", action="store_const", const=name, help=f"the schema of {name} files")
    what.add_argument("--included", action="store_true", help="the schema of files that specs include")
    example = command("example", _example, cloud=False)
    example.add_argument("name", nargs="?", metavar="NAME")


def _schema(options: argparse.Namespace) -> int:
    import json

    if options.output:
        from openstack_prep.cli.reference.output_schema import output_schema

        found = output_schema()
    elif options.of:
        schemas = {name: function for each in extensions.installed() for name, function in each.schemas.items()}
        found = extensions.load(schemas[options.of])()
    else:
        from openstack_prep.spec import schema

        found = schema(included=options.included)
    print(json.dumps(found, indent=2))
    return 0


def _example(options: argparse.Namespace) -> int:
    from importlib import resources

    shipped = resources.files("openstack_prep.install_configs")
    names = sorted(each.name.removesuffix(".yaml") for each in shipped.iterdir() if each.name.endswith(".yaml"))
    others = {name: place for each in extensions.installed() for name, place in each.examples.items()}
    names += others
    if options.name is None:
        print("\n".join(names))
    elif options.name in others:
        package, _, file = others[options.name].partition(":")
        print((resources.files(package) / file).read_text(), end="")
    elif options.name in names:
        print((shipped / f"{options.name}.yaml").read_text(), end="")
    else:
        raise ConfigError(f"no example {options.name!r}; choose from {', '.join(names)}")
    return 0
