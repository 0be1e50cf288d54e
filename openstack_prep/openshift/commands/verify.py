"""``verify``: the paths from outside to a cluster's API and to its routers, link by link."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from openstack_prep.base.diagnostic import summary
from openstack_prep.base.errors import CloudError, ConfigError
from openstack_prep.cli.output import error_data, judge_reports, print_event, print_result, report, write_html
from openstack_prep.core import interrupts
from openstack_prep.openshift import verify
from openstack_prep.openshift.commands.of_cluster import cloud_of, metadata_file
from openstack_prep.openshift.folder import Folder
from openstack_prep.openshift.probe import probe
from openstack_prep.openshift.ssh_tunnel import SSHFailed
from openstack_prep.openshift.verify.changes import changes
from openstack_prep.pictures.topology import sources

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud
    from openstack_prep.openshift.verify import Verification, VerificationRequest
    from openstack_prep.reports.html import Page

WATCH_SECONDS = 2.0
"""Time between two looks of --watch: each sends eight requests."""


def run(options: argparse.Namespace) -> int:
    _check(options)
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
    if options.watch:
        verification = _watch(options, partial(_look, options, cloud, what))
    else:
        verification = _look(options, cloud, what)
        print_result(options, verification, verification.data())
    subjects = [metadata or verification.infra_id]
    code = report(options, verification.links, 0 if verification.ok else 1, subjects)
    return write_html(options, lambda: _page(options, cloud, what, verification), code)


def _check(options: argparse.Namespace) -> None:
    if options.until and not options.watch:
        raise ConfigError("verify: --until requires --watch; pass it, or remove --until")
    if options.watch and (options.format not in ("text", "json") or hasattr(options, "deliver")):
        raise ConfigError("verify: --watch prints lines of text or JSON; use openstack-prep with --format text or json")


def _look(options: argparse.Namespace, cloud: Cloud, what: VerificationRequest) -> Verification:
    found = verify.look(cloud, what, hosts=options.hosts, jobs=options.jobs)
    if options.probe or options.probe_from:
        return probe(what, found, hosts=options.hosts, origin=options.probe_from, timed=not options.watch)
    return found


def _watch(options: argparse.Namespace, look: Callable[[], Verification]) -> Verification:
    """Print what changes until a signal, or the verdict of --until; return the last verdict.

    An error is a change, too: neither a service nor a machine of --probe-from that restarts ends a watch. The machine
    may also start later than the watch, which ends with its error if nothing could be seen until the signal.
    """
    stopped = threading.Event()
    seen: Verification | None = None
    failure: CloudError | SSHFailed | None = None
    with interrupts.caught(lambda number: stopped.set()):
        while not stopped.is_set():
            try:
                found = look()
            except (CloudError, SSHFailed) as error:
                if isinstance(error, CloudError) and not (seen or failure):
                    raise
                if str(error) != str(failure):
                    place = "cloud" if isinstance(error, CloudError) else "probe"
                    print_event(options, f"{place}    ERROR    {error}", {"errors": error_data(error)})
                failure = error
            else:
                _print_changes(options, seen, found)
                seen, failure = found, None
                if options.until == ("ok" if seen.ok else "error"):
                    break
            stopped.wait(WATCH_SECONDS)
    if seen is None:
        assert failure
        raise failure
    return seen


def _print_changes(options: argparse.Namespace, before: Verification | None, after: Verification) -> None:
    for change in changes(before, after):
        print_event(options, str(change), change.data())


def _page(options: argparse.Namespace, cloud: Cloud, what: VerificationRequest, found: Verification) -> Page:
    from openstack_prep.reports.html_content import page_of_findings  # only for --html

    return page_of_findings(
        f"Paths to {found.infra_id}",
        summary(found.links),
        found.ok,
        [("Cluster", what.cluster_name), ("infraID", found.infra_id), ("Cloud", cloud.name)],
        [(f"{chain.name}: {chain.target}", [link.data() for link in chain.links]) for chain in found.chains],
        lambda: sources.of_cluster(cloud, what.metadata.infra_id, jobs=options.jobs),
    )
