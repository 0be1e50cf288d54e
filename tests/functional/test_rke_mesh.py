"""``rke mesh`` on the stacks of a spec: what must get through, what does not, and that the remedies are enough."""

from __future__ import annotations

import json
import secrets
from typing import Any

import pytest

from tests.devcloud import clouds_file
from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional.client import carry_out
from tests.functional.conftest import Prep

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB engineer@example"


def spec(name: str) -> dict[str, Any]:
    """Two clusters that are one mesh, but for what nobody thought of: rules, pairs and the second's interface."""
    numbers = (1, 2)
    nodes = {"image": "ubuntu", "flavor": "m1.small", "key_name": "key", "wait_timeout": 0, "node_count": 2}
    among = {"remote_group": "self"}
    return {
        "name": name,
        "project": {"name": name},
        "users": [{"name": name, "password": {"env": "PREP_PASSWORD"}}],
        "role_assignments": [{"role": "member", "user": name, "project": name}],
        "images": [{"name": "ubuntu", "source": "disk.qcow2", "disk_format": "qcow2"}],
        "keypairs": [{"name": "key", "public_key": KEY}],
        "networks": [{"name": f"nodes{n}"} for n in numbers],
        "subnets": [
            {"name": f"nodes{n}", "network": f"nodes{n}", "cidr": f"10.{n}.0.0/24"}
            | {"allocation_pools": [f"10.{n}.0.10-10.{n}.0.199"]}
            for n in numbers
        ],
        "routers": [{"name": "router", "interfaces": ["nodes1"]}],
        "security_groups": [
            {"name": "nodes1", "rules": [among]},
            {"name": "nodes2", "rules": [among | {"protocol": "udp"}]},
        ],
        "stacks": [
            {
                "name": f"cluster{n}",
                "template": "shipped:rke-cluster.yaml",
                "parameters": nodes | {"network": f"nodes{n}", "security_groups": [f"nodes{n}"]},
            }
            for n in numbers
        ],
        "rke_clusters": [
            {
                "name": f"cluster{n}",
                "stack": f"cluster{n}",
                "directory": f"cluster{n}",
                "cilium": {"cluster_id": n, "mesh_address": f"10.{n}.0.200"},
            }
            for n in numbers
        ],
    }


@pytest.fixture
def project(prep: Prep) -> str:
    """Write the spec; return the name of its project, and of its user."""
    name = f"mesh{secrets.token_hex(3)}"
    prep.write(spec(name))
    return name


def look(prep: Prep, *words: str, code: int) -> dict[str, Any]:
    return dict(json.loads(prep.run("rke", "mesh", "--format", "json", *words, "spec.yaml", code=code).stdout))


def told(found: dict[str, Any]) -> list[str]:
    return [f"{each['where']}: {each['what']}" for each in found["findings"]]


def test_the_clusters_of_a_spec(prep: Prep, project: str, devcloud: Devcloud) -> None:
    before = look(prep, code=1)
    unseen = "does not exist yet; addresses, groups and pairs of its nodes were not checked"
    assert told(before) == [f"cluster{n}: stack/cluster{n} {unseen}" for n in (1, 2)]
    asked = {(each["source"], each["to"], each["protocol"], each["port"]) for each in before["required"]}
    assert ("cluster1", "cluster2", "tcp", 4240) in asked

    prep.apply()
    mark = devcloud.mark()
    found = look(prep, code=1)
    assert len([each for each in devcloud.requests_since(mark) if each.service in ("neutron", "heat")]) <= 14
    nodes = "the ports cluster1-0, cluster1-1"
    assert f"cluster1: {nodes} have no allowed address pair for the mesh address 10.1.0.200" in told(found)
    assert f"cluster2 to cluster1: {nodes} (groups nodes1) do not let udp 8472 in from 10.2.0.0/24" in told(found)
    ports = ("tcp 6443", "tcp 10250", "tcp 4240", "ICMP echo")  # one server, and what is between all nodes
    within = [each for each in told(found) if each.startswith("within ")]
    assert [each.partition("do not let ")[2].partition(" in ")[0] for each in within] == list(ports)
    assert len(told(found)) == 11 + len(within)

    # as the project's own user, and mended by that
    entry = clouds_file.Entry("own", devcloud.layout.auth_url, project, prep.environment["PREP_PASSWORD"], project)
    clouds_file.write(prep.folder / "own.yaml", entry)
    prep.environment["OS_CLIENT_CONFIG_FILE"] = str(prep.folder / "own.yaml")
    own = look(prep, "--os-cloud", "own", code=1)
    assert told(own) == told(found)
    for finding in own["findings"]:
        carry_out(finding["fix"], prep.environment, prep.folder)
    text = prep.run("rke", "mesh", "--os-cloud", "own", "spec.yaml").stdout
    assert text.endswith("\n\ncluster1, cluster2: no problems found\n")
    prep.environment["OS_CLIENT_CONFIG_FILE"] = str(devcloud.clouds_file)
    check_what_cannot_be_seen(prep, project, devcloud)

    # The rules of the fixes are nobody's in the spec's eyes; who destroys allows them by name.
    planned = json.loads(prep.run("plan", "--destroy", "--format", "json", prep.spec.name, code=2).stdout)
    losses = {loss["address"] for step in planned["steps"] for loss in step.get("losses", ())}
    assert losses
    assert {each.partition("/")[0] for each in losses} == {"security_group_rule"}
    prep.destroy(*(word for loss in losses for word in ("--allow-loss", loss)))


def check_what_cannot_be_seen(prep: Prep, project: str, devcloud: Devcloud) -> None:
    """Look when a server is gone, and when nobody can log in to see stacks."""
    (server,) = devcloud.admin.compute.servers(all_projects=True, name="^cluster2-1$")
    address = server.addresses["nodes2"][0]["addr"]
    devcloud.admin.compute.delete_server(server)
    devcloud.admin.compute.wait_for_delete(server)
    (lost,) = told(look(prep, code=1))
    assert lost == f"cluster2: no server of stack/cluster2 has a port with the address of cluster2-1 {address}"

    prep.environment["PREP_PASSWORD"], password = "another", prep.environment["PREP_PASSWORD"]
    unseen = (
        "is not visible: these credentials have no role in its project; addresses, groups and "
        "pairs of its nodes were not checked"
    )
    assert told(look(prep, code=1)) == [f"cluster{n}: stack/cluster{n} {unseen}" for n in (1, 2)]
    prep.environment["PREP_PASSWORD"] = password


def test_a_spec_without_a_mesh(prep: Prep) -> None:
    alone = spec("alone")
    del alone["rke_clusters"][1]["cilium"]
    prep.write(alone)
    said = prep.run("rke", "mesh", "spec.yaml", code=2).stderr
    prep.spec.unlink()  # nothing was made of it
    assert "rke_clusters: rke_cluster/cluster1 takes part in a mesh; declare cilium" in said
