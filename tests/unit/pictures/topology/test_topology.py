from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from ipaddress import ip_address
from itertools import combinations, pairwise, product
from pathlib import Path
from xml.etree import ElementTree

import pytest
import requests_mock

from openstack_prep.base.errors import NotFound
from openstack_prep.cli.main import main
from openstack_prep.cloud.connection import Cloud
from openstack_prep.pictures import svg
from openstack_prep.pictures.topology import drawing, elements, sources
from openstack_prep.pictures.topology import project_topology as reading
from openstack_prep.pictures.topology.elements import (
    Interface,
    Server,
    Topology,
    TopologyFloatingIP,
    TopologyNetwork,
    TopologyPort,
    TopologyRouter,
    TopologySubnet,
    joined,
)
from openstack_prep.pictures.topology.project_topology import topology_of
from openstack_prep.pictures.topology.sources import with_declared
from openstack_prep.resources.addresses.floating_ip import FloatingIP
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.network.subnet import Subnet
from openstack_prep.spec import Spec
from openstack_prep.spec.spec import load_spec
from tests.unit.conftest import ENDPOINTS, connection, failure, sent
from tests.unit.openshift.install_config.parsable import CERTIFICATE
from tests.unit.pictures.topology.lists import FOREIGN, mesh, port, server
from tests.unit.texts import Wording, contains

HERE = "../pictures/data"
SVG = "{http://www.w3.org/2000/svg}"
SPECS = Path(__file__).parents[4] / "install_configs"
NAME = "</text><script>x</script>\n\u202e\"'&"


@pytest.fixture
def two_clusters() -> Topology:
    return topology_of(mesh().lists, "project mesh")


@pytest.fixture
def shipped(tmp_path: Path) -> Spec:
    key = tmp_path / "key.pub"
    key.write_text("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB lab\n")
    path = tmp_path / "mesh.yaml"
    path.write_text((SPECS / "rke2-mesh.yaml").read_text().replace("~/.ssh/id_ed25519.pub", str(key)))
    return load_spec(path)


def test_two_meshed_clusters(two_clusters: Topology, stored: Callable[[str, str], None]) -> None:
    stored(f"{HERE}/mesh.svg", drawing.draw(two_clusters, embedded=True))
    stored(f"{HERE}/mesh.mermaid", elements.mermaid(two_clusters))
    stored(f"{HERE}/mesh.dot", elements.dot(two_clusters))
    stored(f"{HERE}/mesh.json", json.dumps(two_clusters.data(), indent=1))


def test_they_fit_one_page(two_clusters: Topology) -> None:
    root = ElementTree.fromstring(drawing.draw(two_clusters))
    width, height = (float(root.attrib[each]) for each in ("width", "height"))
    # A4, landscape, with margins of 10 mm, in points; the smallest letters have 10.5 units
    assert min(277 / 25.4 * 72 / width, 190 / 25.4 * 72 / height) * 10.5 > 6


def test_an_address_belongs_to_the_cluster_that_may_use_it(two_clusters: Topology) -> None:
    found = {each.name: (each.cluster, each.addresses, each.pool) for each in two_clusters.virtual_addresses}
    assert found["cluster1-api"] == ("cluster1", ("10.1.0.5",), False)
    assert found["mesh2"] == ("cluster2", ("10.2.0.208-10.2.0.209",), True)
    assert {each.address: each.target for each in two_clusters.floating_ips} == {
        "192.0.2.11": "cluster1-api",
        "192.0.2.12": "cluster2-api",
    }


def test_an_openshift_cluster_is_known_by_its_tags() -> None:
    tags = {"tags": ["openshiftClusterID=dev-x7k2p"]}
    master = server(1, "", 0, name="dev-x7k2p-master-0", metadata={})
    of_server = {"device_id": master["id"], "device_owner": "compute:nova"}
    ports = [port(1, "dev-x7k2p-master-0", "10.1.0.10", **of_server, **tags), port(1, "other", "10.1.0.99")]
    ports.append(port(1, "dev-x7k2p-api-port", "10.1.0.5", **tags))
    lists = replace(mesh(), servers=[master, server(2, "agent", 0)], ports=ports, floating_ips=[])
    whole = topology_of(lists.lists, "")
    assert [(each.name, each.product) for each in whole.clusters] == [("cluster2", ""), ("dev-x7k2p", "OpenShift")]
    part = whole.of_cluster("dev-x7k2p")
    assert [each.name for each in part.servers] == ["dev-x7k2p-master-0"]
    assert [each.role for each in part.servers] == ["master"]
    assert [each.name for each in part.virtual_addresses] == ["dev-x7k2p-api-port"]
    assert [each.name for each in part.networks] == ["nodes1"]


def test_what_a_spec_declares(shipped: Spec, stored: Callable[[str, str], None]) -> None:
    found = sources.of_declared(shipped)
    assert [(each.name, each.coming) for each in found.clusters] == [
        ("cluster1", "3 servers, 2 agents"),
        ("cluster2", "3 servers, 2 agents"),
    ]
    assert {each.cluster for each in found.virtual_addresses} == {"cluster1", "cluster2"}
    assert not any(each.exists for each in (*found.routers, *found.virtual_addresses))
    stored(f"{HERE}/declared.json", json.dumps(found.data(), indent=1))


def test_what_exists_is_not_declared_again(shipped: Spec, two_clusters: Topology) -> None:
    found = with_declared(two_clusters, shipped.resources, Project(name="mesh"))
    assert [each.name for each in found.networks] == [each.name for each in two_clusters.networks]
    assert [each.name for each in found.routers] == ["mesh"]
    assert [(each.name, each.product, each.coming) for each in found.clusters] == [
        ("cluster1", "RKE2", ""),
        ("cluster2", "RKE2", ""),
    ]
    new = {each.name for each in found.virtual_addresses} - {each.name for each in two_clusters.virtual_addresses}
    assert new == {"cluster1", "cluster2"}  # the pools without ports


def test_networks_may_have_the_same_name(shipped: Spec) -> None:
    lists = mesh()
    same = [each if each["id"] == "e" else each | {"name": "nodes1"} for each in lists.networks]
    found = with_declared(topology_of(replace(lists, networks=same).lists, ""), shipped.resources, Project(name="mesh"))
    assert [each.key for each in found.networks] == ["e", "n1", "n2", "network/nodes2"]
    drawn = drawing.draw(found)
    assert all(each.name in drawn for each in found.servers)


def test_a_subnet_may_be_declared_by_its_name_alone(two_clusters: Topology) -> None:
    declared = [Subnet(name="v1", enable_dhcp=False), Subnet(name="v3", network="nodes1")]
    assert with_declared(two_clusters, declared, None).networks == two_clusters.networks


def test_a_declared_floating_ip_is_drawn_beside_those_of_others(two_clusters: Topology) -> None:
    there = FloatingIP(name="there", external_network="external", address=ip_address("192.0.2.11"))
    declared = [FloatingIP(name="api", external_network="external"), there]
    found = with_declared(two_clusters, declared, None).floating_ips
    assert [(each.name, each.address) for each in found if not each.exists] == [("api", "")]


def test_what_is_on_no_known_network_is_drawn(shipped: Spec, wording: Wording) -> None:
    existing = topology_of(replace(mesh(), networks=[FOREIGN], routers=[]).lists, "")
    declared = [each for each in shipped.resources if each.kind == "stack"]
    for found in (existing, with_declared(Topology(subject=""), declared, Project(name="mesh"))):
        drawn = drawing.draw(found)
        wording(drawn)
        assert all(each.name in drawn for each in (*found.clusters, *found.servers, *found.virtual_addresses))


def test_texts_have_clusters_to_come(shipped: Spec) -> None:
    found = sources.of_declared(shipped)
    for text, edge in ((elements.mermaid(found), "n0 --- t0"), (elements.dot(found), "n0 -- t0")):
        assert text.count("3 servers") == 2
        assert edge in text


@pytest.mark.parametrize("name", sorted(path.stem for path in SPECS.glob("*.yaml")))
def test_every_shipped_spec_can_be_drawn(name: str, tmp_path: Path, shipped: Spec) -> None:
    path = tmp_path / "spec.yaml"
    text = (SPECS / f"{name}.yaml").read_text()
    path.write_text(text.replace("~/.ssh/id_ed25519.pub", str(tmp_path / "key.pub")))
    shutil.copy(tmp_path / "key.pub", tmp_path / "id_ed25519.pub")
    (tmp_path / "mirror-ca.pem").write_text(CERTIFICATE)
    ElementTree.fromstring(drawing.draw(sources.of_declared(load_spec(path))))


def test_names_of_others_are_text(two_clusters: Topology) -> None:
    hostile = replace(
        two_clusters,
        subject=NAME,
        networks=tuple(replace(each, name=NAME) for each in two_clusters.networks),
        routers=tuple(replace(each, name=NAME) for each in two_clusters.routers),
        servers=tuple(replace(each, name=NAME, role=NAME, cluster=NAME) for each in two_clusters.servers),
        virtual_addresses=tuple(replace(each, name=NAME) for each in two_clusters.virtual_addresses),
        floating_ips=tuple(replace(each, name=NAME, target=NAME) for each in two_clusters.floating_ips),
    )
    drawn = drawing.draw(hostile)
    tags = {each.tag.removeprefix(SVG) for each in ElementTree.fromstring(drawn).iter()}
    assert tags == {"svg", "title", "style", "rect", "g", "path", "text", "circle"}
    for text in (drawn, elements.mermaid(hostile), elements.dot(hostile)):
        assert "\u202e" not in text
    node, edge = r'\s*(subgraph )?\w+[\[({/]+"[^"]*"[\])}/]+', r'  \w+ ---(\|"[^"]*"\|)? \w+'
    for line in elements.mermaid(hostile).splitlines():
        assert re.fullmatch(f"flowchart TB|  end|{node}|{edge}", line)
    assert all(line.count('"') % 2 == 0 for line in elements.dot(hostile).replace('\\"', "").splitlines())


def place(drawn: str, text: str) -> tuple[float, float]:
    """Return where a text begins."""
    found = [each for each in ElementTree.fromstring(drawn).iter(f"{SVG}text") if text in (each.text or "")]
    return float(found[0].attrib["x"]), float(found[0].attrib["y"])


def test_a_floating_ip_stands_on_its_network_and_networks_begin_new_rows() -> None:
    lists = mesh()
    more = [{"id": f"m{each}", "name": f"more{each}", "project_id": "p"} for each in range(6)]
    other = lists.networks[0] | {"id": "z", "name": "zone"}
    on_other = lists.floating_ips[0] | {"id": "g", "floating_network_id": "z", "floating_ip_address": "198.51.100.7"}
    lists = replace(lists, networks=[*lists.networks, *more, other], floating_ips=[*lists.floating_ips, on_other])
    router = {"id": "q", "name": "second", "external_gateway_info": None, "routes": []}
    interface = port(1, "", "10.9.0.1", device_owner="network:router_interface", device_id="q", network_id="m5")
    lists = replace(lists, routers=[*lists.routers, router], ports=[*lists.ports, interface | {"id": "interface9"}])
    drawn = drawing.draw(topology_of(lists.lists, "wide"))
    assert abs(place(drawn, "198.51.100.7")[0] - place(drawn, "zone")[0]) < 10
    assert place(drawn, "192.0.2.12")[0] < place(drawn, "zone")[0]
    assert place(drawn, "more5")[1] > place(drawn, "more0")[1] >= place(drawn, "nodes1")[1]
    assert abs(place(drawn, "10.9.0.1")[1] - place(drawn, "more5")[1]) < 40


def large(count: int, shared: bool) -> Topology:
    """Return networks and routers with long names, and 30 servers; all routers may join one network."""
    name = "a-name-of-many-words-" * 12
    inner = [
        TopologyNetwork(key=f"n{each}", name=f"{name}{each}", subnets=(TopologySubnet(name="s", cidr="2001:db8::/64"),))
        for each in range(count)
    ]
    outside = [TopologyNetwork(key=f"e{each}", name=f"{name}{each}", external=True) for each in range(1 + count // 5)]
    routers = [
        TopologyRouter(
            key=f"r{each}",
            name=f"{name}{each}",
            gateway=Interface(network=outside[each % len(outside)].key, addresses=("192.0.2.1", "2001:db8:1234::1")),
            interfaces=(Interface(network="n0" if shared else f"n{each}", addresses=("10.0.0.1", "2001:db8::1")),),
        )
        for each in range(count)
    ]
    servers = [
        Server(
            key=f"s{each}",
            name=f"{name}{each}",
            role="agent",
            cluster=name if each % 2 else "",
            ports=(TopologyPort(network=f"n{each % count}", addresses=("10.0.0.2",), floating_ips=("192.0.2.3",)),),
        )
        for each in range(30)
    ]
    floating = [
        TopologyFloatingIP(
            key=f"f{each}", address=f"192.0.2.{each}", network=outside[each % len(outside)].key, name=name
        )
        for each in range(count)
    ]
    return Topology(
        subject=f"project {name}",
        networks=(*outside, *inner),
        routers=tuple(routers),
        servers=tuple(servers),
        floating_ips=tuple(floating),
        unread=("servers", "floating IPs"),
    )


Edges = tuple[float, float, float, float]


def boxes_of(root: ElementTree.Element) -> Iterator[tuple[str, Edges]]:
    """Yield the boxes of a picture with their class: left, upper, right and lower edge."""
    for each in root.iter(f"{SVG}rect"):
        x, y, w, h = (float(each.attrib[name]) for name in ("x", "y", "width", "height"))
        yield each.attrib["class"], (x, y, x + w, y + h)


def texts_of(root: ElementTree.Element) -> Iterator[tuple[str, Edges]]:
    """Yield the texts of a picture with their edges."""
    for each in root.iter(f"{SVG}text"):
        x, y, size = (float(each.attrib[name]) for name in ("x", "y", "font-size"))
        width = svg.width(each.text or "", size) * (0.97 if size == drawing.SMALL else 1)
        left = x - width * {"middle": 0.5, "end": 1.0}.get(each.attrib.get("text-anchor", ""), 0.0)
        yield each.text or "", (left, y - size, left + width, y)


def is_around(outer: Edges, inner: Edges) -> bool:
    left_upper = outer[0] <= inner[0] and outer[1] <= inner[1]
    return left_upper and outer[2] >= inner[2] and outer[3] >= inner[3]


def overlap(one: Edges, other: Edges) -> bool:
    """Whether two boxes share more than an edge, and none of them is around the other."""
    apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
    return not (apart or is_around(one, other) or is_around(other, one))


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("count", range(1, 21))
def test_all_is_inside_the_picture_and_apart(count: int, *, shared: bool) -> None:
    root = ElementTree.fromstring(drawing.draw(large(count, shared), embedded=True))
    w, h = (float(root.attrib[each]) for each in ("width", "height"))
    (_, paper), *boxes = boxes_of(root)
    assert paper == (0, 0, w, h)
    written = [*texts_of(root)]
    assert [each for each in (*boxes, *written) if not is_around(paper, each[1])] == []
    solid = [each for each in boxes if each[0] != "panel"]  # which begins behind the bar of its network
    assert [(one, other) for one, other in combinations(solid, 2) if overlap(one[1], other[1])] == []
    assert [(one, other) for one, other in combinations(written, 2) if overlap(one[1], other[1])] == []


Segment = tuple[tuple[float, float], tuple[float, float]]


def lines_of(root: ElementTree.Element) -> Iterator[list[Segment]]:
    """Yield the straight parts of each line of a router; corners are left out."""
    for each in root.iter(f"{SVG}path"):
        numbers = [tuple(map(float, pair)) for pair in re.findall(r"(-?[\d.]+) (-?[\d.]+)", each.attrib["d"])]
        if each.attrib.get("class") == "wire":
            yield [(one, other) for one, other in pairwise(numbers) if one[0] == other[0] or one[1] == other[1]]


def share(one: Segment, other: Segment) -> bool:
    """Whether two parts run along one another."""
    for across, along in ((0, 1), (1, 0)):
        fixed = {point[across] for point in (*one, *other)}
        (low, high), (first, last) = (sorted(point[along] for point in each) for each in (one, other))
        if max(fixed) - min(fixed) < 2 and min(high, last) - max(low, first) > 1:
            return True
    return False


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("count", range(1, 21))
def test_lines_of_routers_run_apart(count: int, *, shared: bool) -> None:
    lines = [*lines_of(ElementTree.fromstring(drawing.draw(large(count, shared), embedded=True)))]
    assert len(lines) == 2 * count  # a router has a gateway and one interface
    assert [each for each in combinations(lines, 2) if any(share(a, b) for a, b in product(*each))] == []


def test_many_servers_are_counted() -> None:
    servers = [server(1, "agent", index) for index in range(1000)]
    drawn = drawing.draw(topology_of(replace(mesh(), servers=servers, ports=[]).lists, "big"))
    assert "and 970 more servers" in drawn
    assert drawn.count(">cluster1-agent-") == 30


def test_neighbours_are_joined() -> None:
    assert joined(["10.0.0.2", "10.0.0.1", "10.0.0.9", "10.0.0.16/29", "fd00::2", "fd00::1"]) == (
        *("10.0.0.1-10.0.0.2", "10.0.0.9", "10.0.0.16/29", "fd00::1-fd00::2"),
    )


def test_a_project_is_read_by_lists(empty_cloud: requests_mock.Mocker) -> None:
    lists = mesh()
    neutron = f"{ENDPOINTS['network']}/v2.0"
    for plural, rows in (("networks", lists.networks), ("subnets", lists.subnets), ("routers", lists.routers)):
        empty_cloud.get(f"{neutron}/{plural}", json={plural: rows})
    empty_cloud.get(f"{neutron}/ports", json={"ports": lists.ports})
    empty_cloud.get(f"{neutron}/floatingips", json={"floatingips": lists.floating_ips})
    empty_cloud.get(f"{ENDPOINTS['compute']}/servers/detail", **failure(403))
    found = reading.read(Cloud(connection()).authenticate(), "p")
    assert found.unread == ("servers",)
    asked = [each.partition("?")[0] for each in sent(empty_cloud)]
    assert sorted(asked) == [
        *("GET /v2.0/floatingips", "GET /v2.0/networks", "GET /v2.0/ports", "GET /v2.0/routers", "GET /v2.0/subnets"),
        "GET /v2.1/servers/detail",
    ]
    drawn = drawing.draw(topology_of(found, "project p"))
    assert contains(drawn, "readable", "servers")


def test_a_project_that_does_not_exist(empty_cloud: requests_mock.Mocker, wording: Wording) -> None:
    with pytest.raises(NotFound) as caught:
        sources.of_project(Cloud(connection()), Project(name="none"))
    wording(caught.value)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("topology spec.yaml --project p", "SPEC and --project are given"),
        ("topology --offline --project p", "--offline only applies to a SPEC"),
    ],
)
def test_one_thing_at_a_time(line: str, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == 2
    assert what in capsys.readouterr().err
