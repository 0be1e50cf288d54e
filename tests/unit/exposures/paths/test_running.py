"""The hop through a running cluster: its Service, when it is right, and when one thing is not."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.exposures.endpoint import Exposed, ExposedPort, ExposureTarget, PlacedExposure
from openstack_prep.exposures.paths.hops import Running, cluster_hops
from openstack_prep.kubernetes.services import ServiceRecord

ADDRESS = "10.1.0.209"
PORTS = {("tcp", 443): 30443}
GIVEN = ServiceRecord(type="LoadBalancer", given=(ADDRESS,), requested=(ADDRESS,), ports=PORTS)
KUBECTL = "kubectl --kubeconfig 'my kubeconfig'"


def exposure(
    how: str = "metallb", *, selector: bool = True, address: str | None = ADDRESS, **fields: Any
) -> PlacedExposure:
    target = ExposureTarget(service="shop/frontend", selector={"app": "frontend"} if selector else None)
    given: dict[str, Any] = {"target": target, "ports": (ExposedPort(port=443, node_port=30443),)} | fields
    return PlacedExposure(exposure=Exposed(name="shop", cluster="one", how=how, **given), address=address)  # type: ignore[arg-type]


def judged(
    placed: PlacedExposure, found: ServiceRecord | None, *others: PlacedExposure, name: str = "shop/frontend"
) -> Diagnostic:
    running = Running(services={name: found} if found else {}, kubectl=KUBECTL)
    (only,) = cluster_hops(placed, running, [placed, *others], "/far/my files")
    return only


@pytest.mark.parametrize(
    ("placed", "found", "what"),
    [
        (exposure(), GIVEN, "shop/frontend is of type LoadBalancer and was given 10.1.0.209"),
        (exposure(address=None), GIVEN, "shop/frontend is of type LoadBalancer"),
        (exposure("node-port"), GIVEN, "shop/frontend is of type LoadBalancer with 443/tcp at node port 30443"),
        (exposure("floating-ip"), ServiceRecord(type="ClusterIP"), "shop/frontend is of type ClusterIP"),
        (
            exposure("external-ip"),
            replace(GIVEN, type="ClusterIP", external_ips=("10.1.0.1", ADDRESS)),
            "shop/frontend is of type ClusterIP and has 10.1.0.209",
        ),
    ],
)
def test_the_service_is_right(placed: PlacedExposure, found: ServiceRecord, what: str) -> None:
    hop = judged(placed, found)
    assert (hop.status, hop.where, hop.what) == (DiagnosticStatus.OK, "Service", what)


PATCH = f"{KUBECTL} -n shop patch service frontend --type merge -p "
WITH_PORTS = PATCH.replace("merge", "strategic")
PORTS = [{"port": 443, "protocol": "TCP", "nodePort": 30443}]
ANNOTATIONS = {"metallb.io/loadBalancerIPs": ADDRESS}
CHANGE = {"metadata": {"annotations": ANNOTATIONS}, "spec": {"type": "LoadBalancer", "ports": PORTS}}
REQUEST = shlex.quote(json.dumps(CHANGE))
APPLY = f"{KUBECTL} apply -f '/far/my files/services.yaml'"
DESCRIBE = f"{KUBECTL} -n shop describe service frontend"
NODE_PORT = exposure("node-port")
EXTERNAL, EXISTING = exposure("external-ip"), exposure("external-ip", selector=False)
ADD = PATCH + '\'{"spec": {"externalIPs": ["10.1.0.209"]}}\''


@pytest.mark.parametrize(
    ("placed", "found", "code", "fix"),
    [
        (exposure(), None, "missing", APPLY),
        (exposure(selector=False), None, "missing", f"create it, then {WITH_PORTS}{REQUEST}"),
        (exposure("floating-ip"), None, "missing", "create it, or correct the target of exposure shop"),
        (exposure(), replace(GIVEN, type="ClusterIP"), "wrong-type", APPLY),
        (NODE_PORT, replace(GIVEN, type="ClusterIP"), "wrong-type", APPLY),
        (exposure(), replace(GIVEN, ports={("udp", 443): 30443}), "wrong-port", APPLY),
        (NODE_PORT, replace(GIVEN, ports={("tcp", 443): 30444}), "wrong-port", APPLY),
        (
            exposure(selector=False),
            replace(GIVEN, ports={}),
            "wrong-port",
            "correct the ports of the Service, or those of exposure shop",
        ),
        (exposure(), replace(GIVEN, given=()), "no-address", DESCRIBE),
        (exposure(), replace(GIVEN, given=("10.1.0.7",)), "no-address", DESCRIBE),
        (exposure(), replace(GIVEN, given=("10.1.0.7",), requested=()), "wrong-address", APPLY),
        (exposure(selector=False), replace(GIVEN, given=(), requested=()), "wrong-address", WITH_PORTS + REQUEST),
        (EXTERNAL, GIVEN, "wrong-address", f"{KUBECTL} apply -f '/far/my files/external-ip-services.yaml'"),
        (EXISTING, GIVEN, "wrong-address", ADD),
        (
            EXISTING,
            replace(GIVEN, external_ips=("192.0.2.1",)),
            "wrong-address",
            f"declare exposures for 192.0.2.1, or give them up; then {ADD}",
        ),
    ],
)
def test_one_thing_is_wrong(placed: PlacedExposure, found: ServiceRecord | None, code: str, fix: str) -> None:
    hop = judged(placed, found)
    assert (hop.status, hop.code, hop.fix) == (DiagnosticStatus.ERROR, f"kubernetes-service.{code}", fix)


def test_a_patch_keeps_the_addresses_of_all_exposures_of_a_service() -> None:
    other = exposure("external-ip", selector=False, address="10.1.0.210")
    hop = judged(EXISTING, replace(GIVEN, external_ips=("10.1.0.210",)), other)
    assert hop.fix == PATCH + '\'{"spec": {"externalIPs": ["10.1.0.209", "10.1.0.210"]}}\''


def test_a_virtual_machine_has_a_service_of_the_name_of_the_exposure() -> None:
    machine = exposure(target=ExposureTarget(virtual_machine="shop/db"))
    assert judged(machine, GIVEN, name="shop/shop").status is DiagnosticStatus.OK
    apply = f"{KUBECTL} apply -f '/far/my files/virtual-machine-services.yaml'"
    assert judged(machine, None).fix == apply


@pytest.mark.parametrize(
    "placed",
    [
        exposure("bridge", target=ExposureTarget(virtual_machine="shop/db")),
        exposure("service-host", target=ExposureTarget(host="services")),
    ],
)
def test_no_service_leads_there(placed: PlacedExposure) -> None:
    found: Sequence[Diagnostic] = [*cluster_hops(placed, Running(services={}), [placed], "one")]
    assert found == []
