"""The options of the commands of this extension; the work of each is in a module that only its call loads."""

from __future__ import annotations

from pathlib import Path

from openstack_prep.cli import AddCommand
from openstack_prep.cli.of_spec import REWRITTEN, add_spec
from openstack_prep.cli.parser import new_path
from openstack_prep.kubernetes.commands.options import add_cluster

_HERE = "openstack_prep.exposures.commands"


def add_convert(command: AddCommand) -> None:
    parser = command("exposures convert", f"{_HERE}.convert:run", cloud=False, data=True)
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="output of kubectl get services,nodes -A -o json, and old pools; - is standard input",
    )
    add_cluster(parser)
    parser.add_argument(
        "--to", required=True, choices=("metallb", "cilium", "kube-vip"), help="load balancer that takes over"
    )
    parser.add_argument("--release", metavar="X.Y.Z", help="its release (default: the newest known one)")
    parser.add_argument("--announce", choices=("l2", "bgp"), help="how it announces the addresses (default: l2)")
    parser.add_argument(
        "--interface", action="append", default=[], metavar="NAME", help="interface for l2 (default: all); repeatable"
    )
    parser.add_argument("--my-asn", metavar="ASN", help="AS number of the cluster, for bgp")
    parser.add_argument(
        "--peer", action="append", default=[], metavar="ADDRESS=ASN", help="router, for bgp; repeatable"
    )
    parser.add_argument("--load-balancer-class", metavar="NAME", help="loadBalancerClass of the Services")
    help_text = f"folder for the files (default: print them){REWRITTEN}"
    parser.add_argument("--output", type=new_path, metavar="FOLDER", help=help_text)


def add_show(command: AddCommand) -> None:
    parser = command("exposures show", f"{_HERE}.show:run")
    add_spec(parser, "YAML file", default=True)
    parser.add_argument("--hosts", type=Path, metavar="FILE", help="hosts file to read before the resolver")
    add_cluster(parser)
    of_spec = "with --kubeconfig: its name in exposed_clusters (default: the only one)"
    parser.add_argument("--cluster", metavar="NAME", help=of_spec)
