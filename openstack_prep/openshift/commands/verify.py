"""``verify``: the paths from outside to a cluster's API and to its routers, link by link."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from openstack_prep.cli import AddCommand
from openstack_prep.cli.html_report import add_html, page_of_findings
from openstack_prep.cli.reports import add_reports, judge_reports, report, write_html
from openstack_prep.cli.running import no_garbage, print_result
from openstack_prep.openshift.commands.of_cluster import add_cluster_options, cloud_of, metadata_file

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud
    from openstack_prep.openshift.verify import Verification, VerificationRequest
    from openstack_prep.reports.html import Page


def add(command: AddCommand) -> None:
    """Add it to the parser."""
    parser = command("verify", _run)
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
    add_html(parser)
    parser.add_argument("--from", dest="source", metavar="ADDR", help="address or network that requests come from")
    add_reports(parser, "metadata")


def _run(options: argparse.Namespace) -> int:
    with no_garbage():
        from openstack_prep.openshift import verify
        from openstack_prep.openshift.folder import Folder
        from openstack_prep.openshift.probe import probe

    judge_reports(options)
    metadata = metadata_file(options)
    what = verify.wanted(
        metadata=metadata,
        infra_id=options.infra_id,
        api_floating_ip=options.api_ip,
        ingress_floating_ip=options.ingress_ip,
        install_config=options.install_config or (Folder(metadata.parent).readable if metadata else None),
        base_domain=options.base_domain,
        cluster_name=options.cluster_name,
        source=options.source,
        cloud=options.os_cloud,
    )
    cloud = cloud_of(options, what.metadata)
    verification = verify.look(cloud, what, hosts=options.hosts, jobs=options.jobs)
    if options.probe:
        verification = probe(what, verification, hosts=options.hosts)
    print_result(options, verification, verification.data())
    subjects = [metadata or verification.infra_id]
    code = report(options, verification.links, 0 if verification.ok else 1, subjects)
    return write_html(options, lambda: _page(options, cloud, what, verification), code)


def _page(options: argparse.Namespace, cloud: Cloud, what: VerificationRequest, found: Verification) -> Page:
    from openstack_prep.base.diagnostic import summary
    from openstack_prep.pictures.topology import sources

    return page_of_findings(
        f"Paths to {found.infra_id}",
        summary(found.links),
        found.ok,
        [("Cluster", what.cluster_name), ("infraID", found.infra_id), ("Cloud", cloud.name)],
        [(f"{each.name}: {each.target}", [link.data() for link in each.links]) for each in found.chains],
        lambda: sources.of_cluster(cloud, what.metadata.infra_id, jobs=options.jobs),
    )
