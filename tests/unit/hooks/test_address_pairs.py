from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import ConfigError, PlanRefused, SpecError
from openstack_prep.cli.main import main
from openstack_prep.cloud.connection import Cloud
from openstack_prep.hooks.address_pairs import Sync, sync_address_pairs, to_sync
from openstack_prep.resources.addresses.address_pairs import AddressPairs
from tests.unit.conftest import ADMIN_PROJECT, ENDPOINTS, connection, default_group, port_row, sent
from tests.unit.kubernetes.test_services import said, service
from tests.unit.texts import Wording, contains, expect_error

NEUTRON = ENDPOINTS["network"] + "/v2.0"
SPEC = """
name: mesh
users: [{name: nobody, password: {env: NOT_SET_IN_A_TIMER}}]
unknown_section_of_a_later_version: 1
address_pools:
  - {name: lb, subnet: nodes, addresses: [10.1.0.200-10.1.0.219]}
address_pairs:
  - {name: nodes, security_group: rke, pools: [lb], addresses: [10.1.0.5]}
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    return path


@pytest.fixture
def cloud(services: requests_mock.Mocker) -> Cloud:
    return Cloud(connection())


def wanted_by(
    cloud: Cloud, wanted: Any, services: str | None = None, only: str | None = None
) -> tuple[AddressPairs, list[str]]:
    notes: list[str] = []
    (pairs,) = to_sync(cloud, wanted, services=services, only=only, tell=notes.append).resources
    assert isinstance(pairs, AddressPairs)
    return pairs, notes


def test_of_a_spec_only_pools_and_pairs_are_read(cloud: Cloud, spec: Path) -> None:
    """A secret that nobody has does not matter; nor do sections that are none of ours."""
    pairs, notes = wanted_by(cloud, spec)
    assert pairs.desired()["addresses"] == {"10.1.0.5", "10.1.0.200/29", "10.1.0.208/29", "10.1.0.216/30"}
    assert notes == []


def test_services_narrow_the_pools_to_what_is_in_use(cloud: Cloud, spec: Path, wording: Wording) -> None:
    items = [service("a", loadBalancerIP="10.1.0.201"), service("b", type="ClusterIP", externalIPs=["10.1.0.1"])]
    pairs, notes = wanted_by(cloud, spec, said(*items, service("c", ingress=[{"hostname": "c.example.com"}])))
    assert pairs.desired()["addresses"] == {"10.1.0.5", "10.1.0.201"}
    wording(notes)
    assert wanted_by(cloud, spec, said())[0].desired()["addresses"] == {"10.1.0.5"}


def test_pairs_of_exposures_are_kept_and_not_narrowed(cloud: Cloud, spec: Path) -> None:
    """Without them the declared pairs would take the recorded ones for theirs, and remove them."""
    exposure = "{name: web, cluster: k, how: metallb, target: {service: a/b}, ports: [{port: 80}], pool: more}"
    bgp = "{my_asn: 1, peers: [{name: t, peer_asn: 2, peer_address: 10.1.0.1, password: {env: NOT_SET}}]}"
    node = "{name: n, addresses: [10.1.0.9]}"
    settings = f"{{interface: eth0, nodes: [{node}], bgp: {bgp}}}"
    cluster = f"{{name: k, directory: k, nodes: {{security_group: rke}}, external_ips: {settings}}}"
    pool = "  - {name: more, subnet: nodes, addresses: [10.1.0.230-10.1.0.231]}\naddress_pairs"
    text = f"{SPEC}\nexposures: [{exposure}]\nexposed_clusters: [{cluster}]\n"
    spec.write_text(text.replace("address_pairs", pool, 1))
    declared, derived = to_sync(cloud, spec, services=said(), tell=lambda note: None).resources
    assert isinstance(declared, AddressPairs)
    assert isinstance(derived, AddressPairs)
    assert declared.desired()["addresses"] == {"10.1.0.5"}
    assert derived.desired()["addresses"] == {"10.1.0.230", "10.1.0.231"}
    assert [each.name for each in declared.neighbours.pairs] == [declared.name, derived.name]


def test_declared_pairs_are_synchronised_whatever_their_name(cloud: Cloud, spec: Path) -> None:
    text = SPEC.replace("name: nodes, security_group", "name: exposures-lb, security_group")
    assert text != SPEC
    spec.write_text(text)
    (pairs,) = to_sync(cloud, spec, services=said(), tell=lambda note: None).resources
    assert isinstance(pairs, AddressPairs)
    assert (pairs.name, pairs.desired()["addresses"]) == ("exposures-lb", {"10.1.0.5"})


def test_pairs_for_addresses_of_a_pool_file_are_kept(cloud: Cloud, spec: Path) -> None:
    exposure = "{name: web, cluster: k, how: metallb, target: {service: a/b}, ports: [{port: 80}], pool: file}"
    file = "{name: file, path: p.yaml, cidr: 10.2.0.0/24, addresses: [10.2.0.8/31]}"
    cluster = "{name: k, directory: k, nodes: {security_group: rke}}"
    spec.write_text(f"{SPEC}\npool_files: [{file}]\nexposures: [{exposure}]\nexposed_clusters: [{cluster}]\n")
    declared, derived = to_sync(cloud, spec, services=said(), tell=lambda note: None).resources
    assert isinstance(declared, AddressPairs)
    assert derived.desired()["addresses"] == {"10.2.0.8", "10.2.0.9"}
    assert [each.name for each in declared.neighbours.pairs] == [declared.name, "exposures-k"]


def test_what_a_spec_lacks_for_it(cloud: Cloud, spec: Path, wording: Wording) -> None:
    spec.write_text("name: mesh\n")
    with pytest.raises(SpecError) as caught:
        wanted_by(cloud, spec)
    wording(caught.value)
    spec.write_text("name: mesh\naddress_pairs: [{name: nodes, tag: x, addresses: [10.1.0.5]}]\n")
    with pytest.raises(SpecError) as caught:
        wanted_by(cloud, spec, said())
    wording(caught.value)
    spec.write_text("name: mesh\naddress_pairs:\n- {name: nodes, tag: x, pools: [a, b]}\n")
    with pytest.raises(SpecError) as caught:
        wanted_by(cloud, spec)
    wording(str(caught.value).splitlines())


def test_services_of_one_cluster_say_nothing_of_another(cloud: Cloud, spec: Path, wording: Wording) -> None:
    """Else the timer of one cluster would take away what the other's Services need."""
    spec.write_text(
        """
name: mesh
address_pools:
  - {name: a, subnet: nodes, addresses: [10.1.0.200-10.1.0.203]}
  - {name: b, subnet: nodes, addresses: [10.1.0.204-10.1.0.207]}
address_pairs:
  - {name: one, security_group: x, pools: [a]}
  - {name: two, security_group: y, pools: [b]}
"""
    )
    services = said(service("a", loadBalancerIP="10.1.0.201"))
    with expect_error(SpecError, "address_pairs", "one, two", "--pairs"):
        wanted_by(cloud, spec, services)
    pairs, _ = wanted_by(cloud, spec, services, only="one")
    assert (pairs.name, pairs.desired()["addresses"]) == ("one", {"10.1.0.201"})
    assert [each.desired()["addresses"] for each in pairs.neighbours.pairs] == [{"10.1.0.201"}, {"10.1.0.204/30"}]
    with pytest.raises(SpecError) as caught:
        wanted_by(cloud, spec, only="three")
    wording(caught.value)


def test_it_works_in_the_project_of_the_spec_only(cloud: Cloud, spec: Path) -> None:
    spec.write_text(SPEC + "project: {name: mesh}\n")
    with expect_error(ConfigError, "admin-project", "Default", "/lb", "mesh"):
        wanted_by(cloud, spec)
    spec.write_text(SPEC + "project: {name: admin-project, domain: staff}\n")
    with expect_error(ConfigError, "address_pool", "/lb", "admin-project", "staff"):
        wanted_by(cloud, spec)
    spec.write_text(SPEC + "project: {name: admin-project}\n")
    assert wanted_by(cloud, spec)[0].project is None


def test_by_words(cloud: Cloud, wording: Wording) -> None:
    pairs, notes = wanted_by(
        cloud,
        Sync(stack="rke", addresses=["10.1.0.5", "10.1.0.8-10.1.0.11"], within=["10.1.0.0/24"]),
        said(service(loadBalancerIP="10.1.0.9"), service("off", loadBalancerIP="10.2.0.1")),
    )
    assert pairs.key.name == "sync-stack-rke"
    assert pairs.desired()["addresses"] == {"10.1.0.5", "10.1.0.8/30", "10.1.0.9"}
    wording(notes)
    everywhere = Sync(ports=["a"], name="mine", within=["0.0.0.0/0"])
    assert wanted_by(cloud, everywhere, said(service(loadBalancerIP="10.2.0.1")))[0].addresses == ("10.2.0.1",)


def test_two_networks_of_one_cluster_do_not_undo_one_another(cloud: Cloud) -> None:
    names = {
        wanted_by(cloud, Sync(security_group="rke", addresses=["10.1.0.5"], network=network))[0].name
        for network in (None, "blue", "green")
    }
    assert names == {"sync-security_group-rke", "sync-security_group-rke@blue", "sync-security_group-rke@green"}


def test_no_two_selections_of_ports_share_a_name(cloud: Cloud) -> None:
    chosen = [("rke", "blue"), ("rke-blue", None), ("rke@blue", None), ("rke%40blue", None), ("rke", None)]
    syncs = [Sync(security_group=group, addresses=["10.1.0.5"], network=network) for group, network in chosen]
    assert len({wanted_by(cloud, each)[0].name for each in syncs}) == len(chosen)


def test_a_pool_that_apply_would_refuse_is_not_opened(cloud: Cloud, spec: Path, services: requests_mock.Mocker) -> None:
    spec.write_text(SPEC.replace("10.1.0.200-10.1.0.219", "10.1.0.1-10.1.0.3"))
    node(services)
    subnet = {"id": "s1", "name": "nodes", "network_id": "n1", "cidr": "10.1.0.0/24", "gateway_ip": "10.1.0.1"}
    subnet |= {"allocation_pools": [], "ipv6_address_mode": None, "description": "", "dns_nameservers": []}
    services.get(f"{NEUTRON}/subnets", json={"subnets": [subnet | {"host_routes": [], "revision_number": 1}]})
    with expect_error(PlanRefused, "address_pool/lb", "10.1.0.1", "nodes", code="spec.contradiction"):
        sync_address_pairs(cloud, spec)
    assert not [each for each in sent(services) if not each.startswith("GET")]


def test_half_of_another_runs_work_is_no_refusal(clouds_yaml: Path, spec: Path, services: requests_mock.Mocker) -> None:
    port = node(services, fixed_ips=[{"subnet_id": "s1", "ip_address": "10.1.0.7"}], port_security_enabled=True)
    group, theirs = default_group(services), {"id": "g1", "name": "rke"}
    services.get(
        f"{NEUTRON}/security-groups",
        json=lambda *_: {"security_groups": [{**group, "project_id": ADMIN_PROJECT}, theirs]},
    )
    subnet = {"id": "s1", "name": "nodes", "network_id": "n1", "cidr": "10.1.0.0/24", "gateway_ip": "10.1.0.200"}
    subnet |= {"allocation_pools": [], "ipv6_address_mode": None, "description": "", "dns_nameservers": []}

    def subnets(request: Any, context: Any) -> dict[str, Any]:
        """Name a gateway among the addresses once; then the other run has moved it."""
        answer = {"subnets": [{**subnet, "host_routes": [], "revision_number": 1}]}
        group["revision_number"] += subnet["gateway_ip"] == "10.1.0.200"
        subnet["gateway_ip"] = "10.1.0.1"
        return answer

    services.get(f"{NEUTRON}/subnets", json=subnets)
    services.get(f"{NEUTRON}/ports/p1", json=lambda *_: {"port": port})

    def put(request: Any, context: Any) -> dict[str, Any]:
        pairs = request.json()["port"]["allowed_address_pairs"]
        port["allowed_address_pairs"] = [{"mac_address": "m"} | each for each in pairs]
        return {"port": port}

    services.put(f"{NEUTRON}/ports/p1", json=put)
    services.put(re.compile(f"{NEUTRON}/ports/p1/tags"), status_code=201, json={"tags": []})
    assert main(["address-pairs", "sync", "--os-cloud", "lab", str(spec)]) == 0
    assert "PUT /v2.0/ports/p1" in sent(services)


def test_services_alone_do_not_say_what_is_allowed(cloud: Cloud, wording: Wording) -> None:
    """Whoever may make a Service could have the gateway's address, or another node's, on every node."""
    gateway = said(service(type="ClusterIP", externalIPs=["10.1.0.1"]))
    with pytest.raises(SpecError) as caught:
        wanted_by(cloud, Sync(stack="rke"), gateway)
    wording(caught.value)
    pairs, notes = wanted_by(cloud, Sync(stack="rke", within=["10.1.0.200/29"]), gateway)
    assert pairs.addresses == ()
    wording(notes)


@pytest.mark.parametrize(
    ("wanted", "lines"),
    [
        (
            Sync(),
            [
                "ports: no ports selected; pass a SPEC, or exactly one of "
                "stack, tag, security group (--security-group) and ports (--port)",
                "addresses: no addresses selected; pass addresses (--address), "
                "or the Services that use them (--services, --kubeconfig)",
            ],
        ),
        (
            Sync(ports=["a"], addresses=["x", "10.0.0.9-10.0.0.1"], within=["y"]),
            [
                "within: only applies together with services; pass Services, or remove it",
                "name: is missing; set a name, under which the pairs are recorded",
                "addresses: 'x' is not a range of addresses; use one such as 10.0.0.200-10.0.0.219 or 10.0.0.192/28",
                "addresses: '10.0.0.9-10.0.0.1' ends before it begins; write the lower address first",
                "within: 'y' is not a range of addresses; use one such as 10.0.0.200-10.0.0.219 or 10.0.0.192/28",
            ],
        ),
    ],
)
def test_all_that_is_wrong_is_told_at_once(cloud: Cloud, wanted: Sync, lines: list[str]) -> None:
    with pytest.raises(SpecError) as caught:
        to_sync(cloud, wanted, services=None, tell=print)
    assert str(caught.value).splitlines() == lines


def node(services: requests_mock.Mocker, **fields: Any) -> dict[str, Any]:
    """Have Neutron know one node's port, and a group that it carries."""
    found = port_row(id="p1", name="node", mac_address="m", security_groups=["g1"], device_id="s1") | fields
    services.get(f"{NEUTRON}/ports", json={"ports": [found]})
    services.get(f"{NEUTRON}/security-groups", json={"security_groups": [{"id": "g1", "name": "rke"}]})
    return found


def test_what_is_no_list_of_services_takes_nothing(
    cloud: Cloud, services: requests_mock.Mocker, wording: Wording
) -> None:
    ours = {"ip_address": "10.1.0.9", "mac_address": "m"}
    port = node(services, allowed_address_pairs=[ours], tags=["openstack-prep:sync-security_group-rke~10.1.0.9"])
    wanted = Sync(security_group="rke", within=["10.1.0.0/24"])
    with pytest.raises(SpecError) as caught:
        sync_address_pairs(cloud, wanted, services='{"kind": "PodList", "items": []}')
    wording(caught.value)
    assert sent(services) == []
    services.put(f"{NEUTRON}/ports/p1", json=lambda request, _: {"port": port | request.json()["port"]})
    services.delete(re.compile(f"{NEUTRON}/ports/p1/tags/.*"), status_code=204)
    services.get(f"{NEUTRON}/ports/p1", json={"port": port | {"allowed_address_pairs": []}})
    sync_address_pairs(cloud, wanted, services=said()).raise_for_failures()
    changed = [each for each in sent(services) if not each.startswith("GET")]
    tag = "openstack-prep%3async-security_group-rke~10.1.0.9"
    assert changed == ["PUT /v2.0/ports/p1", f"DELETE /v2.0/ports/p1/tags/{tag}"]


def test_the_command(
    clouds_yaml: Path, services: requests_mock.Mocker, spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node(services)
    words = ["address-pairs", "sync", "--os-cloud", "lab"]
    assert main([*words, "--security-group", "rke", "--address", "10.1.0.8/30", "--dry-run"]) == 0
    assert "  + address_pairs/sync-security_group-rke  addresses [10.1.0.8/30]" in capsys.readouterr().out
    address = ["--security-group", "rke", "--address", "10.1.0.8/30"]
    assert main([*words, *address, "--dry-run", "--color", "always"]) == 0
    assert "\x1b[32m  + address_pairs/sync-security_group-rke" in capsys.readouterr().out
    assert main([*words, str(spec), "--stack", "a", "--address", "10.0.0.5"]) == 2
    assert contains(capsys.readouterr().err, "--stack", "--address", "SPEC", "[config.invalid]")
    assert main([*words, "--stack", "a", "--services", str(spec.with_name("none"))]) == 2
    assert "cannot be read" in capsys.readouterr().err
    path = spec.with_name("services.json")
    path.write_text(said(service(loadBalancerIP="10.1.0.9")))
    given = ["--security-group", "rke", "--services", str(path), "--within", "10.1.0.0/24"]
    assert main([*words, *given, "--dry-run", "--format", "json"]) == 0
    (step,) = json.loads(capsys.readouterr().out)["steps"]
    assert step["changes"][0] == {"field": "addresses", "before": None, "after": ["10.1.0.9"]}
    assert not [each for each in sent(services) if not each.startswith("GET")]


def test_a_cloud_by_name_is_refused() -> None:
    with expect_error(ConfigError, "mycloud", "openstack_prep.connect(NAME)"):
        sync_address_pairs("mycloud", Sync(stack="one", addresses=["10.0.0.1"]))  # type: ignore[arg-type]
