"""The options of the commands of this extension; the work of each is in a module that only its call loads."""

from __future__ import annotations

import argparse
from pathlib import Path

from openstack_prep.cli import AddCommand
from openstack_prep.cli.of_spec import REWRITTEN, add_lock_timeout, add_reports, add_spec
from openstack_prep.cli.parser import new_path

_HERE = "openstack_prep.kubernetes.commands"


def add_checklist(command: AddCommand) -> None:
    parser = command("kubernetes checklist", f"{_HERE}.checklist:run", cloud=False, data=True)
    add_spec(parser, "YAML file with rke_clusters", default=True)


def add_convert(command: AddCommand) -> None:
    parser = command("kubernetes convert", f"{_HERE}.convert:run", cloud=False, data=True)
    parser.add_argument("file", type=Path, metavar="FILE", help="cluster.yml of RKE; - is standard input")
    parser.add_argument(
        "--kubernetes-version",
        metavar="VERSION",
        help="release of RKE2, such as v1.35.7+rke2r1 (default: the newest of the same minor version)",
    )
    help_text = f"folder for the files (default: print them){REWRITTEN}; a new.yaml with changes is refused"
    parser.add_argument("--output", type=new_path, metavar="FOLDER", help=help_text)


def add_rke(command: AddCommand) -> None:
    check = command("rke check", f"{_HERE}.rke:run", cloud=False, data=True)
    check.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="config.yaml or registries.yaml (with --rke2), or cluster.yml; - is standard input",
    )
    check.add_argument(
        "--rke2",
        choices=("server", "agent", "registries"),
        help="the files are config.yaml of RKE2 servers or agents, or registries.yaml",
    )
    check.add_argument(
        "--kubernetes-version",
        metavar="VERSION",
        help="with --rke2: release of RKE2, such as v1.35.7+rke2r1 (default: the newest)",
    )
    add_reports(check, "files")


def add_rke_mesh(command: AddCommand) -> None:
    parser = command("rke mesh", f"{_HERE}.rke_mesh:run")
    add_spec(parser, "YAML file", default=True)


def add_rke_render(command: AddCommand) -> None:
    parser = command("rke render", f"{_HERE}.rke_render:run")
    add_spec(parser, "YAML file; its stacks must exist", default=True, unless=("stack",))
    parser.add_argument("--cluster", metavar="NAME", help="only this cluster of the spec")
    parser.add_argument(
        "--allow-replace", action="store_true", help="allow different networks and roles in existing files"
    )
    parser.add_argument("--stack", metavar="NAME", help="instead of a spec: the stack of the nodes")
    parser.add_argument(
        "--distribution", choices=("rke2", "rke"), default="rke", help="with --stack: rke2 or rke (default: rke)"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="with --stack: a field of rke_clusters, such as network_plugin=calico or config.ingress.provider=none",
    )
    help_text = f"with --stack: folder for the files (default: print them){REWRITTEN}"
    parser.add_argument("--output", type=new_path, metavar="FOLDER", help=help_text)
    add_lock_timeout(parser)


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose a cluster."""
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help="read the Services of a running cluster")
    parser.add_argument("--context", metavar="NAME", help="context of --kubeconfig (default: its current one)")
