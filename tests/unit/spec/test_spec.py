from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

import jsonschema
import pytest
import yaml
from pydantic import ValidationError

from openstack_prep import extensions
from openstack_prep.base import ranges
from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.formats.yaml_places import Document
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.secret import Secret
from openstack_prep.core.model import Key
from openstack_prep.kubernetes.model import ReadsSecrets
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.identity.role_assignment import RoleAssignment
from openstack_prep.spec import Clouds, Spec, load_spec, schema, sections
from openstack_prep.spec.variables import typed
from tests.unit.texts import expect_error

INSTALL_CONFIGS = Path(__file__).parents[3] / "install_configs"
SHIPPED = sorted(INSTALL_CONFIGS.glob("*.yaml"))
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB engineer@example"
WORD = "correct-horse"

Load = Callable[[str], Spec]
Mistakes = Callable[[str], list[Mistake]]
Refused = Callable[[str], list[str]]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Read a spec of this text."""

    def read(text: str) -> Spec:
        (tmp_path / "spec.yaml").write_text(text)
        return load_spec(tmp_path / "spec.yaml")

    return read


@pytest.fixture
def mistakes(load: Load, tmp_path: Path) -> Mistakes:
    """Read a spec that is wrong, and return its mistakes without the folder."""

    def read(text: str) -> list[Mistake]:
        with pytest.raises(SpecError) as caught:
            load(text)
        folder = f"{tmp_path}/"
        return [
            replace(each, where=each.where.replace(folder, ""), what=each.what.replace(folder, ""))
            for each in caught.value.mistakes
        ]

    return read


@pytest.fixture
def refused(mistakes: Mistakes) -> Refused:
    """Read a spec that is wrong, and return its mistakes as text."""
    return lambda text: list(map(str, mistakes(text)))


# --- what it says -------------------------------------------------------------------------


def test_the_least_spec(load: Load) -> None:
    spec = load("name: ocp4\n")
    assert (spec.name, spec.resources, spec.clouds, spec.warnings) == ("ocp4", (), Clouds(), ())


def test_what_names_no_project_lies_in_that_of_the_spec(load: Load) -> None:
    spec = load(
        "name: ocp4\nproject: {name: p, domain: d}\nquota: {cores: 1}\nnetworks: [{name: n}, {name: o, project: q}]\n"
    )
    _, quota, n, o = spec.resources
    assert (quota.project, quota.project_domain) == ("p", "d")
    assert (n.project, o.project) == ("p", "q")


def test_without_a_project_things_lie_in_that_of_the_connection(load: Load) -> None:
    (quota,) = load("name: ocp4\nquota: {cores: 1}\n").resources
    assert quota.project is None


@pytest.mark.parametrize(
    ("ram", "mib"), [("102400", 102400), ('"102400"', 102400), ("100GiB", 102400), ("100 gib", 102400), ("-1", -1)]
)
def test_sizes_with_and_without_a_unit(load: Load, ram: str, mib: int) -> None:
    (quota,) = load(f"name: ocp4\nquota: {{ram: {ram}}}\n").resources
    assert quota.ram == mib


def test_a_date_is_a_text(load: Load) -> None:
    (project,) = load("name: 2026-11-21\nproject: {name: p, description: 2026-11-21}\n").resources
    assert project.description == "2026-11-21"


def test_secrets_come_from_beside_the_spec(load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "word").write_text(WORD)
    (tmp_path / "word").chmod(0o600)
    monkeypatch.setenv("WORD", WORD)
    monkeypatch.chdir("/")
    spec = load("name: x\nusers: [{name: a, password: {file: word}}, {name: b, password: {env: WORD}}]\n")
    assert [user.password.reveal() for user in spec.resources] == [WORD, WORD]
    assert spec.warnings == ()


def test_a_secret_in_the_spec_is_a_warning(load: Load) -> None:
    users = f"{{name: a, password: {WORD}}}, {{name: b, password: {WORD}}}"
    (warning,) = load(f"name: x\nusers: [{users}]\n").warnings  # once, however many there are
    assert "plain text" in warning


def test_a_spec_shows_no_secret(load: Load) -> None:
    assert WORD not in repr(load(f"name: x\nusers: [{{name: a, password: {WORD}}}]\n"))


def test_a_plain_secret_is_not_in_the_repr_of_what_python_makes() -> None:
    waiting: list[Any] = [extensions.load(each.kind) for each in extensions.sections()]
    seen, wrong, fields_of_secrets = set[object](), list[str](), 0
    while waiting:
        hint = waiting.pop()
        waiting += get_args(hint)
        if not isinstance(hint, type) or not is_dataclass(hint) or hint in seen:
            continue
        seen.add(hint)
        for name, inner in get_type_hints(hint, include_extras=True).items():
            waiting.append(inner)
            found = next((each for each in fields(hint) if each.name == name), None)
            if found is not None and found.init and _holds_secrets(inner):
                fields_of_secrets += 1
                wrong += [f"{hint.__name__}.{name}"] if found.repr else []
    assert wrong == []
    assert fields_of_secrets > 8


def _holds_secrets(hint: Any) -> bool:
    """Whether values of a type have secrets, apart from those in dataclasses of their own."""
    if hint is Secret or isinstance(hint, ReadsSecrets):
        return True
    return any(map(_holds_secrets, (*get_args(hint), *getattr(hint, "__metadata__", ()))))


def test_a_login_in_a_url_is_not_in_a_repr(load: Load) -> None:
    url = f"https://me:{WORD}@example.com/x"
    images = f"[{{name: a, source: '{url}'}}, {{name: b, rhcos: {{stream: '{url}', mirror: '{url}'}}}}]"
    spec = load(f"name: x\nimages: {images}\nstacks: [{{name: s, template: '{url}'}}]\n")
    assert len(spec.resources) == 3
    assert WORD not in repr(spec) + str(spec.resources)


def test_every_resource_knows_its_line(load: Load, tmp_path: Path) -> None:
    spec = load(
        "name: x\nproject:\n  name: p\nflavors:\n  - {name: a}\n  - name: b\n".replace(
            "{name: a}", "{name: a, ram: 1, vcpus: 1, disk: 1}"
        ).replace("name: b", "{name: b, ram: 1, vcpus: 1, disk: 1}")
    )
    path = tmp_path / "spec.yaml"
    assert spec.places == {
        Key("project", "p", ("Default",)): f"{path}:2",
        Key("flavor", "a"): f"{path}:5",
        Key("flavor", "b"): f"{path}:6",
    }
    known, other = (Mistake.about(Key("flavor", name), "is too big") for name in "bc")
    assert [each.where for each in spec.placed([known, other])] == [f"{path}:6: flavor/b", "flavor/c"]


# --- mistakes -----------------------------------------------------------------------------

MISTAKES: dict[str, tuple[str, list[tuple[str, ...]]]] = {
    "empty": ("", [("spec.unreadable", "spec.yaml:1", "name: my-cluster")]),
    "a list": ("- name: x\n", [("spec.unreadable", "spec.yaml:1", "name: my-cluster")]),
    "a word": ("ocp4\n", [("spec.unreadable", "spec.yaml:1", "name: my-cluster")]),
    "a fleet": (
        "name: x\ntargets: []\n",
        [("spec.unreadable", "spec.yaml:2", "openstack-prep fleet validate ")],
    ),
    "another file": ("apiVersion: v1\nkind: X\nplatform: {}\n", [("spec.unreadable", "spec.yaml:1", "choose a spec")]),
    "no name": ("quota: {cores: 1}\n", [("spec.missing-key", "spec.yaml:1: name")]),
    "an empty name": (
        'name: ""\n',
        [("spec.invalid-value", "spec.yaml:1: name", '""', "set a value, or remove the key if it is optional")],
    ),
    "a number for a name": ("name: 4\n", [("spec.invalid-value", "spec.yaml:1: name", "4", "put it in quotes")]),
    "unknown section": ("name: x\nflavor: []\n", [("spec.unknown-key", "spec.yaml:2: flavor", "flavors")]),
    "unknown key in an item": (
        "name: x\nnetworks:\n  - name: n\n    mtuu: 1\n",
        [("spec.unknown-key", "spec.yaml:4: networks[0].mtuu", "mtu")],
    ),
    "unknown key in a section": (
        "name: x\nquota:\n  core: 1\n",
        [("spec.unknown-key", "spec.yaml:3: quota.core", "cores")],
    ),
    "unknown nested key": (
        "name: x\nquota:\n  volume_types:\n    fast: {volume: 1}\n",
        [("spec.unknown-key", "spec.yaml:4: quota.volume_types.fast.volume", "volumes")],
    ),
    "nothing like it": (
        "name: x\nclouds: {zzz: 1}\n",
        [("spec.unknown-key", "spec.yaml:2: clouds.zzz", "admin, custom_policies, tenant")],
    ),
    "a list for a mapping": (
        "name: x\nquota: [1]\n",
        [("spec.invalid-value", "spec.yaml:2: quota", "a list is not a mapping")],
    ),
    "a mapping for a list": (
        "name: x\nflavors: {name: m}\n",
        [("spec.invalid-value", "spec.yaml:2: flavors", "a mapping is not a list")],
    ),
    "nothing for a list": ("name: x\nflavors:\n", [("spec.invalid-value", "spec.yaml:2: flavors", "null")]),
    "true for a number": (
        "name: x\nquota: {cores: true}\n",
        [("spec.invalid-value", "spec.yaml:2: quota.cores", "true")],
    ),
    "a text for a number": (
        'name: x\nquota: {cores: "40"}\n',
        [("spec.invalid-value", "spec.yaml:2: quota.cores", '"40"')],
    ),
    "infinity": ("name: x\nquota: {cores: .inf}\n", [("spec.invalid-value", "spec.yaml:2: quota.cores", "Infinity")]),
    "below unlimited": (
        "name: x\nquota: {cores: -2}\n",
        [("spec.invalid-value", "spec.yaml:2: quota.cores", "-2", "use -1 or more")],
    ),
    "an absurd size": (
        "name: x\nquota:\n  ram: 107374182400\n",
        [("spec.invalid-value", "spec.yaml:3: quota.ram", "107374182400", "use 1073741824 or less")],
    ),
    "no size": (
        "name: x\nquota: {ram: 100GB}\n",
        [("spec.invalid-value", "spec.yaml:2: quota.ram", '"100GB"', "write 100GiB")],
    ),
    "a date for a key": ("name: x\n2026-11-21: y\n", [("spec.unknown-key", "spec.yaml:2: 2026-11-21")]),
    "a number for a key": ("name: x\n5: y\n", [("spec.unknown-key", "spec.yaml:2: 5")]),
    "a bad address": (
        "name: x\nfloating_ips:\n  - name: api\n    external_network: external\n    address: 192.168.122\n",
        [
            (
                "spec.invalid-value",
                "spec.yaml:5: floating_ips[0].address",
                '"192.168.122"',
                "use one such as 192.0.2.10 or 2001:db8::10",
            )
        ],
    ),
    "no environment variable": (
        "name: x\nusers:\n  - name: u\n    password: {env: NO_SUCH_WORD}\n",
        [("secret.missing", "spec.yaml:4: users[0].password", "NO_SUCH_WORD")],
    ),
    "in a list of one": (
        "name: x\nrke_clusters:\n- {name: c, stack: c, directory: c, roles: [{nodes: 3-1, roles: [etcd]}]}\n"
        "  # another\n- {name: d, stack: d, directory: d, roles: [{nodes: 0, roles: []}]}\n",
        [
            ("spec.invalid-value", "spec.yaml:3: rke_clusters[0].roles[0].nodes", '"3-1"', "write one such as 0"),
            ("spec.invalid-value", "spec.yaml:5: rke_clusters[1].roles[0].roles"),
        ],
    ),
    "reached by two ways": (
        "name: x\nsecurity_groups:\n- {name: a, rules: [&r {icpm: 1, port: x}, *r, {icpm: 1}]}\n"
        "- name: b\n  rules: [*r, {<<: *r}]\n",
        [
            ("spec.unknown-key", "spec.yaml:3: security_groups[0].rules[0].icpm"),
            ("spec.unknown-key", "spec.yaml:3: security_groups[0].rules[0].port"),
            ("spec.unknown-key", "spec.yaml:3: security_groups[0].rules[2].icpm"),
        ],
    ),
    "a version of two numbers": (
        "name: x\nrke_clusters:\n- {name: c, stack: c, directory: c, kubernetes_version: 1.31}\n",
        [
            (
                "spec.invalid-value",
                "spec.yaml:3: rke_clusters[0].kubernetes_version",
                "1.31",
                "write the full version, such as",
            )
        ],
    ),
    "metadata that is reserved": (
        "name: x\nobject_store:\n  metadata:\n    Owner: me\n    Temp-URL-Key: k\n    temp_url_KEY-2: k\n"
        "    X-Account-Meta-Temp-URL-Key: k\n    Quota-Bytes: '1'\n    X-Account-Access-Control: k\n",
        [
            (
                "spec.invalid-value",
                "spec.yaml:5: object_store.metadata.Temp-URL-Key",
                '"Temp-URL-Key"',
                "use the field temp_url_key,",
            ),
            ("spec.invalid-value", "spec.yaml:6: object_store.metadata.temp_url_KEY-2"),
            ("spec.invalid-value", "spec.yaml:7: object_store.metadata.X-Account-Meta-Temp-URL-Key"),
            ("spec.invalid-value", "spec.yaml:8: object_store.metadata.Quota-Bytes"),
            ("spec.invalid-value", "spec.yaml:9: object_store.metadata.X-Account-Access-Control"),
        ],
    ),
    "a key twice": (
        "name: x\nquota:\n  cores: 1\n  cores: 2\n",
        [("spec.duplicate-key", "spec.yaml:4", "cores", "line 3")],
    ),
    "a section twice, whose second value is not judged": (
        "name: x\nnetworks: [{name: n}]\nnetworks: [{nam: n}]\n",
        [("spec.duplicate-key", "spec.yaml:3", "networks", "line 2")],
    ),
    "a name twice": (
        "name: x\nnetworks:\n  - name: n\n  - name: o\n  - name: n\n",
        [("spec.duplicate-name", "spec.yaml:5", "network/n", "spec.yaml:3")],
    ),
}


@pytest.mark.parametrize(("text", "expected"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_names_its_line_field_value_and_remedy(
    mistakes: Mistakes, text: str, expected: list[tuple[str, ...]]
) -> None:
    """Each has a code and a place; the further texts are the value and the fix."""
    found = mistakes(text)
    assert [(each.code, each.where) for each in found] == [each[:2] for each in expected]
    for each, (_, _, *texts) in zip(found, expected, strict=True):
        assert all(one in f"{each.what}; {each.fix}" for one in texts), each


@pytest.mark.parametrize(
    "name", [name for name, (text, _) in MISTAKES.items() if isinstance(yaml.safe_load(text), dict)]
)
def test_some_sections_are_read_as_if_all_were_there(name: str, tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(MISTAKES[name][0])
    data = Document(tmp_path / "spec.yaml").data
    text, context = json.dumps(data, default=str), {"base": tmp_path, "warn": print}

    def findings(read: Callable[[], object]) -> list[tuple[object, ...]]:
        try:
            read()
        except ValidationError as error:
            return [(each["type"], each["loc"], each["msg"], each["input"]) for each in error.errors()]
        return []

    some = findings(lambda: sections.read(text, data, context))
    assert some == findings(lambda: sections.adapter().validate_json(text, context=context))


def test_a_bad_network(mistakes: Mistakes) -> None:
    (found,) = mistakes("name: x\nsubnets:\n  - {name: s, network: n, cidr: 10.0.0.1/24}\n")
    assert (found.code, found.where) == ("spec.invalid-value", "spec.yaml:3: subnets[0].cidr")
    assert '"10.0.0.1/24"' in found.what


def test_a_secret_file_that_is_not_there(mistakes: Mistakes) -> None:
    (found,) = mistakes("name: x\nusers:\n  - {name: u, password: {file: gone}}\n")
    assert (found.code, found.where) == ("secret.missing", "spec.yaml:3: users[0].password")
    assert "gone" in found.what


def test_all_mistakes_are_told_at_once(mistakes: Mistakes) -> None:
    found = mistakes("nam: x\nnetworks:\n  - {name: n, mtu: 0}\nquota:\n  cores: a lot\n  cores: 1.5\nfoo: 1\n")
    assert sorted((each.where.partition(": ")[0], each.code) for each in found) == [
        ("spec.yaml:1", "spec.missing-key"),
        ("spec.yaml:1", "spec.unknown-key"),
        ("spec.yaml:3", "spec.invalid-value"),
        ("spec.yaml:6", "spec.duplicate-key"),
        ("spec.yaml:6", "spec.invalid-value"),
        ("spec.yaml:7", "spec.unknown-key"),
    ]


def test_names_given_twice_are_reported_beside_wrong_values(tmp_path: Path) -> None:
    (tmp_path / "more.yaml").write_text(
        "subnets:\n- {name: s, network: n, cidr: 10.0.1.0/24}\nnetworks:\n- {name: n}\n"
    )
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        "name: [x]\ninclude: [more.yaml]\nproject: {nam: lab}\nnetworks:\n- {name: m, mtu: none}\n- {name: n}\n"
        "- {name: m, colour: red}\n- {name: n}\nsubnets:\n- {name: s, network: n, cidr: 10.0.0.0/24}\n"
    )
    with pytest.raises(SpecError) as refused:
        load_spec(spec)
    found = {(each.where.partition(": ")[0].rpartition("/")[2], each.code.value) for each in refused.value.mistakes}
    assert found == {
        ("spec.yaml:1", "spec.invalid-value"),
        ("spec.yaml:3", "spec.missing-key"),
        ("spec.yaml:3", "spec.unknown-key"),
        ("spec.yaml:5", "spec.invalid-value"),
        ("spec.yaml:7", "spec.unknown-key"),
        ("spec.yaml:8", "spec.duplicate-name"),
        ("more.yaml:2", "spec.duplicate-name"),
        ("more.yaml:4", "spec.duplicate-name"),
    }


def test_all_names_given_twice_are_told_at_once(refused: Refused) -> None:
    said = refused(
        "name: x\nnetworks: [{name: n}, {name: n}]\nkeypairs: []\nserver_groups:\n"
        "- {name: g, policy: affinity}\n- {name: g, policy: affinity}\n"
    )
    assert [each.partition(" is declared twice")[0] for each in said] == [
        "spec.yaml:2: network/n",
        "spec.yaml:6: server_group/g",
    ]


HIDING = [
    f"users: {WORD}",
    f"users: {{name: u, password: {WORD}}}",
    f"rke_clusters: [{{name: a, distribution: rke, private_registries: {WORD}}}]",
    f"users: [[{WORD}]]",
    f"users: [{{name: u, password: [{WORD}]}}]",
    f"users: [{{name: u, password: {{vault: {WORD}}}}}]",
    f"users: [{{name: u, password: {{env: a, value: {WORD}}}}}]",
    f"users: [{{name: u, passwort: {WORD}}}]",
    f"users: [{{name: u, email: [{WORD}]}}]",
    f"project: {{name: p, users: {{password: {WORD}}}}}",
    f"users: [{{name: u, password:{WORD}}}]",
    f"users: [{{name: u, password: a,{WORD}}}]",
    f"stacks: [{{name: s, template: t, secret_parameters: {{a: b,{WORD}}}}}]",
    f'users: [{{name: u, password: "${{PASSWORD:-{WORD}}}"}}]',
    f"images: [{{name: i, source: 'me:{WORD}@example.com/a'}}]",
]


@pytest.mark.parametrize("line", HIDING)
def test_a_mistake_repeats_no_secret(refused: Refused, line: str) -> None:
    assert WORD not in "".join(refused(f"name: x\n{line}\n"))


def test_a_password_that_yaml_takes_for_a_number_is_not_repeated(mistakes: Mistakes) -> None:
    (found,) = mistakes("name: x\nusers: [{name: u, password: 31415926}]\n")
    assert (found.code, found.where) == ("spec.invalid-value", "spec.yaml:2: users[0].password")
    assert "31415926" not in str(found)
    assert "{env: NAME}" in found.fix


def test_a_mistake_of_stacks_is_placed_at_the_first_and_at_its_parameter(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text("""\
name: x
stacks:
  - name: a
    template: shipped:rke-cluster.yaml
    parameters: &same
      image: jammy
      node_cuont: 3
    secret_parameters:
      token: {env: HOME}
  - name: b
    template: shipped:rke-cluster.yaml
    parameters: *same
""")
    found = load_spec(tmp_path / "spec.yaml").placed(
        [
            Mistake.about([Key("stack", "a"), Key("stack", "b")], "flavor/x does not exist"),
            Mistake.about(Key("stack", "b"), "there is none", parameter="node_cuont"),
            Mistake.about(Key("stack", "a"), "it is no image", parameter="image"),
            Mistake.about(Key("stack", "a"), "it is not hidden", parameter="token"),
            Mistake.about(Key("stack", "b"), "is missing", parameter="flavor"),
            Mistake.about(Key("stack", "a"), "parameters: image: says its text alone"),
            Mistake.about(Key("network", "y"), "does not exist"),
        ]
    )
    path = tmp_path / "spec.yaml"
    assert [each.where for each in found] == [
        f"{path}:3: stack/a, stack/b",
        f"{path}:7: stack/b",
        f"{path}:6: stack/a",
        f"{path}:9: stack/a",
        f"{path}:10: stack/b",
        f"{path}:3: stack/a",
        "network/y",
    ]


def test_a_spec_that_is_not_there(tmp_path: Path) -> None:
    with expect_error(SpecError, "gone.yaml", code="spec.unreadable"):
        load_spec(tmp_path / "gone.yaml")


def test_a_path_may_be_a_text(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text("name: x\n")
    assert load_spec(str(tmp_path / "spec.yaml")).name == "x"


# --- the shipped ones, and the schema -----------------------------------------------------


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    return schema()


@pytest.fixture(scope="module")
def judge(whole: dict[str, Any]) -> jsonschema.Draft202012Validator:
    jsonschema.Draft202012Validator.check_schema(whole)
    return jsonschema.Draft202012Validator(whole)


def test_some_are_shipped() -> None:
    assert {path.stem for path in SHIPPED} >= {"minimal", "openshift-lab"}


def test_shipped_specs_can_be_applied_beside_one_another() -> None:
    """Names of specs, and of what all projects share, differ; rke2-mesh is what rke-mesh becomes."""
    specs = [yaml.safe_load(path.read_text()) for path in SHIPPED if path.stem != "rke-mesh"]
    names = [("spec", each["name"]) for each in specs if "name" in each]
    names += [(kind, each["name"]) for spec in specs for kind in ("users", "flavors") for each in spec.get(kind, ())]
    assert sorted(names) == sorted(set(names))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of somebody with an SSH key."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_ed25519.pub").write_text(f"{KEY}\n")
    return tmp_path


WITHOUT_PROJECT = ("rke-project", "exposures-service-host", "exposures-virtual-machines")
"""Specs for an existing project, or of nothing in OpenStack."""


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_spec_is_right(path: Path) -> None:
    spec = load_spec(path)
    assert spec.warnings == ()
    if path.stem not in WITHOUT_PROJECT:
        assert any(isinstance(each, Project) for each in spec.resources)
        assert any(isinstance(each, RoleAssignment) for each in spec.resources)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_spec_works_with_ovn(path: Path) -> None:
    """Pairs that are networks are refused on a network with OVN when ports reserve the addresses."""
    pools = [each for each in load_spec(path).resources if isinstance(each, AddressPool) and each.reserve == "ports"]
    blocks = ranges.blocks(each for pool in pools for each in pool.ranges)
    assert [block for block in blocks if "/" in block] == []


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_schema_accepts_a_shipped_spec(path: Path, judge: jsonschema.Draft202012Validator) -> None:
    judge.validate(yaml.safe_load(path.read_text()))


@pytest.mark.parametrize(
    "text",
    [
        "name: x\nquota: {ram: 100GiB, gigabytes: 5TiB, cores: -1}\n",
        'name: x\nflavors: [{name: m, ram: "16384", vcpus: 4, disk: 25}]\n',
        "name: x\nquota: {volume_types: {fast: {volumes: 3}}}\n",
        "name: x\nusers: [{name: u, password: {generate: x}}, {name: v, password: word}]\n",
    ],
)
def test_the_schema_accepts_what_is_right(text: str, load: Load, judge: jsonschema.Draft202012Validator) -> None:
    load(text)
    judge.validate(yaml.safe_load(text))


NOT_FOR_A_SCHEMA = {
    "a key twice",
    "a name twice",
    "a bad address",
    "no environment variable",
    "a date for a key",
    "a number for a key",
    "metadata that is reserved",
}


@pytest.mark.parametrize("name", [name for name in MISTAKES if name not in NOT_FOR_A_SCHEMA])
def test_the_schema_rejects_what_is_wrong(name: str, judge: jsonschema.Draft202012Validator) -> None:
    assert not judge.is_valid(yaml.safe_load(MISTAKES[name][0]))


def described(definition: dict[str, Any]) -> list[str]:
    return [name for name, field in definition.get("properties", {}).items() if not field.get("description")]


def test_every_field_is_described(whole: dict[str, Any]) -> None:
    missing = {name: described(definition) for name, definition in {**whole["$defs"], "spec": whole}.items()}
    assert {name: without for name, without in missing.items() if without} == {}


def test_the_schema_names_all_sections(whole: dict[str, Any]) -> None:
    assert list(whole["properties"]) == [name for name, _ in sections.all_fields()]
    assert whole["additionalProperties"] is False


def test_two_of_one_name_are_told_apart_by_their_project_or_domain(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text("""\
name: x
project: {name: a}
users:
  - {name: ops}
  - {name: ops, domain: corp}
networks:
  - {name: net}
  - {name: net, project: b}
""")
    spec = load_spec(tmp_path / "spec.yaml")
    keys = [each.key for each in spec.resources]
    assert len(set(keys)) == 5
    found = spec.placed([Mistake.about(key, "is wrong") for key in keys])
    assert [each.where.removeprefix(f"{tmp_path / 'spec.yaml'}:") for each in found] == [
        "2: project/a",
        "4: user/ops",
        "5: user/ops@corp",
        "7: network/net@a",
        "8: network/net@b",
    ]


def test_one_name_twice_in_one_scope_is_a_mistake(mistakes: Mistakes) -> None:
    (found,) = mistakes("name: x\nproject: {name: a}\nnetworks:\n  - {name: net}\n  - {name: net, project: a}\n")
    assert (found.code, found.where) == ("spec.duplicate-name", "spec.yaml:5")
    assert "network/net" in found.what


# --- numbers that do not mean what they look like -------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("022", "leading zero"),
        ("00", "leading zero"),
        ("22:30", "a range has a hyphen"),
        ("52:54:00:12:34:56", "colons"),
        ("1:30.5", "colons"),
        ("0x1F", "base 16"),
        ("0b101", "base 16 or 2"),
        ("1_000", "underscores"),
        ("1_0.5", "underscores"),
        ("1_.5", "underscores"),
        ("+5", "plus sign"),
        ("1.30", "loses digits"),
        ("1.50e+3", "loses digits"),
        (".5", "loses digits"),
    ],
)
@pytest.mark.parametrize(
    ("field", "where"),
    [
        ("security_groups: [{name: g, rules: [{protocol: tcp, ports: PLACE}]}]", "security_groups[0].rules[0].ports"),
        ("networks: [{name: PLACE}]", "networks[0].name"),
        ("quota: {cores: PLACE}", "quota.cores"),
        ("users: [{name: u, password: PLACE}]", "users[0].password"),
        ("variables: {v: {default: PLACE}}", "variables.v.default"),
        ("images: [{name: i, source: x, properties: {PLACE: a}}]", "images[0].properties.PLACE"),
    ],
)
def test_a_number_that_yaml_reads_otherwise_is_refused(
    text: str, said: str, field: str, where: str, load: Load, tmp_path: Path
) -> None:
    with pytest.raises(SpecError) as caught:
        load(f"name: x\n{field.replace('PLACE', text)}\n")
    (found,) = (each for each in caught.value.mistakes if each.code != "spec.variable")  # v is not used
    assert found.where == f"{tmp_path / 'spec.yaml'}:2: {where.replace('PLACE', text)}"
    if not found.what.startswith("this number"):  # the field says what it needs
        assert said == "loses digits"
        return
    assert said in f"{found.what}; {found.fix}"
    assert text not in found.what, "it may be a password"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("x-rates: {a: 022, b: 1.50}\nquota: {cores: 5}", 0),
        ("x-rates: &a {cores: 022}\nquota: *a", 1),
        ("x-rates: &a {cores: 022}\nquota: {<<: *a}", 1),
        ("flavors: [{name: f, ram: 1, vcpus: 1, disk: 1, rxtx_factor: !!float 5}]", 0),
        ("flavors: [{name: f, ram: 1, vcpus: 1, disk: 1, rxtx_factor: &a !!float 1.50}]", 0),
        ("flavors: [{name: f, ram: 1, vcpus: 1, disk: 1, rxtx_factor: &a 1.50}]", 1),
        ("quota: {cores: !!int 022}", 1),
    ],
)
def test_numbers_that_nobody_misreads(text: str, count: int, tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(f"name: x\n{text}\n")
    try:
        load_spec(tmp_path / "spec.yaml")
        found = 0
    except SpecError as error:
        found = len(error.mistakes)
    assert found == count


def test_numbers_of_json_have_one_form(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(
        '{"name": "x", "flavors": [{"name": "f", "ram": 1, "vcpus": 1, "disk": 1, "rxtx_factor": 1.50},\n'
        '{"name": "g", "ram": 1, "vcpus": 1, "disk": 1, "rxtx_factor": 1.0E-5}]}'
    )
    assert [each.desired()["rxtx_factor"] for each in load_spec(tmp_path / "spec.json").resources] == [1.5, 1e-5]


def test_texts_and_plain_numbers_are_read_as_they_are_written(load: Load) -> None:
    spec = load(
        "name: x\n"
        "networks: [{name: on}, {name: no}, {name: 2026-11-25}, {name: '022'}, {name: 1.2.3}, {name: 1e3}]\n"
        "images: [{name: i, source: x, properties: {a: 1.5, b: 7, c: -3, d: true, e: 0}}]\n"
        "flavors: [{name: f, ram: 1, vcpus: 1, disk: 1, rxtx_factor: 1.5}]\n"
    )
    names = [each.name for each in spec.resources if each.kind == "network"]
    assert names == ["on", "no", "2026-11-25", "022", "1.2.3", "1e3"]
    (image,) = [each for each in spec.resources if each.kind == "image"]
    assert image.properties == {"a": "1.5", "b": "7", "c": "-3", "d": "true", "e": "0"}  # type: ignore[attr-defined]


def test_values_of_variables_are_read_by_the_same_rule(load: Load, tmp_path: Path) -> None:
    path, values = tmp_path / "spec.yaml", tmp_path / "values.yaml"
    path.write_text("name: x\nvariables: {n: {type: integer, default: 1}}\nquota: {cores: '${n}'}\n")
    values.write_text("n: 022\n")
    with pytest.raises(SpecError) as caught:
        load_spec(path, vars_files=values)
    assert caught.value.mistakes[0].where == f"{values}:1: n"
    with pytest.raises(InvalidValue):
        typed("022", "integer", parse=True)
    assert typed("22", "integer", parse=True) == 22


@pytest.mark.parametrize("key", ["on", "yes", "~", "1"])
def test_a_key_that_is_no_text_is_unknown(tmp_path: Path, key: str) -> None:
    """YAML reads on and yes as true, and ~ as null."""
    (tmp_path / "spec.yaml").write_text(f"name: lab\n{key}: push\nnetworks: [{{name: net}}]\n")
    with pytest.raises(SpecError) as refused:
        load_spec(tmp_path / "spec.yaml")
    assert [each.code for each in refused.value.mistakes] == ["spec.unknown-key"]
