"""Real connections to a cluster from this machine, compared with what OpenStack shows of the same paths.

Requests go straight to the addresses of the names, without a proxy and without credentials; nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from openstack_prep.base.fields import is_address
from openstack_prep.openshift.names.resolver import resolve
from openstack_prep.openshift.probe.connection import SECONDS, Outcome, Request, connect
from openstack_prep.openshift.probe.findings import compare
from openstack_prep.openshift.verify.chain import Verification
from openstack_prep.openshift.verify.target import Target, Wanted

__all__ = ["probe"]

PATHS = {"api": "/readyz", "ingress": "/"}
"""What is requested: Kubernetes answers /readyz without credentials, the console its first page."""
JOBS = 32
"""Maximum number of connections at the same time."""


def probe(what: Wanted, shown: Verification, *, hosts: Path | None = None, seconds: float = SECONDS) -> Verification:
    """Return a verification with the outcomes of real connections behind the links of each chain.

    ``seconds`` limits each connection from the first packet to the status of the answer. Raises SpecError if the hosts
    file cannot be read.
    """
    requests: dict[str, list[Request]] = {target.name: list(_requests(target, hosts)) for target in what.targets}
    everything = [each for listed in requests.values() for each in listed]
    with ThreadPoolExecutor(min(JOBS, len(everything)) or 1) as pool:
        outcomes = dict(zip(everything, pool.map(lambda each: connect(each, seconds), everything), strict=True))
    chains = []
    for chain in shown.chains:
        found: list[Outcome] = [outcomes[each] for each in requests[chain.name]]
        chains.append(replace(chain, links=(*chain.links, *compare(chain, found))))
    return replace(shown, chains=tuple(chains))


def _requests(target: Target, hosts: Path | None) -> Iterator[Request]:
    """Yield a request per name, address and TCP port of a target; the last port speaks HTTPS."""
    given = (target.given,) if target.given and is_address(target.given) else ()
    answers = resolve(target.hosts, hosts=hosts)
    named = [(host, address) for host in target.hosts for address in answers[host].addresses or given]
    *plain, secure = target.tcp
    for host, address in named or [(address, address) for address in given]:
        yield Request(host=host, address=address, port=secure, path=PATHS[target.name])
    for address in dict.fromkeys(address for _, address in named):
        for port in plain:
            yield Request(host=address, address=address, port=port)
