"""From what was asked and read to links, each right, broken or unknown: pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from openstack_prep.openshift.names.resolver import Answer
from openstack_prep.openshift.verify import inside, outside
from openstack_prep.openshift.verify.link import Chain, Link, Verification, ok
from openstack_prep.openshift.verify.reading import Scene
from openstack_prep.openshift.verify.target import Wanted
from openstack_prep.openshift.verify.way import Way


def evaluate(wanted: Wanted, scene: Scene, answers: Mapping[str, Answer]) -> Verification:
    """Return the links of both ways into a cluster."""
    ways = [Way(wanted, target, scene, answers) for target in wanted.targets]
    told: dict[str, str | None] = {way.target.name: way.leads_to for way in ways}
    chains = (Chain(name=way.target.name, target=way.target.url, links=tuple(_links(way, told))) for way in ways)
    return Verification(infra_id=wanted.metadata.infra_id, chains=tuple(chains))


def _links(way: Way, told: Mapping[str, str | None]) -> Iterator[Link]:
    yield from outside.names(way, told)
    if way.wanted.user_managed:
        yield ok("port", "none: install-config.yaml leaves load balancing to you; look at your balancer's targets")
    else:
        yield outside.floating_ip(way)
        yield outside.virtual_port(way)
        yield outside.router_between(way)
        yield from inside.pairs(way)
    yield from inside.groups_of(way)
    yield from inside.machines(way)
