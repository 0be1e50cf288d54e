from __future__ import annotations

import json
import pickle
from pathlib import Path

import jsonschema
import pytest
import yaml

import openstack_prep.fleet
from openstack_prep.base.errors import SpecError
from openstack_prep.fleet import load_fleet
from openstack_prep.fleet.file.schema import schema
from tests.unit.fleet import fleets
from tests.unit.texts import Wording


def mistakes(path: Path) -> list[tuple[str, str]]:
    """Return the places, without the folder, and codes of what is wrong with a fleet."""
    with pytest.raises(SpecError) as caught:
        load_fleet(path)
    return [(each.where.replace(f"{path.parent}/", ""), str(each.code)) for each in caught.value.mistakes]


def test_targets_from_a_csv_file(tmp_path: Path) -> None:
    table = "\ufeffteam, cloud, tier, cores\n\nred, one, canary, 4\nblue, two, ,\n"
    fleet = load_fleet(fleets.write(tmp_path, teams_csv=table))
    red, blue = fleet.targets
    assert (red.name, red.cloud, red.groups, red.variables) == (
        "red",
        "one",
        ("canary",),
        {"team": "red", "cores": "4"},
    )
    assert (blue.name, blue.cloud, blue.groups, blue.variables) == ("blue", "two", (), {"team": "blue"})
    assert blue.place == f"{tmp_path}/fleet.yaml:3 ({tmp_path}/teams.csv:4)"
    assert red.spec == tmp_path / "tenant.yaml"


def test_targets_from_a_list_a_glob_and_a_command(tmp_path: Path) -> None:
    (tmp_path / "clusters").mkdir()
    for name in "ba":
        (tmp_path / f"clusters/{name}.yaml").write_text(f"name: {name}\n")
    (tmp_path / "rows.json").write_text(json.dumps([{"name": "c", "cores": 3}]))
    text = """\
name: mixed
x-spec: &spec {spec: tenant.yaml}
targets:
  - {name: alone, <<: *spec, variables: {team: x, list: [1, 2]}}
  - {for_each: {site: [s1, s2]}, name: "at-${site}", <<: *spec, region: "${site}"}
  - {for_each: {file: {glob: "clusters/*.yaml"}}, name: "${file.name}", spec: "${file.path}"}
  - {for_each: {row: {command: [cat, rows.json]}}, name: "${row.name}", <<: *spec, variables: {cores: "${row.cores}"}}
"""
    fleet = load_fleet(fleets.write(tmp_path, text))
    assert [each.name for each in fleet.targets] == ["alone", "at-s1", "at-s2", "a", "b", "c"]
    assert [each.region for each in fleet.targets][:4] == [None, "s1", "s2", None]
    assert fleet.targets[3].spec == tmp_path / "clusters/a.yaml"
    assert fleet.targets[5].variables == {"cores": 3}
    assert pickle.loads(pickle.dumps(fleet.targets)) == fleet.targets


def test_all_mistakes_are_found_with_their_rows(tmp_path: Path) -> None:
    table = "team,cloud,tier,cores\nred,,,\nno good,,,\n\x1b[31mred,,,\n"
    assert mistakes(fleets.write(tmp_path, teams_csv=table)) == [
        ("fleet.yaml:4 (teams.csv:3): targets[1].name", "spec.invalid-value"),
        ("fleet.yaml:4 (teams.csv:4): targets[2].name", "spec.invalid-value"),
    ]
    text = fleets.CSV + "wave: 1\nwaves: [{percent: 0}]\nstop_after: many\n"
    assert mistakes(fleets.write(tmp_path, text, teams_csv="team,cloud,tier,cores\nred,,,\n")) == [
        ("fleet.yaml:9: wave", "spec.unknown-key"),
        ("fleet.yaml:10: waves[0].percent", "spec.invalid-value"),
        ("fleet.yaml:11: stop_after", "spec.invalid-value"),
    ]


def test_contradictions_are_found_together(tmp_path: Path) -> None:
    table = "team,cloud,tier,cores\nred,one,,\nred,two,,\n"
    more = "limits: {three: 1}\nwaves: [{groups: [none], percent: 1}, {targets: [blue]}, {}]\n"
    assert mistakes(fleets.write(tmp_path, fleets.CSV + more, teams_csv=table)) == [
        ("fleet.yaml:3 (teams.csv:3)", "spec.duplicate-name"),
        ("fleet.yaml:9: limits.three", "spec.contradiction"),
        ("fleet.yaml:10: waves[0]", "spec.contradiction"),
        ("fleet.yaml:10: waves[0].groups", "spec.contradiction"),
        ("fleet.yaml:10: waves[1].targets", "spec.contradiction"),
        ("fleet.yaml:10: waves[2]", "spec.contradiction"),
    ]


@pytest.mark.parametrize(
    ("rows", "place"),
    [
        ("{csv: none.csv}", "targets[0].for_each.row"),
        ("{csv: empty.csv}", "targets[0].for_each.row"),
        ("{csv: teams.csv, glob: x}", "targets[0].for_each.row"),
        ("{glob: 'none/*'}", "targets[0].for_each.row"),
        ("{glob: '*', timeout: 3}", "targets[0].for_each.row"),
        ("{command: []}", "targets[0].for_each.row"),
        ("{command: [/none]}", "targets[0].for_each.row"),
        ("{command: ['false']}", "targets[0].for_each.row"),
        ("{command: [echo, '{}']}", "targets[0].for_each.row"),
        ("{command: [echo, '[]']}", "targets[0].for_each.row"),
        ("{command: [sleep, '9'], timeout: 1}", "targets[0].for_each.row"),
        ("{command: [echo], timeout: 0}", "targets[0].for_each.row"),
    ],
)
def test_rows_that_cannot_be_read(tmp_path: Path, rows: str, place: str) -> None:
    text = f"name: f\ntargets:\n  - {{for_each: {{row: {rows}}}, name: x, spec: tenant.yaml}}\n"
    found = mistakes(fleets.write(tmp_path, text, teams_csv="team\nred\n", empty_csv="team\n"))
    assert found == [("fleet.yaml:3: " + place, "spec.variable")]


def test_lines_of_a_csv_file_that_are_wrong(tmp_path: Path) -> None:
    table = "team,team,,cores\nred,1,2\nblue,1,2,3\n"
    found = mistakes(fleets.write(tmp_path, teams_csv=table))
    assert [place for place, _ in found if place.startswith("teams.csv")] == [
        "teams.csv:1",
        "teams.csv:1",
        "teams.csv:2",
    ]


def test_a_csv_file_without_names_shows_no_values(tmp_path: Path) -> None:
    for first in ("red,hunter2,,hunter2", "red,hunter2,gold,4"):
        with pytest.raises(SpecError) as caught:
            load_fleet(fleets.write(tmp_path, teams_csv=f"{first}\nblue,other,gold,4\n"))
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "..", "", "a/../../outside", "~/x", "a\x00b"])
def test_a_row_leads_to_no_file_that_the_fleet_does_not_name(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "fleet"
    (folder / "specs").mkdir(parents=True)
    (tmp_path / "outside.yaml").write_text("name: x\n")
    rows = json.dumps([{"name": "a", "path": name}])
    text = """\
name: f
targets:
  - for_each: {row: {command: [cat, rows.json]}}
    name: ${row.name}
    spec: specs/${row.path}.yaml
    vars_files: ["${row.path}"]
"""
    found = mistakes(fleets.write(folder, text, rows_json=rows))
    assert found
    assert all("(item 0 of the command cat): targets[0]." in place for place, _ in found)


@pytest.mark.parametrize(
    ("variables", "row", "place"),
    [
        ('{password: {file: "secrets/${row.x}"}}', "../../outside", "variables.password.file"),
        ('{password: {generate: "secrets/${row.x}"}}', "../../outside", "variables.password.generate"),
        ('{password: {content: "${row.x}"}}', "/etc/passwd", "variables.password.content"),
        ('{password: "${row.x}"}', {"command": ["touch", "x"]}, "variables.password"),
        ('{password: {command: ["${row.x}", "a"]}}', "/bin/true", "variables.password.command"),
        ('{password: {command: "${row.x}"}}', ["/bin/true"], "variables.password.command"),
        ('{password: {vault: "teams/${row.x}#password"}}', "../admin", "variables.password.vault"),
        ('{password: {vault: "teams/${row.x}#password"}}', "red#other", "variables.password.vault"),
        ('{password: {vault: "teams/${row.x}/a#password"}}', "..", "variables.password.vault"),
        ('{password: {keyring: "teams/${row.x}"}}', "a/b", "variables.password.keyring"),
    ],
)
def test_a_row_chooses_no_file_and_no_program_for_a_secret(
    tmp_path: Path, variables: str, row: object, place: str, wording: Wording
) -> None:
    found = mistakes(fleets.of_rows(tmp_path, [{"x": row}], variables=variables))
    wording([where for where, _ in found])


def test_a_row_chooses_values_that_are_no_sources(tmp_path: Path) -> None:
    variables = '{labels: "${row.labels}", password: {file: "secrets/${row.team}"}, key: {vault: "t/${row.team}#k"}}'
    rows = [{"labels": {"tier": "one", "team": "red"}, "team": "red"}]
    (red,) = load_fleet(fleets.of_rows(tmp_path, rows, variables=variables)).targets
    assert red.variables == {
        "labels": {"tier": "one", "team": "red"},
        "password": {"file": "secrets/red"},
        "key": {"vault": "t/red#k"},
    }


def test_a_row_has_maps_of_one_key_and_all_variables(tmp_path: Path, wording: Wording) -> None:
    rows = [{"vars": {"team": "red", "a": {"note": "b/c#d"}}, "x": "b/c#d"}]
    (red,) = load_fleet(fleets.of_rows(tmp_path, rows, variables='{a: {note: "${row.x}"}, b: {c: d}}')).targets
    assert (red.variables["a"], red.from_row) == ({"note": "b/c#d"}, {"a"})
    (red,) = load_fleet(fleets.of_rows(tmp_path, rows, variables="${row.vars}")).targets
    assert (red.variables, red.from_row) == (rows[0]["vars"], {"team", "a"})
    found = mistakes(fleets.of_rows(tmp_path, [{"vars": {"password": {"file": "/x"}}}], variables="${row.vars}"))
    wording([where for where, _ in found])


def test_a_row_has_whole_lists_of_files_only_within_the_folder(tmp_path: Path, wording: Wording) -> None:
    folder = tmp_path / "fleet"
    folder.mkdir()
    for path in (tmp_path / "outside.yaml", folder / "inside.yaml"):
        path.write_text("cores: 4\n")
    rows = [{"files": ["inside.yaml", "../outside.yaml"]}]
    found = mistakes(fleets.of_rows(folder, rows, vars_files="${row.files}"))
    wording([where for where, _ in found])


def test_what_a_row_has_is_not_searched_for_references(tmp_path: Path) -> None:
    table = "team,cloud,tier,cores\nred,${row.team},${x,$${\n"
    (red,) = load_fleet(fleets.write(tmp_path, teams_csv=table)).targets
    assert (red.cloud, red.groups, red.variables["cores"]) == ("${row.team}", ("${x",), "$${")


def test_the_schema_accepts_the_example_and_refuses_mistakes(tmp_path: Path) -> None:
    example = (Path(openstack_prep.fleet.__path__[0]) / "file/example.yaml").read_text()
    validator = jsonschema.Draft202012Validator(schema())
    jsonschema.Draft202012Validator.check_schema(schema())
    assert list(validator.iter_errors(yaml.safe_load(example))) == []
    assert not validator.is_valid({"name": "f", "targets": [{"name": "a", "spec": "x", "clouds": "y"}]})
    assert not validator.is_valid(
        {"name": "f", "targets": [{"for_each": {"a": {"cvs": "x"}}, "name": "a", "spec": "x"}]}
    )
    assert schema()["properties"]["stop_after"]["description"]
    (tmp_path / "clusters").mkdir()
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/common.yaml").write_text("{}\n")
    (tmp_path / "clusters/a.yaml").write_text("name: a\n")
    table = "team,cores,cloud,tier\nred,16,site-a,canary\nblue,32,site-b,\n"
    fleet = load_fleet(fleets.write(tmp_path, example, teams_csv=table))
    assert [each.name for each in fleet.targets] == ["red", "blue", "a"]
