"""Services at the addresses of exposures: manifests of new ones, commands for existing ones."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.exposures import services
from openstack_prep.exposures.endpoint import Exposed, ExposedPort, ExposureTarget, PlacedExposure, Way


def placed(how: Way, address: str | None = "10.1.0.209", selector: Any = None, **port: Any) -> PlacedExposure:
    exposure = Exposed(
        name="shop",
        cluster="one",
        target=ExposureTarget(service="shop/frontend", selector=selector),
        ports=(ExposedPort(port=443, **port),),
        how=how,
        address=address,
    )
    return PlacedExposure(exposure=exposure, address=address)


@pytest.mark.parametrize("how", services.ANNOTATIONS)
def test_a_new_service_requests_its_address(how: Way) -> None:
    files = services.files([placed(how, selector={"app": "shop"}, target=8443)])
    (found,) = yaml.safe_load_all(files.pop(services.SERVICES))
    assert found["metadata"]["annotations"] == {services.ANNOTATIONS[how]: "10.1.0.209"}
    assert found["spec"]["type"] == "LoadBalancer"
    assert found["spec"]["ports"] == [{"name": "tcp-443", "protocol": "TCP", "port": 443, "targetPort": 8443}]
    assert not files


def test_a_service_of_node_ports_requests_none() -> None:
    files = services.files([placed("node-port", None, {"app": "shop"}, node_port=30443)])
    (found,) = yaml.safe_load_all(files[services.SERVICES])
    assert "annotations" not in found["metadata"]
    assert found["spec"]["type"] == "NodePort"
    assert found["spec"]["ports"][0]["nodePort"] == 30443


def test_ipv6_says_its_version() -> None:
    files = services.files([placed("metallb", "2001:db8::9", {"app": "shop"})])
    (found,) = yaml.safe_load_all(files[services.SERVICES])
    assert found["spec"]["ipFamilies"] == ["IPv6"]


def test_an_existing_service_is_patched(tmp_path: Path) -> None:
    script = services.files([placed("cilium")])[services.PATCHES]
    kubectl = tmp_path / "kubectl"
    kubectl.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    kubectl.chmod(0o755)
    answer = subprocess.run(["sh", "-c", script], env={"PATH": f"{tmp_path}:/bin:/usr/bin"}, capture_output=True)
    words = answer.stdout.decode().splitlines()
    assert words[:7] == ["-n", "shop", "patch", "service", "frontend", "--type", "merge"]
    assert yaml.safe_load(words[-1]) == {
        "metadata": {"annotations": {"lbipam.cilium.io/ips": "10.1.0.209"}},
        "spec": {"type": "LoadBalancer"},
    }
    assert shlex.split(script.splitlines()[-1])[-1] == words[-1]


def test_an_existing_service_gets_the_node_port_of_the_spec() -> None:
    """Otherwise Kubernetes chooses one, while a security group opens that of the spec; a plain merge drops the rest."""
    command = services.patch(placed("node-port", None, node_port=30443))
    *words, change = shlex.split(command)
    assert words[-3:] == ["--type", "strategic", "-p"]
    assert yaml.safe_load(change) == {
        "spec": {"type": "NodePort", "ports": [{"port": 443, "protocol": "TCP", "nodePort": 30443}]}
    }
    assert "ports" not in services.patch(placed("node-port", None))


def test_other_ways_have_services_of_their_own() -> None:
    assert services.files([placed("external-ip"), placed("floating-ip"), placed("service-host")]) == {}
