"""``names``: where a cluster's names lead, for a hosts file, dnsmasq or BIND."""

from __future__ import annotations

import argparse
from pathlib import Path

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.cli import AddCommand

INSTALL_CONFIG = Path("install-config.yaml")


def add(command: AddCommand) -> None:
    """Add it to the parser."""
    parser = command("names", _run, "print or write the addresses of api and *.apps of a cluster", cloud=False)
    parser.add_argument(
        "--install-config",
        type=Path,
        metavar="FILE",
        help="file or its folder (./install-config.yaml), or its copy",
    )
    parser.add_argument("--cluster-name", metavar="NAME", help="name of the cluster, and ...")
    parser.add_argument("--base-domain", metavar="DOMAIN", help="... its domain; both override the file")
    parser.add_argument("--api", metavar="ADDR", help="address of the API (its floating IP)")
    parser.add_argument("--ingress", metavar="ADDR", help="address of the routers (their floating IP)")
    parser.add_argument("--api-int", metavar="ADDR", help="address of the API within the cluster (none)")
    parser.add_argument(
        "--internal", action="store_true", help="virtual addresses instead of floating IPs, and api-int"
    )
    parser.add_argument("--as", dest="form", choices=("hosts", "dnsmasq", "bind"), default="hosts", help="(hosts)")
    parser.add_argument("--server", metavar="NAME", help="host that serves the zone, for bind")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--write", type=Path, metavar="FILE", help="write them into this file, unless it has them")
    where.add_argument("--remove", type=Path, metavar="FILE", help="remove them from a hosts or dnsmasq file")


def _run(options: argparse.Namespace) -> int:
    from openstack_prep.openshift.names import of_cluster as names

    config = _install_config(options)
    if options.remove:
        if options.form == "bind":
            raise SpecError(
                [Mistake("remove", "a zone is a file of its own", "delete it, and its name server's entry")]
            )
        domain = names.domain_of(config, cluster_name=options.cluster_name, base_domain=options.base_domain)
        changed = names.remove(options.remove, domain)
        print(f"{options.remove}: names of {domain} {'removed' if changed else 'not found'}")
        return 0
    found = names.names_of(
        config,
        cluster_name=options.cluster_name,
        base_domain=options.base_domain,
        api=options.api,
        ingress=options.ingress,
        api_int=options.api_int,
        internal=options.internal,
    )
    if options.write:
        changed = names.write(options.write, found, options.form, options.server)
        print(f"{options.write}: names of {found.domain} {'written' if changed else 'unchanged'}")
    else:
        print(names.text_of(found, options.form, options.server), end="")
    return 0


def _install_config(options: argparse.Namespace) -> Path | None:
    """Return the install-config to read, or its copy when the installer has eaten it; None: all is said by hand."""
    from openstack_prep.openshift.install_config_file import KEPT

    given: Path | None = options.install_config
    path = given or INSTALL_CONFIG
    path = path / INSTALL_CONFIG if path.is_dir() else path
    copy = Path(f"{path}{KEPT}")
    if given is None and options.cluster_name and options.base_domain:
        return None
    return next((each for each in (path, copy) if each.exists()), given and path)
