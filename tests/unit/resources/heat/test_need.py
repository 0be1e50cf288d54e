from __future__ import annotations

from typing import Any

from openstack_prep.resources.lists.nova_records import FlavorRecord
from openstack_prep.resources.orchestration.checks import difference, label, shape, together, wants

FLAVORS = [FlavorRecord(id="f1", name="small", vcpus=2, ram=4096)]


def raw(kind: str, name: str = "x", stack: str = "s", **properties: Any) -> dict[str, Any]:
    return {"resource_name": name, "resource_type": kind, "stack_name": stack, "properties": properties}


def server(name: str = "x", stack: str = "s", **properties: Any) -> dict[str, Any]:
    return raw("OS::Nova::Server", name, stack, **{"flavor": "small", **properties})


def need(*resources: dict[str, Any], there: Any = ()) -> Any:
    return difference(wants(resources, "s", FLAVORS), dict(there))


def test_a_server_takes_its_flavor_and_the_ports_that_nova_makes() -> None:
    networks = [{"port": "p"}, {"network": "n", "port": None}, {"allocate_network": "none"}]
    assert need(server(networks=networks)) == {"instances": 1, "cores": 2, "ram": 4096, "ports": 1}
    assert need(server(flavor="f1")) == {"instances": 1, "cores": 2, "ram": 4096, "ports": 1}
    assert need(server(flavor=None, networks=[{"port": "p"}])) == {"instances": 1}


def test_volumes_of_servers_and_others() -> None:
    devices = [{"image": "i", "volume_size": 7, "volume_type": "fast"}, {"volume_id": "v"}, {"swap_size": 1}]
    found = need(server(networks=[{"port": "p"}], block_device_mapping_v2=devices), raw("OS::Cinder::Volume", size=9))
    assert found["volumes"] == 2
    assert (found["gigabytes"], found["per_volume_gigabytes"]) == (16, 9)
    assert (found["volumes_fast"], found["gigabytes_fast"]) == (1, 7)
    assert need(raw("OS::Cinder::Volume", size=None, snapshot_id="s")) == {"volumes": 1}


def test_rules_of_a_security_group() -> None:
    two = [{"direction": "ingress"}, {"direction": "ingress"}]
    assert need(raw("OS::Neutron::SecurityGroup", rules=two)) == {"security_groups": 1, "security_group_rules": 4}
    out = [*two, {"direction": "egress"}]
    assert need(raw("OS::Neutron::SecurityGroup", rules=out))["security_group_rules"] == 3
    assert need(raw("OS::Neutron::SecurityGroup"))["security_group_rules"] == 2


def test_members_are_those_of_the_largest_group() -> None:
    hints = [server(scheduler_hints={"group": name}) for name in ("a", "b", "b")]
    assert need(*hints, server(scheduler_hints={"group": None}))["server_group_members"] == 2


def test_what_stands_counts_by_what_it_grows_whatever_its_number() -> None:
    wanted = [server(str(number), "s-nodes") for number in (0, 1, 2)]
    standing = {"nodes-*": [{"cores": 2, "ram": 4096}, {"cores": 1, "ram": 8192}]}
    assert need(*wanted, there=standing) == {"instances": 1, "cores": 3, "ram": 4096, "ports": 1}
    assert need(*wanted[:2], there={"nodes-*": [{}, {}, {}]}) == {}
    assert need(raw("OS::Cinder::Volume", size=9), there={"x": [{"gigabytes": 9, "per_volume_gigabytes": 9}]}) == {}


def test_members_of_groups_have_one_shape() -> None:
    assert shape("servers.0.port") == shape("servers-12-port") == "servers-*-port"
    assert shape("pool.abcdefghijk2.server") == "pool-*-server"
    assert shape("api_port") == "api_port"


def test_several_stacks_need_the_sum_but_the_largest_of_what_is_limited_for_each() -> None:
    found = together([{"cores": 2, "server_group_members": 3}, {"cores": 5, "server_group_members": 2}])
    assert found == {"cores": 7, "server_group_members": 3}


def test_labels() -> None:
    names = ("ram", "security_group_rules", "gigabytes", "gigabytes_very_fast", "volumes_ssd")
    assert [label(name) for name in names] == [
        "MiB of memory",
        "security group rules",
        "GiB of volumes",
        "GiB of volumes of type very_fast",
        "volumes of type ssd",
    ]
