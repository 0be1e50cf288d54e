from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest

from openstack_prep.base.errors import ConfigError
from openstack_prep.cli.main import main
from openstack_prep.core.model import Action, Step
from openstack_prep.core.plan import Plan
from openstack_prep.pictures.graph import Graph
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.router import Router
from openstack_prep.resources.network.subnet import Subnet

NET = Network(name='nodes "a]\\')
SUBNET = Subnet(name="v4", network=NET.name, cidr="10.0.0.0/24")
ROUTER = Router(name="r", interfaces=("v4",))
OLD = Network(name="old\x1b[31m\n#quot;")
STORED = Path(__file__).parent / "data"


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


@pytest.mark.parametrize("form", ["mermaid", "dot"])
def test_a_plan_has_colours_and_what_it_deletes(form: str, plan: Plan) -> None:
    drawn = getattr(Graph.of([NET, SUBNET, ROUTER], plan), form)()
    assert drawn + "\n" == (STORED / f"graph.{form}").read_text()


def test_names_cannot_leave_their_label(plan: Plan) -> None:
    graph = Graph.of([NET, SUBNET, ROUTER], plan)
    labels = re.findall(r'\["([^"\]]*)"\]', graph.mermaid())
    assert len(labels) == 4
    assert "\x1b" not in graph.mermaid() + graph.dot()
    assert len(re.findall(r'label="(?:[^"\\]|\\.)*"', graph.dot())) == 4


def test_graphviz_draws_from_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: Plan) -> None:
    program = tmp_path / "dot"
    program.write_text('#!/bin/sh\necho "<svg>$1"; head -n 1\n')
    program.chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert Graph.of([NET]).svg() == "<svg>-Tsvg\ndigraph spec {"
    program.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(ConfigError, match="CalledProcessError"):
        Graph.of([NET]).svg()
    program.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="Graphviz is not installed"):
        Graph.of([NET]).svg()


def test_the_command_knows_its_own_forms_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text("name: lab\nnetworks: [{name: n}]\nsubnets: [{name: s, network: n, cidr: 10.0.0.0/24}]\n")
    assert main(["graph", str(spec)]) == 0
    assert 'r0["network/n"]' in capsys.readouterr().out
    assert main(["graph", "--format", "dot", str(spec)]) == 0
    assert "r1 -> r0" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main(["--format", "json", "graph", str(spec)])
    assert ended.value.code == 2
