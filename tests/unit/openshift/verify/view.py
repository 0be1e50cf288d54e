"""A cluster as Neutron and Nova describe it: all right, for tests to break."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from openstack_prep.base.diagnostic import Diagnostic
from openstack_prep.openshift.names.resolver import ResolvedName
from openstack_prep.openshift.verify.access_path import ProjectView
from openstack_prep.openshift.verify.links import evaluate
from openstack_prep.openshift.verify.target import wanted
from openstack_prep.resources.lists.neutron_records import (
    FloatingIPRecord,
    GroupRecord,
    NeutronRecord,
    PortRecord,
    RouterRecord,
    SubnetRecord,
)
from openstack_prep.resources.lists.nova_records import ServerRecord
from tests.unit.conftest import subnet_row

ID = "dev-x7k2p"
TAG = f"openshiftClusterID={ID}"
API, INGRESS = "192.0.2.10", "192.0.2.11"
VIRTUAL = {"api-port": "10.0.0.5", "ingress-port": "10.0.0.7"}
APPS = ("console-openshift-console.apps.dev.example.com", "oauth-openshift.apps.dev.example.com")
R = TypeVar("R", bound=NeutronRecord | ServerRecord)
Raw = dict[str, Any]
NAMES = {"api.dev.example.com": API, APPS[0]: INGRESS, APPS[1]: INGRESS}


def port(name: str, address: str, /, **more: Any) -> dict[str, Any]:
    return {
        "id": f"id-of-{name}",
        "name": f"{ID}-{name}",
        "project_id": "p",
        "network_id": "net",
        "mac_address": "fa:16:3e:00:00:01",
        "device_id": "",
        "device_owner": "",
        "status": "DOWN",
        "admin_state_up": True,
        "port_security_enabled": True,
        "fixed_ips": [{"subnet_id": "sub", "ip_address": address}],
        "allowed_address_pairs": [],
        "security_groups": ["default"],
        "tags": [TAG],
    } | more


def node(name: str, address: str, role: str) -> dict[str, Any]:
    pairs = [{"ip_address": each, "mac_address": "fa:16:3e:00:00:01"} for each in ("10.0.0.5", "10.0.0.7")]
    used = {"device_id": f"server-{name}", "device_owner": "compute:nova", "status": "ACTIVE"}
    return port(name, address, allowed_address_pairs=pairs, security_groups=[role], **used)


def rule(first: int | None, last: int | None = None, **more: Any) -> dict[str, Any]:
    return {
        "direction": "ingress",
        "ethertype": "IPv4",
        "protocol": "tcp",
        "port_range_min": first,
        "port_range_max": last or first,
        "remote_ip_prefix": None,
        "remote_group_id": None,
        "remote_address_group_id": None,
    } | more


def floating(address: str, name: str, **more: Any) -> dict[str, Any]:
    served = {"port_id": f"id-of-{name}", "router_id": "router", "status": "ACTIVE", "floating_network_id": "ext"}
    fixed = VIRTUAL.get(name)
    return {"id": f"fip-{address}", "floating_ip_address": address, "fixed_ip_address": fixed, **served} | more


def server(name: str, status: str = "ACTIVE", **more: Any) -> dict[str, Any]:
    return {"id": f"server-{name}", "name": name, "status": status} | more


def subnet(**more: Any) -> dict[str, Any]:
    return subnet_row(id="sub", name=f"{ID}-nodes", project_id="p", network_id="net") | more


VRRP = [
    rule(None, protocol="112", ethertype=f"IPv{version}", remote_ip_prefix=prefix)
    for version, prefix in ((4, "10.0.0.0/16"), (6, "fd00::/16"))
]
"""What each group of the installer has for keepalived."""


def group(role: str, *rules: dict[str, Any], vrrp: bool = True, **more: Any) -> dict[str, Any]:
    return {"id": role, "name": f"{ID}-{role}", "security_group_rules": [*rules, *(VRRP if vrrp else [])]} | more


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What Neutron and Nova answer; None stands for a list that may not be read."""

    infra_id: str
    ports: Sequence[Raw]
    floating_ips: Sequence[Raw] | None
    servers: Mapping[str, Raw] | None
    groups: Mapping[str, Raw] | None
    interfaces: Sequence[Raw] | None
    routers: Mapping[str, Raw] | None
    subnets: Mapping[str, Raw] | None
    worker_groups: Sequence[Raw] | None = ()

    @property
    def view(self) -> ProjectView:
        return ProjectView(
            infra_id=self.infra_id,
            ports=list(map(PortRecord.read, self.ports)),
            floating_ips=_listed(FloatingIPRecord, self.floating_ips),
            servers=_by_id(ServerRecord, self.servers),
            groups=_by_id(GroupRecord, self.groups),
            interfaces=_listed(PortRecord, self.interfaces),
            routers=_by_id(RouterRecord, self.routers),
            subnets=_by_id(SubnetRecord, self.subnets),
            worker_groups=_listed(GroupRecord, self.worker_groups),
        )


def _listed(kind: type[R], raws: Sequence[Raw] | None) -> list[R] | None:
    return None if raws is None else list(map(kind.read, raws))


def _by_id(kind: type[R], raws: Mapping[str, Raw] | None) -> dict[str, R] | None:
    return None if raws is None else {key: kind.read(raw) for key, raw in raws.items()}


def right() -> Answers:
    """Return a cluster with nothing wrong."""
    nodes = [node(f"master-{number}-0", f"10.0.1.{number}", "master") for number in range(3)]
    nodes += [node(f"worker-0-{end}-0", f"10.0.2.{number}", "worker") for number, end in enumerate(("abcde", "fghij"))]
    servers = {each["device_id"]: server(each["name"].removesuffix("-0"), id=each["device_id"]) for each in nodes}
    gateway = {"network_id": "ext"}
    router = {"id": "router", "name": f"{ID}-router", "status": "ACTIVE", "admin_state_up": True, "routes": []}
    return Answers(
        infra_id=ID,
        ports=[port("api-port", "10.0.0.5"), port("ingress-port", "10.0.0.7"), *nodes],
        floating_ips=[floating(API, "api-port"), floating(INGRESS, "ingress-port")],
        servers=servers,
        groups={"master": group("master", rule(6443)), "worker": group("worker", rule(80), rule(443))},
        interfaces=[port("", "10.0.0.1", name="", device_id="router", device_owner="network:router_interface")],
        routers={"router": router | {"external_gateway_info": gateway}},
        subnets={"sub": subnet()},
    )


def changed(name: str, **values: Any) -> Answers:
    """Return the cluster with one port changed; ``gone`` takes it away."""
    found = right()
    if values.pop("gone", False):
        return replace(found, ports=[each for each in found.ports if each["name"] != f"{ID}-{name}"])
    return replace(
        found, ports=[{**each, **values} if each["name"] == f"{ID}-{name}" else each for each in found.ports]
    )


def links(answers: Answers, *, names: dict[str, str] | None = None, **given: Any) -> dict[str, list[Diagnostic]]:
    """Return the links of both paths, by name of the path."""
    what = wanted(**{"infra_id": ID, "base_domain": "example.com"} | given)
    told = NAMES if names is None else names
    resolved = {
        host: ResolvedName((told[host],) if host in told else (), "hosts")
        for target in what.targets
        for host in target.hosts
    }
    return {chain.name: list(chain.links) for chain in evaluate(what, answers.view, resolved).chains}


def wrong(answers: Answers, **given: Any) -> list[str]:
    """Return what is not right as "path, place, status code: what; fix"."""
    return [
        f"{path}, {link.where}, {link.status} {link.code}: {link.what}; {link.fix}"
        for path, found in links(answers, **given).items()
        for link in found
        if link.status != "ok"
    ]
