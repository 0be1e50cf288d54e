"""``verify``: the paths from outside to a cluster's API and to its routers, link by link."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from openstack_prep.base.diagnostic import summary
from openstack_prep.cli.output import judge_reports, print_result, report, write_html
from openstack_prep.openshift import verify
from openstack_prep.openshift.commands.of_cluster import cloud_of, metadata_file
from openstack_prep.openshift.folder import Folder
from openstack_prep.openshift.probe import probe
from openstack_prep.pictures.topology import sources

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud
    from openstack_prep.openshift.verify import Verification, VerificationRequest
    from openstack_prep.reports.html import Page


def run(options: argparse.Namespace) -> int:
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
    from openstack_prep.reports.html_content import page_of_findings  # only for --html

    return page_of_findings(
        f"Paths to {found.infra_id}",
        summary(found.links),
        found.ok,
        [("Cluster", what.cluster_name), ("infraID", found.infra_id), ("Cloud", cloud.name)],
        [(f"{each.name}: {each.target}", [link.data() for link in each.links]) for each in found.chains],
        lambda: sources.of_cluster(cloud, what.metadata.infra_id, jobs=options.jobs),
    )
