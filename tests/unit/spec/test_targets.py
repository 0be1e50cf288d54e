from __future__ import annotations

from pathlib import Path

import pytest

from openstack_prep import Flavor, Image, Network, Project, SecurityGroup, SecurityGroupRule
from openstack_prep.base.errors import ConfigError
from openstack_prep.base.key import labels
from openstack_prep.spec import Spec, load_spec
from openstack_prep.spec.python import spec_from
from openstack_prep.spec.targets import limit_to, limit_to_dependents

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


@pytest.mark.parametrize(
    ("target", "near"),
    [
        ("flavor/smal", "mean flavor/small?"),
        ("subnet/net", "mean network/net?"),
        ("netwrok/other", "mean network/other?"),
        ("web", "mean security_group/web?"),
        ("network/database", "has network/net, network/other"),
        ("network.net", "mean network/net?"),
        ("openstack_networking_network_v2.other", "mean network/other?"),
        ("server/vm", "KIND/NAME"),
    ],
)
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


# --- what goes with the targets of a destroy ---------------------------------------------

EXAMPLES = sorted((Path(__file__).parents[3] / "install_configs").glob("*.yaml"))
OF_USERS = {"user", "role_assignment", "keypair", "application_credential", "clouds_entry", "env_file"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the SSH key that examples take from the home directory."""
    (tmp_path / ".ssh").mkdir()
    key = "AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB"
    (tmp_path / ".ssh" / "id_ed25519.pub").write_text(f"ssh-ed25519 {key} me\n")
    monkeypatch.setenv("HOME", str(tmp_path))


def dependents(spec: Spec, *targets: str) -> set[str]:
    return names(limit_to_dependents(spec, targets)) - {*targets}


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_only_what_is_of_a_user_goes_with_it_and_nothing_with_a_quota(example: Path) -> None:
    """A running server needs no flavor, no image and no key pair."""
    spec = load_spec(example)
    by_kind: dict[str, list[str]] = {}
    for key, name in labels(each.key for each in spec.resources).items():
        by_kind.setdefault(key.kind, []).append(name)
    for kind in by_kind.keys() & {"quota", "user", "role_assignment", "flavor", "image", "keypair"}:
        found = {each.key.kind for each in limit_to_dependents(spec, by_kind[kind]).chosen}
        assert found <= (OF_USERS if kind in ("user", "role_assignment") else {kind})


def test_a_network_takes_its_subnets_along_and_a_role_nothing(spec: Spec) -> None:
    assert dependents(spec, "network/net") == {"subnet/sub"}
    assert dependents(spec, "user/lab-user") == {"role_assignment/user:lab-user@project:lab-project/member"}
    assert dependents(spec, "role_assignment/user:lab-user@project:lab-project/member") == set()


def test_what_others_may_use_stays_when_one_of_them_goes() -> None:
    guests = ("guest",)
    spec = spec_from(
        [
            *(Project(name="mine"), Project(name="guest")),
            Flavor(name="small", vcpus=1, ram=1024, disk=1, is_public=False, access=("mine", "guest")),
            Network(name="net", project="mine", shared_with=guests),
            Image(name="os", project="mine", shared_with=guests),
            SecurityGroup(name="web", project="mine"),
            SecurityGroup(
                name="db", project="mine", rules=(SecurityGroupRule(direction="ingress", remote_group="web"),)
            ),
        ],
        name="lab",
    )
    assert dependents(spec, "project/guest") == set()
    assert dependents(spec, "project/mine") == {"network/net", "image/os", "security_group/web", "security_group/db"}
    assert dependents(spec, "security_group/web") == set()


@pytest.mark.usefixtures("home")
def test_a_stack_goes_with_what_its_servers_hold() -> None:
    (example,) = (each for each in EXAMPLES if each.stem == "rke-mesh")
    spec = load_spec(example)
    first = {"stack/cluster1", "rke_cluster/cluster1", "address_pairs/cluster1"}
    for target in ("network/nodes1", "subnet/nodes1", "security_group/cluster1"):
        found = dependents(spec, target)
        assert first <= found, target
        assert not any("cluster2" in name for name in found), target
    assert dependents(spec, "stack/cluster1") == first - {"stack/cluster1"}
