from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.base.errors import SpecError
from openstack_prep.base.secret import Secret
from openstack_prep.core.model import Resource
from openstack_prep.resources.compute.flavor import Flavor
from openstack_prep.resources.compute.keypair import Keypair
from openstack_prep.resources.compute.quota import Quota, VolumeTypeQuota
from openstack_prep.resources.identity.project import Domain, Project
from openstack_prep.resources.identity.role_assignment import RoleAssignment
from openstack_prep.resources.identity.user import User
from openstack_prep.resources.image.image import Image
from openstack_prep.resources.image.image_fields import Rhcos
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.router import Router
from openstack_prep.resources.network.security_group import SecurityGroup
from openstack_prep.resources.network.security_group_rule import SecurityGroupRule
from openstack_prep.resources.network.subnet import Route, Subnet
from openstack_prep.resources.orchestration.stack import Stack
from openstack_prep.spec import Spec, load_spec
from openstack_prep.spec.python import spec_from
from tests.unit.texts import Wording

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB"


def read(resource: Resource) -> Any:
    """Return a resource as a verb reads it."""
    return spec_from([resource], "lab").resources[0]


def mistakes(wanted: Any, name: str | None = "lab") -> list[str]:
    with pytest.raises(SpecError) as caught:
        spec_from(wanted, name)
    return [str(each) for each in caught.value.mistakes]


# --- what YAML accepts ----------------------------------------------------------------------


def loose(kind: Any, **fields: Any) -> Any:
    """Make a resource with values of other types than its fields are declared with, as any script may."""
    return kind(**fields)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (loose(Quota, ram="64GiB", project="p"), Quota(ram=65536, project="p")),
        (
            loose(Quota, volume_types={"ssd": {"gigabytes": "1TiB"}}),
            Quota(volume_types={"ssd": VolumeTypeQuota(gigabytes=1024)}),
        ),
        (loose(Router, name="r", interfaces=["sub"]), Router(name="r", interfaces=("sub",))),
        (
            loose(Subnet, name="s", host_routes=[{"destination": "192.0.2.0/24", "nexthop": "10.0.0.1"}]),
            Subnet(name="s", host_routes=(Route(destination="192.0.2.0/24", nexthop="10.0.0.1"),)),
        ),
        (
            loose(Subnet, name="s", dns_nameservers=[ipaddress.ip_address("2001:DB8::1")]),
            Subnet(name="s", dns_nameservers=("2001:db8::1",)),
        ),
        (
            loose(SecurityGroup, name="g", rules=[{"protocol": "TCP", "ports": 443}]),
            SecurityGroup(name="g", rules=(SecurityGroupRule(protocol="tcp", ports="443"),)),
        ),
        (
            loose(SecurityGroup, name="g", rules=[loose(SecurityGroupRule, protocol=6, ports=443)]),
            SecurityGroup(name="g", rules=(SecurityGroupRule(protocol="tcp", ports="443"),)),
        ),
        (
            loose(Image, name="i", rhcos={"stream": "https://h/s.json"}),
            Image(name="i", rhcos=Rhcos(stream="https://h/s.json")),
        ),
        (
            loose(Image, name="i", properties={"hw_vif_multiqueue_enabled": True, 1: 2}),
            Image(name="i", properties={"hw_vif_multiqueue_enabled": "true", "1": "2"}),
        ),
    ],
)
def test_what_yaml_accepts_python_accepts(given: Resource, meant: Resource) -> None:
    assert read(given) == meant
    assert read(read(given)) == meant


def test_paths_are_relative_to_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "key.pub").write_text(f"{KEY} me@here\n")
    assert read(loose(Keypair, name="k", public_key={"file": "key.pub"})).public_key == f"{KEY} me@here"
    assert read(loose(Image, name="i", source=Path("disk.qcow2"))).source == str(tmp_path / "disk.qcow2")


def test_none_is_what_was_not_given_and_null_in_yaml_is_no_gateway(tmp_path: Path) -> None:
    assert read(Subnet(name="s", gateway_ip=None)).gateway_ip is None
    assert read(Subnet(name="s", gateway_ip=False)).gateway_ip is False
    assert read(Subnet(name="s", gateway_ip="none")).gateway_ip is False
    path = tmp_path / "spec.yaml"
    path.write_text("name: lab\nsubnets:\n- {name: a, gateway_ip: null}\n- {name: b}\n- {name: c, gateway_ip: false}\n")
    gateways = [each.gateway_ip for each in load_spec(path).resources if isinstance(each, Subnet)]
    assert gateways == [False, None, False]


def test_secrets_stay_secrets(tmp_path: Path) -> None:
    known = Secret("hunter2")
    assert read(User(name="u", password=known)).password is known
    (tmp_path / "word").write_text("from-a-file\n")
    assert read(loose(User, name="u", password={"file": str(tmp_path / "word")})).password.reveal() == "from-a-file"
    spec = spec_from([loose(User, name="u", password="plain")], "lab")
    assert spec.resources[0].password.reveal() == "plain"  # type: ignore[attr-defined]
    assert "plain text" in spec.warnings[0]


# --- what is wrong --------------------------------------------------------------------------


def test_every_mistake_is_told_at_once_with_resource_and_field() -> None:
    found = mistakes(
        [
            loose(Network, name="net", mtu="big", description=7),
            loose(Subnet, name="sub", cidr="10.0.0.0/33", host_routes=[{"destinaton": "10.1.0.0/24"}]),
            loose(Router, name="r", interfaces="sub"),
        ]
    )
    assert [each.split(": ")[:2] for each in found] == [
        ["network/net", "description"],
        ["network/net", "mtu"],
        ["subnet/sub", "cidr"],
        ["subnet/sub", "host_routes[0].destination"],
        ["subnet/sub", "host_routes[0].nexthop"],
        ["subnet/sub", "host_routes[0].destinaton"],
        ["router/r", "interfaces"],
    ]


@pytest.mark.parametrize(
    ("resource", "said"),
    [
        (loose(Network, name="net", mtu="big"), 'network/net: mtu: "big"'),
        (loose(Network, name=5), "network/5: name: 5"),
        (loose(Network, name=None), "network/None: name: null"),
        (loose(Network, name=object), "name: a value of type type is not allowed"),
        (loose(Network, name="n", mtu=object()), "network/n: mtu: a value of type object is not allowed"),
        (loose(Network, name="n", description=b"x"), "network/n: description: a value of type bytes is not allowed"),
        (
            loose(Network, name="n", description="\ud800"),
            "network/n: description: contains U+D800, which is not a character",
        ),
        (loose(Network, name="n", project_domain=None), "network/n: project_domain: null"),
        (loose(Network, name="n", description=Secret("hunter2")), "network/n: description: a mapping"),
        (
            loose(Stack, name="s", template="x.yaml", parameters={"a": [Secret("hunter2")]}),
            "stack/s: parameters.a[0]: is a Secret",
        ),
        (loose(Image, name="i", properties={(1, 2): 3}), "image/i: properties: a key of type tuple"),
        (loose(Image, name="i", properties=5), "image/i: properties: 5"),
        (loose(RoleAssignment, role="r"), "needs exactly one of user and group; set one"),
        (
            loose(SecurityGroup, name="g", rules=[SecurityGroupRule(icmp_type=8)]),
            "security_group/g: rules[0]: icmp_type only applies to protocol icmp; set protocol: icmp",
        ),
        (Domain(name="corp"), "domain/corp: is a kind that other resources only refer to"),
        (loose(Quota, volume_types={"ssd": {"gigabits": 1}}), "gigabits: unknown key; did you mean gigabytes?"),
    ],
)
def test_a_wrong_value_is_named(resource: Resource, said: str) -> None:
    (found,) = mistakes([resource])
    assert said in found
    assert "hunter2" not in found


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("spec.yaml", "'spec.yaml' is a str, not a spec; read a file with load_spec(path)"),
        ("name: x\nusers: []\n", "spec: a text is a str, not a spec; read a file with load_spec(path)"),
        (Path("spec.yaml"), "not a spec; read a file with load_spec(path)"),
        ({"networks": []}, "a dict is neither a Spec nor a list of resources"),
        (None, "a NoneType is neither"),
        (5, "a int is neither"),
        (Network(name="n"), "network/n is one resource, not a list"),
        ([5], "resources[0]: int is not a resource; remove it from the list"),
        ([Network], "resources[0]: Network is not a resource; create an instance"),
        ([[Network(name="n")]], "resources[0]: list is not a resource"),
    ],
)
def test_what_is_no_list_of_resources(wanted: Any, said: str) -> None:
    (found,) = mistakes(wanted)
    assert said in found


def test_a_spec_made_in_python_is_read_too_and_one_of_yaml_only_once(tmp_path: Path) -> None:
    made = spec_from(Spec("lab", (loose(Quota, ram="1GiB"),)))
    assert made.resources == (Quota(ram=1024),)
    assert spec_from(made) is made
    path = tmp_path / "spec.yaml"
    path.write_text("name: lab\n")
    loaded = load_spec(path)
    assert spec_from(loaded) is loaded


# --- the name -------------------------------------------------------------------------------


def test_the_name_is_that_of_the_one_project_wherever_it_stands() -> None:
    flavor, lab = Flavor(name="m"), Project(name="lab")
    assert spec_from([flavor, lab]).name == spec_from([lab, flavor]).name == "lab"
    assert spec_from([flavor, lab], "mine").name == "mine"
    assert spec_from(each for each in (flavor, lab)).resources == (lab, flavor)  # the order of the sections


@pytest.mark.parametrize("resources", [[Flavor(name="m")], [Project(name="a"), Project(name="b")]])
def test_without_a_project_the_name_must_be_given(resources: list[Resource]) -> None:
    (found,) = mistakes(resources, None)
    assert f'name="{resources[0].name}"' in found


@pytest.mark.parametrize("name", ["", 5, "x" * 256])
def test_a_name_that_is_none(name: Any, wording: Wording) -> None:
    wording(mistakes([Flavor(name="m")], name)[0])


def test_a_spec_has_a_name_of_its_own(wording: Wording) -> None:
    wording(mistakes(Spec("lab", ()), "other")[0])
    assert spec_from(Spec("lab", ()), "lab").name == "lab"
