"""From what was asked and read to the links of both paths, each a diagnostic: pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from openstack_prep.base.diagnostic import Diagnostic
from openstack_prep.openshift.names.resolver import ResolvedName
from openstack_prep.openshift.verify import inside, outside
from openstack_prep.openshift.verify.access_path import AccessPath, ProjectView
from openstack_prep.openshift.verify.chain import Chain, Verification, ok
from openstack_prep.openshift.verify.target import VerificationRequest


def evaluate(wanted: VerificationRequest, view: ProjectView, answers: Mapping[str, ResolvedName]) -> Verification:
    """Return the links of both paths to a cluster."""
    paths = [AccessPath(wanted, target, view, answers) for target in wanted.targets]
    expected: dict[str, str | None] = {path.target.name: path.leads_to for path in paths}
    chains = (
        Chain(name=path.target.name, target=path.target.url, links=tuple(_links(path, expected))) for path in paths
    )
    return Verification(infra_id=wanted.metadata.infra_id, chains=tuple(chains))


def _links(path: AccessPath, expected: Mapping[str, str | None]) -> Iterator[Diagnostic]:
    yield from outside.names(path, expected)
    if path.wanted.user_managed:
        yield ok("port", "none: install-config.yaml leaves load balancing to you; check the targets of your balancer")
    else:
        yield outside.floating_ip(path)
        yield outside.virtual_port(path)
        yield outside.router_between(path)
        yield from inside.pairs(path)
        yield from inside.vrrp(path)
    yield from inside.groups_of(path)
    yield from inside.machines(path)
    yield from inside.bootstrap(path)
