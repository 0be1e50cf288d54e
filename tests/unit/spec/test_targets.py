from __future__ import annotations

from pathlib import Path

import pytest

from openstack_prep.base.errors import ConfigError
from openstack_prep.spec import Spec, load_spec
from openstack_prep.spec.targets import limit_to

TEXT = """\
name: lab
project: {name: lab-project}
users: [{name: lab-user, password: {generate: password}}]
role_assignments: [{user: lab-user, role: member}]
flavors: [{name: small, vcpus: 1, ram: 1GiB, disk: 1}, {name: large, vcpus: 2, ram: 2GiB, disk: 2}]
networks: [{name: net}, {name: other}]
subnets: [{name: sub, network: net, cidr: 10.0.0.0/24}]
security_groups: [{name: web, rules: [{direction: ingress}]}]
"""


@pytest.fixture
def spec(tmp_path: Path) -> Spec:
    path = tmp_path / "spec.yaml"
    path.write_text(TEXT)
    return load_spec(path)


def names(spec: Spec) -> set[str]:
    return {str(each.key) for each in spec.chosen}


ACCESS = {"project/lab-project", "user/lab-user", "role_assignment/user:lab-user@project:lab-project/member"}


def test_a_target_brings_what_it_needs_and_nothing_else(spec: Spec) -> None:
    """The project always belongs to it: the lease is stored there, and ownership tags name it."""
    assert names(limit_to(spec, ["flavor/small"])) == {"flavor/small", "project/lab-project"}
    assert names(limit_to(spec, ["subnet/sub"])) == {"subnet/sub", "network/net", *ACCESS}
    assert names(limit_to(spec, ["flavor/small", "network/other"])) == {"flavor/small", "network/other", *ACCESS}


def test_a_target_brings_what_its_parts_need(spec: Spec) -> None:
    assert names(limit_to(spec, ["security_group/web"])) == {"security_group/web", *ACCESS}


def test_what_is_limited_is_not_the_whole_spec(spec: Spec) -> None:
    assert not limit_to(spec, ["flavor/small"]).is_whole


@pytest.mark.parametrize(("target", "near"), [("flavor/smal", "flavor/small"), ("subnet/net", "network/net")])
def test_an_unknown_target_names_the_nearest(spec: Spec, target: str, near: str) -> None:
    with pytest.raises(ConfigError) as caught:
        limit_to(spec, ["flavor/large", target])
    assert caught.value.exit_code == 2
    assert target in str(caught.value)
    assert near in str(caught.value)


def test_contradictions_elsewhere_are_left_to_the_plan_which_knows_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    address = "{name: NAME, external_network: external, address: 192.0.2.9}"
    twins = "".join(f"  - {address.replace('NAME', name)}\n" for name in "ab")
    path.write_text(f"{TEXT}floating_ips:\n{twins}")
    assert "flavor/small" in names(limit_to(load_spec(path), ["flavor/small"]))


def test_a_floating_ip_brings_no_router_and_no_other_floating_ip(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(
        "name: lab\nproject: {name: lab}\n"
        "routers: [{name: gw, external_network: external, external_fixed_ips: [192.0.2.2]}]\n"
        "floating_ips:\n"
        "  - {name: a, external_network: external, address: 192.0.2.9}\n"
        "  - {name: b, external_network: external}\n"
    )
    assert names(limit_to(load_spec(path), ["floating_ip/b"])) == {"project/lab", "floating_ip/b"}
