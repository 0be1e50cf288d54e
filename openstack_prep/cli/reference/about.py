"""``help``, ``version`` and ``example``: what a person asks for first, so it loads little."""

from __future__ import annotations

import argparse
from importlib import resources

from openstack_prep import extensions
from openstack_prep.base.errors import ConfigError
from openstack_prep.version import __version__


def run_help(options: argparse.Namespace) -> int:
    """Print what ``COMMAND --help`` prints; raises UsageError for an unknown command."""
    words = [*options.words, "--help"]
    options.build_parser(words).parse_args(words)  # ends the process, as argparse does for --help
    return 0


def run_version(options: argparse.Namespace) -> int:
    print(f"openstack-prep {__version__}")
    return 0


def run_example(options: argparse.Namespace) -> int:
    shipped = resources.files("openstack_prep.install_configs")
    names = sorted(each.name.removesuffix(".yaml") for each in shipped.iterdir() if each.name.endswith(".yaml"))
    others = {name: place for extension in extensions.installed() for name, place in extension.examples.items()}
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
