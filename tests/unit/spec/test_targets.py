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
    assert names(limit_to(spec, ["flavor/small"])) == {"flavor/small"}
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
