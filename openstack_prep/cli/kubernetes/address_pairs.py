"""``address-pairs sync``: allowed address pairs of a cluster's nodes kept in step, from a timer too."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from openstack_prep.base.errors import ConfigError
from openstack_prep.cli import AddCommand
from openstack_prep.cli.running import add_lock_timeout, print_result, run_plan


def add(command: AddCommand) -> None:
    """Add it to the parser."""
    text = "allow addresses on the ports of a cluster's nodes, and take ours back where they are no longer wanted"
    parser = command("address-pairs sync", _run, text)
    parser.add_argument("spec", type=Path, nargs="?", metavar="SPEC", help="the spec whose address_pairs are meant")
    parser.add_argument("--pairs", metavar="NAME", help="with SPEC: only these; --services are of one cluster")
    parser.add_argument("--stack", metavar="NAME", help="without SPEC: ports of the servers of that stack")
    parser.add_argument("--tag", metavar="TAG", help="ports that carry that tag")
    parser.add_argument("--security-group", metavar="NAME", help="ports that carry that security group")
    parser.add_argument("--port", action="append", default=[], metavar="NAME", help="the port of that name; repeatable")
    parser.add_argument("--network", metavar="NAME", help="only ports on that network")
    parser.add_argument(
        "--address", action="append", metavar="RANGE", help="allow 10.0.0.5, 10.0.0.0/28 or first-last; repeatable"
    )
    parser.add_argument("--services", metavar="FILE", help="all of kubectl get services -A -o json; - is stdin")
    parser.add_argument(
        "--within",
        action="append",
        default=[],
        metavar="RANGE",
        help="leave out Services' addresses outside of it",
    )
    parser.add_argument("--name", metavar="NAME", help="name for the mark (sync-, which ports, which network)")
    parser.add_argument("--dry-run", action="store_true", help="show what would be done")
    add_lock_timeout(parser)


def _run(options: argparse.Namespace) -> int:
    from openstack_prep.cloud.connection import connect
    from openstack_prep.hooks.address_pairs import SECTIONS, Sync, to_sync
    from openstack_prep.spec import Spec, load_spec
    from openstack_prep.verbs import api

    _check(options)
    services = _services(options.services)
    if options.spec:
        spec = load_spec(options.spec, SECTIONS)
        wanted: Spec | Sync = spec
        cloud = connect(options.os_cloud or spec.clouds.tenant or spec.clouds.admin)
    else:
        wanted = Sync(
            stack=options.stack,
            tag=options.tag,
            security_group=options.security_group,
            ports=options.port,
            addresses=options.address,
            within=options.within,
            network=options.network,
            name=options.name,
        )
        cloud = connect(options.os_cloud)
    spec = to_sync(cloud, wanted, services=services, only=options.pairs, tell=_warn)
    plan = api.plan(cloud, spec, jobs=options.jobs)
    if options.dry_run:
        plan.raise_for_refusals()
        print_result(options, plan.table, plan.data())
        return 0
    return run_plan(options, cloud, plan)


def _check(options: argparse.Namespace) -> None:
    names = ("stack", "tag", "security_group", "port", "network", "address", "within", "name")
    given = [f"--{name.replace('_', '-')}" for name in names if getattr(options, name)]
    if options.spec and given:
        raise ConfigError(f"address-pairs sync: the spec says that itself; leave out {', '.join(given)}, or the SPEC")
    if options.pairs and not options.spec:
        raise ConfigError("address-pairs sync: --pairs names some of a spec's; give the SPEC, or leave it out")


def _warn(note: str) -> None:
    print(f"openstack-prep: warning: {note}", file=sys.stderr)


def _services(name: str | None) -> str | None:
    """Return what kubectl printed."""
    if name is None:
        return None
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--services {name} cannot be read: {error}; give a file, or - for standard input") from None
