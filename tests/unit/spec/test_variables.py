from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from openstack_prep.base.errors import SpecError
from openstack_prep.base.given_file import folder_of
from openstack_prep.base.secret import Secret
from openstack_prep.spec import Spec, load_spec, schema
from openstack_prep.spec.spec import read_spec
from openstack_prep.spec.variables import Given

HEAD = """\
name: ${env}-lab
variables:
  env: {description: dev or prod}
  cores: {default: 4}
  names: {type: list, default: [red, blue]}
  password: {secret: true, default: {file: secrets/pw}}
  net: {type: map, default: {cidr: 10.0.0.0/24, dns: [192.0.2.1]}}
"""
BODY = """\
x-common: &common {description: "made for ${env}"}
project: {name: "${env}", <<: *common}
quota: {cores: "${cores}"}
users:
  - for_each: {team: "${names}"}
    name: ${env}-${team}
    password: ${password}
  - {name: last, description: "costs $${x}"}
subnets:
  - {name: nodes, network: nodes, cidr: "${net.cidr}", dns_nameservers: "${net.dns}"}
"""
Read = Callable[..., Spec]


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """Write a spec and files beside it, and read the spec from its folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/pw").write_text("from-file\n")

    def load(text: str = HEAD + BODY, *, files: dict[str, str] | None = None, **options: Any) -> Spec:
        for name, content in {"spec.yaml": text, **(files or {})}.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(content)
        return load_spec("spec.yaml", **options)

    return load


def refused(read: Read, *arguments: Any, **options: Any) -> list[tuple[str, str]]:
    """Return the place and code of each mistake."""
    with pytest.raises(SpecError) as caught:
        read(*arguments, **options)
    return [(each.where, each.code) for each in caught.value.mistakes]


def by_key(spec: Spec) -> dict[str, Any]:
    return {str(each.key): each for each in spec.resources}


def test_values_are_put_in_with_their_types(read: Read) -> None:
    spec = read(variables={"env": "dev"})
    found = by_key(spec)
    assert spec.name == "dev-lab"
    assert found["project/dev"].description == "made for dev"
    assert next(each.cores for each in spec.resources if each.kind == "quota") == 4
    assert (found["subnet/nodes"].cidr, found["subnet/nodes"].dns_nameservers) == ("10.0.0.0/24", ("192.0.2.1",))
    assert found["user/last"].description == "costs ${x}"


def test_for_each_repeats_an_item_at_one_place(read: Read) -> None:
    spec = read(variables={"env": "dev"})
    users = {each.name: spec.places[each.key] for each in spec.resources if each.kind == "user"}
    assert users == {"dev-red": "spec.yaml:12", "dev-blue": "spec.yaml:12", "last": "spec.yaml:15"}


def test_items_may_be_maps_and_lists_may_be_nested(read: Read) -> None:
    text = """\
name: x
security_groups:
  - for_each: {group: [{name: a, ports: [80, 81]}, {name: b, ports: [82]}]}
    name: ${group.name}
    rules:
      - for_each: {port: "${group.ports}"}
        protocol: tcp
        ports: ${port}
"""
    found = by_key(read(text))
    ports = {name: [rule.ports for rule in each.rules] for name, each in found.items()}
    assert {name: len(each) for name, each in ports.items()} == {"security_group/a": 2, "security_group/b": 1}


@pytest.mark.parametrize(
    ("options", "environment", "wanted"),
    [
        ({}, {}, 4),
        ({}, {"OPENSTACK_PREP_VAR_CORES": "5"}, 5),
        ({"vars_files": ["a.yaml"]}, {"OPENSTACK_PREP_VAR_CORES": "5"}, 6),
        ({"vars_files": ["a.yaml", "b.yaml"]}, {}, 7),
        ({"vars_files": ["b.yaml", "a.yaml"]}, {}, 6),
        ({"vars_files": ["a.yaml"], "variables": {"env": "dev", "cores": 8}}, {}, 8),
    ],
)
def test_the_nearest_value_counts(
    options: dict[str, Any], environment: dict[str, str], wanted: int, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    options = {"variables": {"env": "dev"}, **options}
    spec = read(files={"a.yaml": "cores: 6\n", "b.yaml": "{cores: 7}\n"}, **options)
    assert next(each.cores for each in spec.resources if each.kind == "quota") == wanted


@pytest.mark.parametrize("given", ["a-secret-word", Secret("a-secret-word")])
def test_a_secret_is_taken_late_and_never_shown(given: object, read: Read) -> None:
    spec = read(variables={"env": "dev", "password": given})
    user = by_key(spec)["user/dev-red"]
    assert user.password.reveal() == "a-secret-word"
    assert spec.values == {"env": "dev"}
    assert "a-secret-word" not in repr(spec)


def test_a_secret_is_read_from_beside_the_file_that_names_it(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"prod/prod.yaml": "password: {file: pw}\n", "prod/pw": "of-prod\n"}
    assert by_key(read(variables={"env": "x"}))["user/x-red"].password.reveal() == "from-file"
    spec = read(files=files, variables={"env": "x"}, vars_files=["prod/prod.yaml"])
    assert by_key(spec)["user/x-red"].password.reveal() == "of-prod"
    monkeypatch.setenv("OPENSTACK_PREP_VAR_PASSWORD", "of-environment")
    assert by_key(read(variables={"env": "x"}))["user/x-red"].password.reveal() == "of-environment"


def test_an_included_file_has_its_own_folder_and_places(read: Read) -> None:
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB e\n"
    files = {
        "shared/all.yaml": 'include: [keys.yaml, keys.yaml]\nflavors: [{name: m, ram: "${ram}", vcpus: 1, disk: 1}]\n',
        "shared/keys.yaml": "keypairs:\n  - {name: k, public_key: {file: key.pub}}\n",
        "shared/key.pub": key,
    }
    spec = read("name: x\ninclude: [shared/all.yaml]\nvariables: {ram: {default: 2GiB}}\n", files=files)
    assert {str(key): place for key, place in spec.places.items()} == {
        "flavor/m": "shared/all.yaml:2",
        "keypair/k": "shared/keys.yaml:2",
    }
    assert by_key(spec)["flavor/m"].ram == 2048


VARIABLE = "spec.variable"


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ("variables: {a: {}}\nnetworks: [{name: '${a}'}]", ["spec.yaml:2"]),
        ("variables: {a: {default: b}}", ["spec.yaml:2"]),
        ("networks: [{name: '${a}'}]", ["spec.yaml:2: networks[0].name"]),
        ("networks: [{name: '${HOME}'}]", ["spec.yaml:2: networks[0].name"]),
        ("networks: [{name: 'a${'}]", ["spec.yaml:2: networks[0].name"]),
        ("networks: [{name: n, '${a}': b}]", ["spec.yaml:2: networks[0].${a}"]),
        ("variables: {a: {type: integer, default: b}}\nnetworks: [{name: '${a}'}]", ["spec.yaml:2"]),
        ("variables: {a: {default: [b]}}\nnetworks: [{name: 'n${a}'}]", ["spec.yaml:3: networks[0].name"]),
        ("variables: {a: {default: {b: c}}}\nnetworks: [{name: '${a.d}'}]", ["spec.yaml:3: networks[0].name"]),
        ("networks: [{for_each: [a], name: b}]", ["spec.yaml:2: networks[0].for_each"]),
        ("networks: [{for_each: {a: b}, name: b}]", ["spec.yaml:2: networks[0].for_each.a"]),
        ("variables: {s: {secret: true, default: word}}\nusers: [{name: u, password: '${s}'}]", ["spec.yaml:2"]),
        (
            "variables: {s: {secret: true, default: {generate: s}}}\nusers: [{name: 'u${s}'}]",
            ["spec.yaml:3: users[0].name"],
        ),
    ],
)
def test_a_mistake_has_its_place(lines: str, wanted: list[str], read: Read) -> None:
    found = refused(read, f"name: x\n{lines}\n")
    assert [where for where, code in found if code == VARIABLE] == wanted
    assert {code for where, code in found} - {VARIABLE} <= {"spec.unknown-key"}


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ("{A: {default: c}}", ("spec.yaml:2: variables.A", "spec.invalid-value")),
        ("{a: {kind: c}}", ("spec.yaml:2: variables.a.kind", "spec.unknown-key")),
    ],
)
def test_a_declaration_that_is_wrong(variables: str, wanted: tuple[str, str], read: Read) -> None:
    assert refused(read, f"name: x\nvariables: {variables}\n") == [wanted]


def test_all_mistakes_are_told_at_once_and_each_once(read: Read) -> None:
    text = """\
name: x
variables: {a: {}, bad: {type: int}}
quota: {cores: "${a}", ram: much}
users: [{name: "${a}", description: "${b}${c}"}]
networks: [{for_each: {n: [p, q]}, name: "${n}", description: "${bad}${d}"}]
role_assignments: [{user: "${a}", role: r}]
"""
    assert sorted(where for where, _ in refused(read, text)) == [
        "spec.yaml:2: variables.bad.type",
        "spec.yaml:3: quota.ram",
        "spec.yaml:4: users[0].description",
        "spec.yaml:4: users[0].description",
        "spec.yaml:5: networks[0].description",
    ]


def test_mistakes_of_included_files(read: Read) -> None:
    files = {
        "a.yaml": "name: y\ninclude: [b.yaml]\nproject: {name: p}\n",
        "b.yaml": "include: [a.yaml]\nproject: {name: q}\nvariables: {v: {default: 1}}\n",
    }
    text = "name: x\ninclude: [missing.yaml, /etc/passwd]\n"
    assert refused(read, text) == [
        ("spec.yaml:2: include[1]", "spec.invalid-value"),
        ("spec.yaml:2: include[0]", "spec.unreadable"),
    ]
    text = "name: x\ninclude: [a.yaml, missing.yaml]\n"
    assert refused(read, text, files=files) == [
        ("a.yaml:1", "spec.unknown-key"),
        ("b.yaml:1: include[0]", "spec.cycle"),
        ("b.yaml:2", "spec.duplicate-name"),
        ("b.yaml:3", VARIABLE),
        ("spec.yaml:2: include[1]", "spec.unreadable"),
    ]


def test_values_that_are_wrong(read: Read) -> None:
    files = {"v.yaml": "cores: many\nzzz: 1\n"}
    found = refused(read, files=files, vars_files=["v.yaml"], variables={"env": 1})
    assert found == [("v.yaml:1", VARIABLE), ("v.yaml:2", VARIABLE), ("variables['env']", VARIABLE)]


def test_a_secret_word_in_the_wrong_place_is_not_repeated(read: Read) -> None:
    text = "name: x\nvariables: {s: {secret: true}}\nnetworks: [{name: '${s}'}]\n"
    with pytest.raises(SpecError) as caught:
        read(text, variables={"s": "correct-horse"})
    assert "correct-horse" not in str(caught.value)


@pytest.mark.parametrize("password", ["a${correct_horse}", "a${correct-horse}", "${a}${correct_horse}"])
def test_what_looks_like_a_variable_within_a_password_is_not_repeated(password: str, read: Read) -> None:
    text = f"name: x\nproject: {{name: p}}\nusers: [{{name: u, password: '{password}'}}]\n"
    with pytest.raises(SpecError) as caught:
        read(text)
    assert "horse" not in str(caught.value)


@pytest.mark.parametrize(
    ("section", "wanted"),
    [
        (
            "stacks: [{name: s, template: t.yaml, secret_parameter: {token: {generate: t}}}]",
            ("spec.yaml:2: stacks[0].secret_parameter", "spec.unknown-key"),
        ),
        ("users: [{name: u, password: {token: [a]}}]", ("spec.yaml:2: users[0].password", "spec.invalid-value")),
        ("outputs: {token: {value: a}}", ("spec.yaml:2: outputs", "spec.unknown-key")),
    ],
)
def test_what_looks_like_the_token_of_a_secret(section: str, wanted: tuple[str, str], read: Read) -> None:
    assert refused(read, f"name: x\n{section}\n") == [wanted]


def test_a_secret_is_fetched_once_and_only_when_it_is_needed(read: Read, tmp_path: Path) -> None:
    command = "[sh, -c, 'echo x >> runs; echo word']"
    text = HEAD.replace("{file: secrets/pw}", f"{{command: {command}}}") + BODY
    spec = read(text, variables={"env": "dev"})
    assert not (tmp_path / "runs").exists()
    users = [each for each in spec.resources if each.kind == "user" and each.password]
    assert [each.password.reveal() for each in users] == ["word", "word"]
    assert (tmp_path / "runs").read_text() == "x\n"


def test_a_source_without_a_secret_is_told_once_at_its_place(read: Read) -> None:
    text = HEAD.replace("{file: secrets/pw}", "{env: PREP_NOT_SET}") + BODY
    assert refused(read, text, variables={"env": "dev"}) == [("spec.yaml:6", "secret.missing")]


def test_an_empty_list_makes_nothing_and_its_item_is_examined(read: Read) -> None:
    spec = read(variables={"env": "dev", "names": []})
    assert [each.name for each in spec.resources if each.kind == "user"] == ["last"]
    text = "name: x\nvariables: {l: {type: list}}\nnetworks: [{for_each: {n: '${l}'}, name: '${m}'}]\n"
    assert refused(read, text, variables={"l": []}) == [("spec.yaml:3: networks[0].name", VARIABLE)]


@pytest.mark.parametrize(
    "field",
    [
        "flavors: [{name: f, ram: 1, vcpus: 1, disk: 1, extra_specs: '${s}'}]",
        "object_store: {metadata: '${s}'}",
        "stacks: [{name: s, template: t.yaml, parameters: {a: '${s}'}}]",
        "networks: [{for_each: {n: ['${s}']}, name: n, description: '${n.token}'}]",
        "networks: [{for_each: {n: ['${s}']}, name: n, description: '${n}'}]",
    ],
)
@pytest.mark.parametrize("given", [{"s": "correct-horse"}, {"s": Secret("correct-horse")}])
def test_a_secret_is_refused_where_none_belongs(field: str, given: dict[str, Any], read: Read) -> None:
    text = f"name: x\nvariables: {{s: {{secret: true}}}}\n{field}\nusers: [{{name: u, password: '${{s}}'}}]\n"
    with pytest.raises(SpecError) as caught:
        read(text, variables=given, files={"t.yaml": "heat_template_version: wallaby\n"})
    assert {each.where.partition(":")[2][:1] for each in caught.value.mistakes} == {"3"}
    assert "correct-horse" not in str(caught.value)


def test_a_secret_in_a_list_stays_one(read: Read) -> None:
    text = """\
name: x
variables: {s: {secret: true}}
users: [{for_each: {p: ["${s}"]}, name: u, password: "${p}"}]
"""
    (user,) = read(text, variables={"s": "word"}).resources
    assert user.password.reveal() == "word"


def test_some_sections_need_no_secret(read: Read) -> None:
    (_, *_) = (spec := read(variables={"env": "dev"})).resources
    assert spec.complete
    part = load_spec("spec.yaml", ("name", "project"), variables={"env": "dev", "password": "word"})
    assert [str(each.key) for each in part.resources] == ["project/dev"]


def test_items_are_bounded_together(read: Read) -> None:
    text = """\
name: x
variables: {l: {type: list}}
security_groups: [{for_each: {g: "${l}"}, name: "${g}", rules: [{for_each: {p: "${l}"}, protocol: tcp, ports: "${p}"}]}]
"""
    numbers = [str(each) for each in range(200)]
    found = refused(read, text, variables={"l": numbers})
    assert ("spec.yaml:3: security_groups[0].rules[0].for_each.p", VARIABLE) in found


@pytest.mark.parametrize("value", [float("nan"), {1: 2}, [object()], {"a": {None: 1}}])
def test_values_that_yaml_cannot_express(value: object, read: Read) -> None:
    text = "name: x\nvariables: {v: {type: number}, m: {type: map}, l: {type: list}}\n"
    text += "networks: [{name: '${v}${m.a}', description: '${l}'}]\n"
    assert ("variables['v']", VARIABLE) in refused(read, text, variables={"v": value, "m": {}, "l": []})


@pytest.mark.parametrize("kind", ["list", "map"])
def test_a_value_of_the_wrong_type_for_a_list_or_map_is_not_shown(kind: str, read: Read) -> None:
    text = f"name: x\nvariables: {{v: {{type: {kind}}}}}\n"
    with pytest.raises(SpecError) as caught:
        read(text, variables={"v": "[{name: a, password: a-word-of-a}, {name: b, password: one: two}]"})
    assert "a-word-of-a" not in str(caught.value)


def test_arguments_of_python_that_are_wrong(read: Read) -> None:
    assert refused(read, variables=[1]) == [("variables", VARIABLE)]
    assert ("variables['2']", VARIABLE) in refused(read, variables={"env": "x", 2: 3})
    assert read(files={"v.yaml": "env: x\n"}, vars_files="v.yaml").name == "x-lab"


def test_the_schema_knows_variables() -> None:
    judge = jsonschema.Draft202012Validator(schema())
    judge.validate(yaml.safe_load(HEAD + BODY))
    wrong = re.sub(r"for_each: .*", "for_each: 3", HEAD + BODY)
    assert not judge.is_valid(yaml.safe_load(wrong))
    assert not judge.is_valid({"name": "x", "quota": {"cores": "many"}})


def test_the_schema_of_included_files_has_no_name() -> None:
    judge = jsonschema.Draft202012Validator(schema(included=True))
    body = {"flavors": [{"name": "f", "ram": "${ram}", "vcpus": 1, "disk": 1}]}
    judge.validate(body)
    assert not judge.is_valid(body | {"name": "x"})
    assert not jsonschema.Draft202012Validator(schema()).is_valid(body)


@pytest.mark.parametrize(
    ("lines", "given", "fix"),
    [
        ("quota: {cores: '${v}'}", "64", "add `type: integer` to variable v"),
        ("networks: [{name: n, shared: '${v}'}]", "true", "add `type: boolean` to variable v"),
        ("project: {name: p, tags: '${v}'}", "[a]", "add `type: list` to variable v"),
        ("networks: [{for_each: {n: '${v}'}, name: '${n}'}]", "[a]", "add `type: list` to variable v"),
    ],
)
def test_text_of_a_variable_without_type_names_it(
    lines: str, given: str, fix: str, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENSTACK_PREP_VAR_V", given)
    with pytest.raises(SpecError) as caught:
        read(f"name: x\nvariables: {{v: {{}}}}\n{lines}\n")
    (mistake,) = caught.value.mistakes
    assert "${v} " in mistake.what
    assert mistake.fix == fix


def test_a_wrong_value_names_the_variables_that_it_consists_of(read: Read) -> None:
    lines = "subnets: [{name: n, network: n, cidr: '${a.b}/${c}/${c}'}]"
    with pytest.raises(SpecError) as caught:
        read(f"name: x\nvariables: {{a: {{default: {{b: d}}}}, c: {{default: 1}}}}\n{lines}\n")
    (mistake,) = caught.value.mistakes
    assert '"d/1/1" of ${a.b}, ${c} ' in mistake.what


@pytest.mark.parametrize("where", ["argument", "environment"])
def test_an_empty_text_of_a_shell_is_no_value_of_a_variable_without_default(
    where: str, read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is what an unset variable of a shell leaves."""
    read("name: x${a}${b}\nvariables: {a: {}, b: {default: y}}\n", variables={"a": ""})
    if where == "environment":
        monkeypatch.setenv("OPENSTACK_PREP_VAR_A", "")
    given = Given(arguments=[("a", ""), ("b", "")] if where == "argument" else [])
    with pytest.raises(SpecError) as caught:
        read_spec(Path("spec.yaml"), given)
    (mistake,) = caught.value.mistakes
    assert mistake.where == ("--var a" if where == "argument" else "OPENSTACK_PREP_VAR_A")


def test_an_argument_is_given_once(read: Read) -> None:
    read(variables={"env": "x"})
    same = Given(arguments=[("env", "x"), ("cores", "5"), ("env", "x")])
    assert read_spec(Path("spec.yaml"), same).name == "x-lab"
    other = Given(arguments=[("env", "x"), ("cores", "5"), ("env", "y")])
    with pytest.raises(SpecError) as caught:
        read_spec(Path("spec.yaml"), other)
    assert [each.where for each in caught.value.mistakes] == ["--var env"]


def test_paths_are_relative_to_the_file_itself_and_not_to_a_link(read: Read, tmp_path: Path) -> None:
    files = {
        "real/spec.yaml": "name: x\ninclude: [more.yaml]\nusers: [{name: u, password: {file: pw}}]\n",
        "real/more.yaml": "users: [{name: v, password: {file: pw}}]\n",
        "real/pw": "word\n",
    }
    read(files=files, variables={"env": "x"})
    (tmp_path / "spec.link").symlink_to("real/spec.yaml")
    (tmp_path / "folder").symlink_to("real")
    for path in ("spec.link", "folder/spec.yaml", "folder/../real/spec.yaml"):
        spec = load_spec(path)
        assert [each.password.reveal() for each in by_key(spec).values()] == ["word", "word"]
        assert spec.folder == tmp_path / "real"


def test_paths_of_a_pipe_are_relative_to_the_current_folder(read: Read, tmp_path: Path) -> None:
    read(files={"more.yaml": "users: [{name: v, password: {file: secrets/pw}}]\n"}, variables={"env": "x"})
    (tmp_path / "far").mkdir()
    os.mkfifo(tmp_path / "far/pipe")
    reader, writer = os.pipe()
    with os.fdopen(reader), open(writer, "w") as pipe:
        pipe.write("name: x\ninclude: [more.yaml]\n")
        pipe.close()
        spec = load_spec(f"/dev/fd/{reader}")
    assert (spec.folder, folder_of(tmp_path / "far/pipe")) == (tmp_path, tmp_path)
    assert by_key(spec)["user/v"].password.reveal() == "from-file"
