"""What resources take from the rest of their spec is fields: no copy loses it, and no spec can give it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path

import pytest

from openstack_prep import extensions
from openstack_prep.base.errors import ExtensionError, SpecError
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Context, FromContext, Key, OwnershipTag, Resource
from openstack_prep.core.resource import followed_keys
from openstack_prep.exposures.exposed_cluster import ExposedCluster
from openstack_prep.exposures.exposure import Exposure
from openstack_prep.exposures.requirements import ExposedRecordset
from openstack_prep.extensions import Extension
from openstack_prep.kubernetes.cluster.rke_cluster import RkeCluster
from openstack_prep.resources.addresses.address_pairs import AddressPairs
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.addresses.floating_ip import FloatingIP
from openstack_prep.resources.compute.flavor import Flavor
from openstack_prep.resources.dns.recordset import Recordset
from openstack_prep.resources.image.image import Image
from openstack_prep.resources.image.image_fields import Rhcos
from openstack_prep.resources.network.declared_port import Port
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.security_group import SecurityGroup
from openstack_prep.resources.network.security_group_rule import SecurityGroupRule
from openstack_prep.resources.orchestration.stack import Stack
from openstack_prep.spec import Spec, load_spec
from openstack_prep.spec.python import spec_from
from openstack_prep.spec.resolution import list_warnings, refuse_mistakes, resolve_spec

EXAMPLES = sorted((Path(__file__).parents[3] / "install_configs").glob("*.yaml"))
EXAMPLES.append(Path(__file__).with_name("recordsets.yaml"))
KNOWING = (
    *(AddressPairs, AddressPool, ExposedCluster, ExposedRecordset, Exposure),
    *(RkeCluster, Stack, FloatingIP, Port, Recordset),
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the SSH key that examples take from the home directory."""
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_ed25519.pub").write_text(
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB me\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path))


def plan_of(resource: Resource) -> tuple[object, ...]:
    """Return all that a plan asks a resource before it is looked for."""
    references = {each.key for each in resource.references()}
    return resource.key, resource.desired(), references, set(resource.needs()), set(followed_keys(resource))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_a_copy_of_what_was_resolved_has_the_same_plan(example: Path, run: CloudRun) -> None:
    resources = resolve_spec(load_spec(example), run.admin, for_apply=False).resources
    for each in resources:
        copy = replace(each)
        assert copy == each
        assert plan_of(copy) == plan_of(each)


def test_warnings_have_the_place_of_their_resource(run: CloudRun) -> None:
    """They are the same before and after the resources are resolved, as validate and a plan see them."""
    (example,) = (each for each in EXAMPLES if each.stem == "exposures-service-host")
    spec = load_spec(example)
    found, cluster = list_warnings(spec), Key("exposed_cluster", "okd")
    assert [each.startswith(f"{spec.places[cluster]}: {cluster}: kubeinit: ") for each in found] == [True]
    assert list_warnings(resolve_spec(spec, run.admin, for_apply=False)) == found


def test_the_examples_have_every_kind_that_takes_fields_from_others() -> None:
    kinds = {type(each) for example in EXAMPLES for each in load_spec(example).resources}
    assert kinds >= set(KNOWING)


def _taken(kind: type[Resource]) -> set[str]:
    """Return the fields that a kind takes from the rest of its spec, or a scan from the cloud."""
    return {each.name for each in fields(kind) if isinstance(each.default, FromContext)}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_what_was_resolved_stays_so(example: Path, run: CloudRun) -> None:
    """A plan is made again from what the first one resolved."""
    once = resolve_spec(load_spec(example), run.admin, for_apply=False)
    assert resolve_spec(once, run.admin, for_apply=False) == once


@pytest.mark.parametrize("kind", KNOWING)
def test_a_spec_cannot_give_what_is_taken_from_others(kind: type[Resource], tmp_path: Path) -> None:
    names = _taken(kind)
    section = {"stack": "stacks", "address_pairs": "address_pairs"}.get(kind.kind, f"{kind.kind}s")
    assert names
    for taken in names:
        (tmp_path / "spec.yaml").write_text(f"name: x\n{section}:\n- {taken}: {{}}\n")
        with pytest.raises(SpecError) as caught:
            load_spec(tmp_path / "spec.yaml")
        assert [each.where for each in caught.value.mistakes if "unknown key" in each.what] != []


def resolved(spec: Iterable[Resource], run: CloudRun, *, for_apply: bool = False) -> Spec:
    return resolve_spec(Spec("lab", tuple(spec)), run.admin, for_apply=for_apply)


def test_a_stack_waits_for_rules_also(run: CloudRun, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("heat_template_version: 2018-08-31\n")
    stack = Stack(name="a", template=str(tmp_path / "a.yaml"))
    rule = SecurityGroupRule(direction="ingress")
    spec = resolved([SecurityGroup(name="web", rules=(rule,)), Network(name="net"), stack], run)
    assert [each.kind for each in spec.resources] == ["security_group", "security_group_rules", "network", "stack"]
    before = {Key("security_group", "web"), Key("security_group_rules", "web"), Key("network", "net")}
    assert before <= set(spec.resources[-1].needs())


def test_parts_stand_where_the_whole_does_and_are_chosen_with_it(run: CloudRun) -> None:
    group = SecurityGroup(name="web", rules=())
    spec = Spec("lab", (group, Network(name="net")), places={group.key: "lab.yaml:3"}).limited_to("security_group")
    spec = resolve_spec(spec, run.admin, for_apply=False)
    assert [each.kind for each in spec.chosen] == ["security_group", "security_group_rules"]
    assert spec.places[Key("security_group_rules", "web")] == "lab.yaml:3"


def test_all_contradictions_are_told_at_once(run: CloudRun) -> None:
    twins = [FloatingIP(name=name, external_network="ext", address="192.0.2.1") for name in "ab"]
    pairs = [AddressPairs(name=name, ports=("p",), pools=("gone",)) for name in "ab"]
    with pytest.raises(SpecError) as caught:
        resolved([*twins, *pairs], run)
    assert [each.where for each in caught.value.mistakes] == ["floating_ip/b", "address_pairs/a", "address_pairs/b"]


def test_metadata_is_read_for_an_apply_of_what_is_chosen_alone(run: CloudRun, tmp_path: Path) -> None:
    image = Image(name="rhcos", rhcos=Rhcos(stream=str(tmp_path / "gone.json")))
    assert resolved([image], run).unread == ()
    refused = resolved([image], run, for_apply=True)
    assert [each.where for each in refused.unread] == ["image/rhcos"]
    assert refused.resources == (image,)
    others = Spec("lab", (image, Network(name="net"))).limited_to("network")
    assert resolve_spec(others, run.admin, for_apply=True).unread == ()


def test_a_context_derives_once(run: CloudRun) -> None:
    context, calls = Context(resources=(), cloud=run.admin), []
    for _ in range(2):
        assert context.read_once("a", lambda: calls.append(1) or 7) == 7  # type: ignore[func-returns-value]
    assert calls == [1]


SPEC = """\
name: x
project: {name: x}
users:
  - {name: u, password: {generate: u.password}}
  - {name: v, password: {generate: v.password}}
clouds_yaml:
  - {path: clouds.yaml, cloud: x, user: u}
  - {path: clouds.yaml, cloud: y, user: v}
application_credentials:
  - {name: app, clouds_yaml: clouds.yaml, cloud: app}
env_file:
  path: x.env
install_config:
  path: x/install-config.yaml
  cluster_name: x
  base_domain: example.com
  release: "4.20"
  cloud: x
  pull_secret_file: pull-secret.json
  external_network: external
  machines: {flavor: m}
"""


def conflicts(tmp_path: Path, *changes: tuple[str, str]) -> list[tuple[str, str]]:
    """Return the line and the text of each conflict in the spec with some texts replaced."""
    text = SPEC
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    (tmp_path / "spec.yaml").write_text(text)
    spec = load_spec(tmp_path / "spec.yaml")
    try:
        refuse_mistakes(spec)
    except SpecError as error:
        found = error.mistakes
    else:
        found = ()
    assert {each.code for each in found} <= {"spec.contradiction"}
    return [(each.where.split(":")[1], each.what) for each in found]


def test_different_files_and_entries_are_no_conflict(tmp_path: Path) -> None:
    assert conflicts(tmp_path) == []
    assert conflicts(tmp_path, ("v.password", "u.password")) == []  # both users have one password


@pytest.mark.parametrize(
    ("change", "first", "second"),
    [
        (("x.env", "clouds.yaml"), "12", "10"),
        (("x.env", "./x/../clouds.yaml"), "12", "10"),
        (("x.env", "u.password"), "12", "4"),
        (("x.env", "linked.env"), "12", "4"),
        (("x.env", "hard.env"), "12", "4"),
        (("cloud: app", "cloud: y"), "10", "8"),
        (("v.password", "clouds.yaml"), "10", "5"),
        (("x/install-config.yaml", "x.env"), "14", "12"),
        (("v.password", "x/install-config.yaml.kept"), "14", "5"),
    ],
)
def test_one_file_for_two_is_refused_at_both_lines(
    tmp_path: Path, change: tuple[str, str], first: str, second: str
) -> None:
    (tmp_path / "linked.env").symlink_to("u.password")
    (tmp_path / "u.password").touch(mode=0o600)
    (tmp_path / "u.password").write_text("a-password\n")
    os.link(tmp_path / "u.password", tmp_path / "hard.env")
    line, what = next(found for found in conflicts(tmp_path, change) if found[0] in (first, second))
    other = second if line == first else first
    assert f"({tmp_path}/spec.yaml:{other})" in what


def test_a_check_of_kinds_that_a_spec_lacks_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = Extension("box", check="nowhere:check", checked=("project", "network"))
    monkeypatch.setattr(extensions, "installed", lambda: (missing,))
    refuse_mistakes(spec_from([Flavor(name="small")], "lab"))
    with pytest.raises(ExtensionError):
        refuse_mistakes(spec_from([Network(name="net")], "lab"))


@pytest.mark.parametrize("name", ["lab~attached", "lab~", "a~b"])
def test_a_name_does_not_look_like_more_of_an_ownership_tag(name: str, tmp_path: Path) -> None:
    """Other specs would take such a tag for a note, and what has it for resources of nobody."""
    (tmp_path / "spec.yaml").write_text(f"networks: [{{name: n}}]\nname: {name}\n")
    for spec, where in (
        (load_spec(tmp_path / "spec.yaml"), f"{tmp_path / 'spec.yaml'}:2: name"),
        (spec_from([Network(name="n")], name), "name"),
    ):
        with pytest.raises(SpecError) as caught:
            refuse_mistakes(spec)
        (mistake,) = caught.value.mistakes
        assert (mistake.where, mistake.code) == (where, "spec.invalid-value")
        assert OwnershipTag.specs_in([OwnershipTag(name).tag]) != [name]
