"""What is wrong with an exposure as the spec declares it: rules that need no cloud."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address

from openstack_prep.base.codes import Code
from openstack_prep.core.model import Context
from openstack_prep.exposures.cluster_fields import ClusterFields
from openstack_prep.exposures.neighbours import ExposureFields, Finding
from openstack_prep.exposures.pool_file import PoolFile
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.addresses.floating_ip import AttachedFloatingIP, FloatingIP


def findings(exposure: ExposureFields, context: Context) -> Iterator[Finding]:
    """Yield names that the spec does not declare, and addresses that cannot be those of the exposure."""
    clusters = [each.name for each in exposure.of_project(context.declared(ClusterFields))]
    if exposure.cluster not in clusters and context.declared(ClusterFields):
        yield _unknown("cluster", exposure.cluster, "exposed_clusters", clusters)
    pools = exposure.of_project(context.declared(AddressPool))
    named = [each for each in pools if each.name == exposure.pool]
    known = [*(each.name for each in pools), *(each.name for each in context.declared(PoolFile))]
    if exposure.pool and exposure.pool not in known:
        yield _unknown("pool", exposure.pool, "address_pools or pool_files", known)
        return
    for pool in named:
        if exposure.address and not pool.has(ip_address(exposure.address)):
            listed = ", ".join(map(str, pool.ranges))
            what = f"{exposure.address} is not in address_pool/{pool.name} ({listed})"
            yield what, "choose one of them", Code.SPEC_CONTRADICTION
    yield from _floating_ip(exposure, context, reserved=any(each.reserve == "ports" for each in named))


def _floating_ip(exposure: ExposureFields, context: Context, *, reserved: bool) -> Iterator[Finding]:
    """Yield why a floating IP does not lead to the exposure; ``reserved``: ports reserve the addresses of its pool."""
    name = exposure.floating_ip
    if name is None:
        return
    declared = [each.name for each in exposure.of_project(context.declared(FloatingIP))]
    attached = {each.label for each in exposure.of_project(context.declared(AttachedFloatingIP))}
    if name not in declared:
        yield _unknown("floating IP", name, "floating_ips", declared)
    elif exposure.how != "floating-ip" and name not in attached and not (reserved and exposure.address):
        what = f"floating IP {name} can only be attached to a port that reserves a given address"
        yield what, "set address, and a pool with reserve: ports", Code.SPEC_CONTRADICTION


def _unknown(what: str, name: str, section: str, known: list[str]) -> Finding:
    text = f"{what} {name} is not in {section} (known: {', '.join(known) or 'none'})"
    return text, "declare it, or correct the name", Code.SPEC_UNRESOLVED
