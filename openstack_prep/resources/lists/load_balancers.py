"""Octavia's load balancers and their members: one frozen record each, created where the API's answer arrives.

Source: Load Balancer API v2, "List Load Balancers", "List Members".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from openstack_prep.base.raw import Raw, record_of

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud


@dataclass(frozen=True, kw_only=True)
class LoadBalancerRecord:
    id: str
    name: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    vip_port_id: str | None = None
    """Id of the port that has its virtual address."""

    @classmethod
    def read(cls, raw: Raw) -> LoadBalancerRecord:
        return record_of(cls, raw)


@dataclass(frozen=True, kw_only=True)
class MemberRecord:
    """An end of the traffic that a pool of a load balancer distributes."""

    address: str
    subnet_id: str | None = None
    """Id of its subnet; a member without one may be in any."""


def list_load_balancers(cloud: Cloud, project_id: str) -> list[LoadBalancerRecord]:
    listed = cloud.load_balancer.list("/lbaas/loadbalancers", "loadbalancers", project_id=project_id)
    return list(map(LoadBalancerRecord.read, listed))


def list_members(cloud: Cloud, load_balancer: str) -> list[MemberRecord]:
    """Return the members of all pools of a load balancer; raises CloudError."""
    pools = cloud.load_balancer.list("/lbaas/pools", "pools", loadbalancer_id=load_balancer)
    found = (cloud.load_balancer.list(f"/lbaas/pools/{pool['id']}/members", "members") for pool in pools)
    return [record_of(MemberRecord, member) for of_pool in found for member in of_pool]
