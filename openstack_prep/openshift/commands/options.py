"""The options of the commands of this extension; the work of each is in a module that only its call loads."""

from __future__ import annotations

import argparse
from pathlib import Path

from openstack_prep.cli import AddCommand
from openstack_prep.cli.of_spec import add_html, add_reports, add_spec

_HERE = "openstack_prep.openshift.commands"
FORMS = ("mermaid", "dot", "svg", "json")
CONFIG = Path("install-config.yaml")
TAKE_OVER = "to take over what exists, use `openstack-prep export --adopt permanently`"


def add_topology(command: AddCommand) -> None:
    parser = command("topology", f"{_HERE}.topology:run", forms=FORMS)
    which = add_cluster_options(parser)
    which.add_argument(
        "--project", nargs="?", const="", metavar="NAME", help="a project (default: that of the connection)"
    )
    parser.add_argument("--project-domain", metavar="NAME", default="Default", help="its domain (Default)")
    parser.add_argument("--offline", action="store_true", help="only what the spec declares, without a cloud")
    add_spec(parser, default=True, unless=("metadata", "infra_id", "project"))


def add_check(command: AddCommand) -> None:
    parser = command("check", f"{_HERE}.check:run")
    parser.add_argument(
        "paths",
        type=Path,
        nargs="*",
        default=[CONFIG],
        metavar="INSTALL_CONFIG",
        help=f"install-config.yaml or its folder (./{CONFIG}); several only with --offline",
    )
    parser.add_argument("--offline", action="store_true", help="check the files alone, without clouds.yaml and a cloud")
    _add_release(parser)
    add_html(parser)
    parser.add_argument("--hosts", type=Path, metavar="FILE", help="hosts file of the installer's machine (/etc/hosts)")
    add_reports(parser, "paths")


def _add_release(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--release", metavar="RELEASE", help="OpenShift release such as 4.20 (that of the installer)")
    parser.add_argument(
        "--installer", type=Path, metavar="FILE", help="openshift-install (beside the file, or on PATH)"
    )


def add_import(command: AddCommand) -> None:
    parser = command("import", f"{_HERE}.spec_import:run", cloud=False, data=True)
    parser.set_defaults(instead_of_others=TAKE_OVER)
    parser.add_argument(
        "path",
        type=Path,
        nargs="?",
        default=CONFIG,
        metavar="INSTALL_CONFIG",
        help=f"install-config.yaml, its copy or its folder (./{CONFIG})",
    )
    _add_release(parser)
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="folder for spec.yaml, and for pull secret, SSH key and CA certificates (default: print the spec)",
    )


def add_verify(command: AddCommand) -> None:
    parser = command("verify", f"{_HERE}.verify:run")
    add_cluster_options(parser)
    parser.add_argument("--ingress-ip", metavar="ADDR", help="floating IP of the routers (that of their port)")
    parser.add_argument("--api-ip", metavar="ADDR", help="floating IP of the API (that of its port)")
    parser.add_argument(
        "--install-config",
        type=Path,
        metavar="FILE",
        help="install-config.yaml with its domain and addresses (the one beside metadata.json)",
    )
    parser.add_argument("--base-domain", metavar="DOMAIN", help="baseDomain of the cluster, to resolve its names")
    parser.add_argument("--cluster-name", metavar="NAME", help="its name, if the infraID truncates it")
    parser.add_argument("--hosts", type=Path, metavar="FILE", help="hosts file to read before the resolver")
    parser.add_argument(
        "--probe",
        action="store_true",
        help="also connect to the API and the console from this machine, without credentials",
    )
    parser.add_argument(
        "--probe-from",
        metavar="HOST",
        help="connect from a machine that ssh HOST reaches without a password, such as a node; no program runs there",
    )
    parser.add_argument("--watch", action="store_true", help="print a line per change until Ctrl-C")
    parser.add_argument(
        "--until",
        choices=("ok", "error"),
        help="with --watch: exit when no link is broken (ok), or when one is (error)",
    )
    add_html(parser)
    parser.add_argument("--from", dest="source", metavar="ADDR", help="address or network that requests come from")
    add_reports(parser, "metadata")


def add_tools(command: AddCommand) -> None:
    parser = command("tools", f"{_HERE}.tools:run", cloud=False, data=True)
    parser.add_argument(
        "release",
        metavar="RELEASE",
        help="a version (4.18.7), a channel (stable-4.18, latest), or the URL or folder of a sha256sum.txt",
    )
    parser.add_argument(
        "--mirror",
        metavar="URL|DIR",
        help="URL or folder of ARCH/clients/ocp/RELEASE (default: mirror.openshift.com; OKD: GitHub)",
    )
    parser.add_argument("--arch", default="x86_64", metavar="ARCH", help="architecture of the nodes (default: x86_64)")
    parser.add_argument(
        "--host", metavar="ARCH", help="architecture of the machine that runs the tools (default: this machine's)"
    )
    parser.add_argument(
        "--system", metavar="OS", help="operating system of that machine, linux or mac (default: this machine's)"
    )
    parser.add_argument("--only", metavar="NAME[,NAME]", help="some of openshift-install, oc, kubectl (default: all)")
    parser.add_argument("--into", type=Path, default=Path(), metavar="DIR", help="folder for the tools (default: .)")
    parser.add_argument(
        "--key", type=Path, metavar="FILE", help="OpenPGP public keys; one must have signed sha256sum.txt"
    )


def add_names(command: AddCommand) -> None:
    parser = command("names", f"{_HERE}.names:run", cloud=False, data=True)
    parser.add_argument(
        "--install-config",
        type=Path,
        metavar="FILE",
        help="install-config.yaml, its copy or its folder (default: ./install-config.yaml)",
    )
    parser.add_argument("--cluster-name", metavar="NAME", help="name of the cluster; overrides the file")
    parser.add_argument("--base-domain", metavar="DOMAIN", help="base domain of the cluster; overrides the file")
    parser.add_argument("--api", metavar="ADDR", help="address of the API (default: its floating IP)")
    parser.add_argument("--ingress", metavar="ADDR", help="address of the ingress routers (default: their floating IP)")
    parser.add_argument("--api-int", metavar="ADDR", help="address of the API within the cluster (default: none)")
    parser.add_argument(
        "--internal", action="store_true", help="use virtual addresses instead of floating IPs, and add api-int"
    )
    parser.add_argument(
        "--as", dest="form", choices=("hosts", "dnsmasq", "bind"), default="hosts", help="format (default: hosts)"
    )
    parser.add_argument("--server", metavar="NAME", help="name server of the zone; required for bind")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--write", type=Path, metavar="FILE", help="write the names into this file, unless they are up to date"
    )
    parser.add_argument(
        "--replace",
        action="store_true",
        help="with --write: remove the names from other lines of the file that give them another address",
    )
    where.add_argument("--remove", type=Path, metavar="FILE", help="remove the names from this hosts or dnsmasq file")


def add_cluster_options(parser: argparse.ArgumentParser) -> argparse._MutuallyExclusiveGroup:
    """Add the options that name a cluster; return their group, for another one."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--metadata", type=Path, metavar="PATH", help="the installer's metadata.json, or its folder (.)")
    which.add_argument("--infra-id", metavar="ID", help="infraID, if metadata.json is lost")
    parser.epilog = "The cloud is that of --os-cloud, or else of metadata.json, or else of OS_CLOUD."
    return which
