from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from openstack_prep.cli.main import main
from openstack_prep.core.model import Action, Step
from openstack_prep.core.plan import Plan
from openstack_prep.pictures.graph import Graph, draw
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.router import Router
from openstack_prep.resources.network.subnet import Subnet

NET = Network(name='nodes "a]\\')
SUBNET = Subnet(name="v4", network=NET.name, cidr="10.0.0.0/24")
ROUTER = Router(name="r", interfaces=("v4",))
OLD = Network(name="old\x1b[31m\n#quot;")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def plan() -> Plan:
    steps = [
        Step(resource=NET, action=Action.KEEP),
        Step(resource=SUBNET, action=Action.REPLACE),
        Step(resource=ROUTER, action=Action.UPDATE),
        Step(resource=OLD, action=Action.DELETE),
    ]
    return Plan(spec="lab", purpose="apply", steps=tuple(steps))


def test_each_needs_what_it_refers_to_and_no_more() -> None:
    graph = Graph.of([ROUTER, SUBNET, NET])
    named = {(graph.names[one].partition("/")[0], graph.names[other].partition("/")[0]) for one, other in graph.needs}
    assert named == {("router", "subnet"), ("subnet", "network")}
    assert graph.actions == {}


def test_kinds_need_one_another_through_others(plan: Plan) -> None:
    graph = Graph.of([ROUTER, SUBNET, NET], plan, lambda key: key.kind in ("router", "network"))
    assert [each.partition("/")[0] for each in graph.names] == ["network", "router", "network"]
    assert graph.needs == ((1, 0),)
    assert graph.actions == {0: Action.KEEP, 1: Action.UPDATE, 2: Action.DELETE}


def test_the_command_shows_a_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "spec.yaml"
    nets = "networks: [{name: n}, {name: m}]\nsubnets: [{name: s, network: n, cidr: 10.0.0.0/24}]\n"
    spec.write_text(f"name: lab\n{nets}routers: [{{name: r, interfaces: [s]}}]\n")

    def shown(*words: str) -> list[str]:
        assert main(["graph", *words, str(spec)]) == 0
        return re.findall(r'\["([^"]*)"\]|(r\d --> r\d)', capsys.readouterr().out)

    assert {one or other for one, other in shown("--target", "subnet/s")} == {"network/n", "subnet/s", "r1 --> r0"}
    assert [one or other for one, other in shown("--kind", "network", "--kind", "router")] == [
        *("network/n", "network/m", "router/r", "r2 --> r0"),
    ]
    assert main(["graph", "--kind", "nonsense", str(spec)]) == 2
    assert main(["graph", "--target", "network/x", str(spec)]) == 2


@pytest.mark.parametrize("form", ["mermaid", "dot", "svg"])
def test_a_plan_has_colours_and_what_it_deletes(form: str, plan: Plan, stored: Callable[[str, str], None]) -> None:
    graph = Graph.of([NET, SUBNET, ROUTER], plan)
    forms = {"mermaid": graph.mermaid, "dot": graph.dot, "svg": lambda: draw(graph, "graph", embedded=True)}
    stored(f"../pictures/data/graph.{form}", forms[form]())


def test_names_cannot_leave_their_label(plan: Plan) -> None:
    graph = Graph.of([NET, SUBNET, ROUTER], plan)
    labels = re.findall(r'\["([^"\]]*)"\]', graph.mermaid())
    assert len(labels) == 4
    assert "\x1b" not in graph.mermaid() + graph.dot()
    assert len(re.findall(r'label="(?:[^"\\]|\\.)*"', graph.dot())) == 4
    root = ElementTree.fromstring(draw(graph, "</title><script>"))
    assert {each.tag.rpartition("}")[2] for each in root.iter()} == {
        *("svg", "title", "style", "rect", "g", "path", "text"),
    }
    assert "old\\x1b[31m\\n#quot;" in [each.text for each in root.iter(f"{SVG}text")]


def test_the_command_knows_its_own_forms_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text("name: lab\nnetworks: [{name: n}]\nsubnets: [{name: s, network: n, cidr: 10.0.0.0/24}]\n")
    assert main(["graph", str(spec)]) == 0
    assert 'r0["network/n"]' in capsys.readouterr().out
    assert main(["graph", "--format", "dot", str(spec)]) == 0
    assert "r1 -> r0" in capsys.readouterr().out
    assert main(["graph", "--format", "svg", str(spec)]) == 0
    assert capsys.readouterr().out.startswith("<svg ")
    with pytest.raises(SystemExit) as ended:
        main(["--format", "json", "graph", str(spec)])
    assert ended.value.code == 2
