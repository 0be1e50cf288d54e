"""``example`` and ``schema``: what to write a spec with."""

from __future__ import annotations

import argparse
import json
from importlib import resources

from openstack_prep import extensions
from openstack_prep.base.errors import ConfigError
from openstack_prep.cli.reference.output_schema import output_schema
from openstack_prep.spec import schema


def run_schema(options: argparse.Namespace) -> int:
    if options.output:
        found = output_schema()
    elif options.of:
        schemas = {name: function for each in extensions.installed() for name, function in each.schemas.items()}
        found = extensions.load(schemas[options.of])()
    else:
        found = schema(included=options.included)
    print(json.dumps(found, indent=2))
    return 0


def run_example(options: argparse.Namespace) -> int:
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
