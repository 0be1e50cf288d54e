"""The options of the commands of this extension; the work of each is in a module that only its call loads."""

from __future__ import annotations

import argparse
from pathlib import Path

from openstack_prep.cli import AddCommand
from openstack_prep.cli.of_spec import add_allow_loss, add_lock_timeout, add_spec, add_variables
from openstack_prep.cli.parser import seconds
from openstack_prep.kubernetes.commands.options import add_cluster
from openstack_prep.openshift.commands.options import add_cluster_options

_HERE = "openstack_prep.hook_commands"
USAGE = "openstack-prep ipi [options] -- openshift-install create cluster [installer's options]"
PORTS = ("ingress-port", "api-port")
SECONDS = 1800.0


def add_pre_ipi(command: AddCommand) -> None:
    parser = command("pre-ipi", f"{_HERE}.ipi:run_pre_ipi")
    add_spec(parser, "YAML file with an install_config", default=True)
    add_preparation(parser)


def add_preparation(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--hosts", type=Path, metavar="FILE", help="hosts file of the installer's machine (default: /etc/hosts)"
    )
    parser.add_argument("--allow-replace", action="store_true", help="allow resources to be deleted and re-created")
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask for confirmation")
    add_lock_timeout(parser)


def add_ipi(command: AddCommand) -> None:
    parser = command("ipi", f"{_HERE}.ipi:run_ipi")
    parser.usage = USAGE
    parser.add_argument(
        "--spec",
        type=Path,
        metavar="SPEC",
        help="apply this spec first, as pre-ipi does; it declares the install_config",
    )
    parser.add_argument(
        "--dir", type=Path, metavar="DIR", help="--dir of the installer, unless its command line has one"
    )
    add_variables(parser)
    add_addresses(parser)
    parser.add_argument(
        "--wait",
        type=seconds,
        metavar="SECONDS",
        help="time to wait for the virtual ports (default: until the installer ends)",
    )
    parser.add_argument(
        "--again",
        action="store_true",
        help="first delete the installer's files of an earlier cluster, once nothing of that cluster exists",
    )
    parser.add_argument("--no-check", action="store_true", help="skip the pre-installation checks")
    add_preparation(parser)
    parser.add_argument("installer", nargs="*", metavar="COMMAND", help="installer command line, after --")


def add_post_ipi(command: AddCommand) -> None:
    parser = command("post-ipi", f"{_HERE}.ipi:run_post_ipi")
    add_cluster_options(parser)
    add_addresses(parser)
    parser.add_argument(
        "--wait", type=seconds, default=0, metavar="SECONDS", help="time to wait for the virtual ports (default: 0)"
    )
    parser.add_argument("--move", action="store_true", help="allow to detach a floating IP from another port")
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask for confirmation")
    add_lock_timeout(parser)


def add_addresses(parser: argparse.ArgumentParser) -> None:
    """Add an option per field of ClusterAddresses."""
    for port in ("ingress", "api"):
        text = f"floating IP for the {port} port, by address or ID"
        parser.add_argument(f"--{port}-ip", dest=f"{port}_floating_ip", metavar="ADDR", help=text)
    text = "address or network to allow on all nodes; repeatable"
    parser.add_argument("--vip", dest="vips", action="append", default=[], metavar="ADDR", help=text)


def add_wait_for(command: AddCommand) -> None:
    parser = command("wait-for", f"{_HERE}.ipi:run_wait_for")
    parser.add_argument("port", choices=PORTS, help="the virtual port")
    add_cluster_options(parser)
    parser.add_argument("--timeout", type=seconds, default=SECONDS, metavar="SECONDS", help=f"(default: {SECONDS:.0f})")


def add_cleanup(command: AddCommand) -> None:
    parser = command("cleanup", f"{_HERE}.cleanup:run")
    which = add_cluster_options(parser)
    which.add_argument(
        "--cluster", metavar="NAME", help="name of another Kubernetes cluster (--cluster-name): what it has created"
    )
    parser.add_argument("--plan", action="store_true", help="list what would be deleted, and change nothing")
    parser.add_argument("--release", metavar="SPEC", help="also delete the floating IPs that this spec created")
    add_allow_loss(parser)
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask for confirmation")
    add_lock_timeout(parser)


def add_address_pairs(command: AddCommand) -> None:
    parser = command("address-pairs sync", f"{_HERE}.address_pairs:run")
    add_spec(parser, "YAML file with address_pairs", optional=True)
    parser.add_argument(
        "--pairs",
        metavar="NAME",
        help="with SPEC: only these address_pairs, for instance those of the cluster of the Services",
    )
    parser.add_argument("--stack", metavar="NAME", help="without SPEC: ports of the servers of this stack")
    parser.add_argument("--tag", metavar="TAG", help="ports with this tag")
    parser.add_argument("--security-group", metavar="NAME", help="ports with this security group")
    parser.add_argument(
        "--port", action="append", default=[], metavar="NAME", help="the port with this name; repeatable"
    )
    parser.add_argument("--network", metavar="NAME", help="only ports on this network")
    parser.add_argument(
        "--address", action="append", metavar="RANGE", help="allow 10.0.0.5, 10.0.0.0/28 or first-last; repeatable"
    )
    parser.add_argument("--services", metavar="FILE", help="output of kubectl get services -A -o json; - is stdin")
    add_cluster(parser)
    parser.add_argument(
        "--watch", action="store_true", help="with --kubeconfig: stay, and follow each change until a signal (exit 0)"
    )
    parser.add_argument(
        "--within",
        action="append",
        default=[],
        metavar="RANGE",
        help="ignore addresses of Services outside of this range; repeatable",
    )
    name = "name in the ownership tag, after sync- (default: ports, network); pairs of earlier calls with it go"
    parser.add_argument("--name", metavar="NAME", help=name)
    parser.add_argument("--dry-run", action="store_true", help="only show the plan")
    add_lock_timeout(parser)
