"""The paths from outside to a cluster's API and to its routers, link by link, as far as OpenStack knows them.

Nothing is sent to the cluster itself: a path without problems may still end at a machine that does not answer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from openstack_prep.cloud.connection import Cloud
from openstack_prep.openshift.names.resolver import resolve
from openstack_prep.openshift.verify.access_path import read
from openstack_prep.openshift.verify.chain import Chain, Verification
from openstack_prep.openshift.verify.links import evaluate
from openstack_prep.openshift.verify.target import ClusterOptions, VerificationRequest, wanted

__all__ = ["Chain", "ClusterOptions", "Verification", "VerificationRequest", "look", "verify", "wanted"]


def verify(
    cloud: Cloud, /, *, hosts: Path | None = None, jobs: int = 8, **given: Unpack[ClusterOptions]
) -> Verification:
    """Return each link of the paths to the API and to the routers, in the project of the connection ``cloud``.

    ``given`` are ``metadata`` or ``infra_id``, and the other keys of ClusterOptions. ``hosts`` is a hosts file that is
    read before the resolver is asked. ``jobs`` is how many requests are sent at a time. Raises SpecError, CloudError.
    """
    return look(cloud, wanted(**given), hosts=hosts, jobs=jobs)


def look(cloud: Cloud, what: VerificationRequest, *, hosts: Path | None = None, jobs: int = 8) -> Verification:
    """Resolve the names, read the cloud, and evaluate both."""
    answers = resolve([host for target in what.targets for host in target.hosts], hosts=hosts)
    cloud.allow_parallel(jobs).authenticate()
    with cloud.reading():
        view = read(cloud, what.metadata.infra_id, jobs=jobs)
    return evaluate(what, view, answers)
