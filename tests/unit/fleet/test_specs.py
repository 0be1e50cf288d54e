from __future__ import annotations

from pathlib import Path

import pytest

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import ConfigError, SpecError
from openstack_prep.cli.main import main
from openstack_prep.cloud.connection import chosen_entry, opened
from openstack_prep.fleet import load_fleet, process
from openstack_prep.fleet.order import TargetStatus
from openstack_prep.fleet.runs import choose
from openstack_prep.fleet.work import work
from tests.unit.fleet import fleets
from tests.unit.texts import Wording, contains

HEAD = "team,cloud,tier,cores\n"


def wrong(path: Path) -> list[str]:
    with pytest.raises(SpecError) as caught:
        choose(load_fleet(path))
    return [str(each).replace(f"{path.parent}/", "") for each in caught.value.mistakes]


def test_values_are_those_of_the_spec(tmp_path: Path) -> None:
    chosen = choose(load_fleet(fleets.write(tmp_path, teams_csv=f"{HEAD}red,one,,4\nblue,,,\n")), cloud="mine")
    assert chosen.checked.specs == {"red": "team-red", "blue": "team-blue"}
    assert chosen.checked.clouds == {"red": "one", "blue": "mine"}


def test_a_wrong_value_is_reported_with_its_row(tmp_path: Path) -> None:
    (found,) = wrong(fleets.write(tmp_path, teams_csv=f"{HEAD}red,,,4\nblue,,,many\n"))
    assert found.startswith("fleet.yaml:3 (teams.csv:3): variables.cores (target blue, ")


def test_the_same_mistake_of_many_targets_is_reported_once(tmp_path: Path) -> None:
    path = fleets.write(tmp_path, teams_csv=f"{HEAD}red,,,\nblue,,,\ngreen,,,\n")
    (tmp_path / "tenant.yaml").write_text(fleets.SPEC + "nonsense: 1\n")
    (found,) = wrong(path)
    assert contains(found, "tenant.yaml:8", "nonsense", "red", "2", "fleet.yaml:3 (teams.csv:2)")


def test_doubles_are_refused(tmp_path: Path) -> None:
    text = fleets.CSV.replace('{team: "${row.team}",', "{team: same,")
    (found,) = wrong(fleets.write(tmp_path, text, teams_csv=f"{HEAD}red,one,,\nblue,one,,\ngreen,two,,\n"))
    assert contains(found, "fleet.yaml:3 (teams.csv:3", "blue", "team-same")


SITE = "variables:\n  site: {default: {disk: 1}}\n"


@pytest.mark.usefixtures("entries")
def test_secrets_of_the_environment_are_not_for_a_scheduler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Threads have the environment anyway; an order to a worker holds its values."""
    path = fleets.write(tmp_path, teams_csv=f"{HEAD}red,,,\nblue,,,\n")
    (tmp_path / "tenant.yaml").write_text(
        fleets.SPEC.replace("variables:\n", SITE).replace("disk: 1", 'disk: "${site.disk}"')
    )
    monkeypatch.setenv("OPENSTACK_PREP_VAR_CORES", "32")
    monkeypatch.setenv("OPENSTACK_PREP_VAR_SITE", "{disk: 2, apiKey: Zq7site}")
    assert main(["fleet", "plan", "--scheduler", "local", str(path)]) == 2
    err = capsys.readouterr().err
    assert contains(err, "target red: OPENSTACK_PREP_VAR_SITE", "target blue", "secret: true")
    assert not contains(err, "OPENSTACK_PREP_VAR_CORES")
    assert "Zq7site" not in err
    monkeypatch.delenv("OPENSTACK_PREP_VAR_SITE")  # as the error proposes
    (tmp_path / "site.yaml").write_text("site: {disk: 2, apiKey: Zq7site}\n")
    path.write_text(f"{fleets.CSV}    vars_files: [site.yaml]\n")
    checked = choose(load_fleet(path)).checked
    assert checked.sent_secrets == []
    assert "Zq7site" not in str([vars(order) for order in checked.orders.values()])


@pytest.mark.parametrize("source", ["{prompt: true}", "a-password-in-the-fleet"])
def test_secrets_are_no_values_of_a_fleet_and_not_prompted_for(tmp_path: Path, source: str) -> None:
    text = fleets.CSV.replace("{team:", f"{{password: {source}, team:")
    found = " ".join(wrong(fleets.write(tmp_path, text, teams_csv=f"{HEAD}red,,,\n")))
    assert "variables.password" in found
    assert "a-password" not in found


def test_paths_of_secrets_are_relative_to_the_fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = fleets.CSV.replace("{team:", '{password: {file: "${row.team}.secret"}, team:')
    path = fleets.write(tmp_path, text, teams_csv=f"{HEAD}red,,,\n", red_secret="a-password\n")
    monkeypatch.chdir("/")
    assert choose(load_fleet(path)).checked.specs == {"red": "team-red"}


CLOUDS = """\
clouds:
  one: {region_name: Here, auth: {auth_url: "http://one.test"}}
  two: {regions: [{name: Here}, There]}
"""


@pytest.fixture
def entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "clouds.yaml").write_text(CLOUDS)
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
    monkeypatch.setenv("OS_CLOUD", "one")


@pytest.mark.usefixtures("entries")
def test_an_order_names_the_entry_that_the_environment_chooses(tmp_path: Path) -> None:
    path = fleets.write(tmp_path, teams_csv=f"{HEAD}red,,,\nblue,two,,\ngreen,three,,\n")
    orders = choose(load_fleet(path)).orders
    assert {name: (each.cloud, each.labels) for name, each in orders.items()} == {
        "red": ("one", ("Here", "one")),
        "blue": ("two", ("Here", "two")),
        "green": ("three", ("three",)),
    }


@pytest.mark.usefixtures("entries")
def test_doubles_are_refused_however_their_cloud_and_region_are_chosen(tmp_path: Path, wording: Wording) -> None:
    text = fleets.CSV.replace('{team: "${row.team}",', "{team: same,")
    (found,) = wrong(fleets.write(tmp_path, text, teams_csv=f"{HEAD}red,one,,\nblue,,,\n"))
    assert contains(found, "blue", "team-same", "red")
    text = text.replace("groups: [", "region: ${row.tier}\n    groups: [x, ")
    (found,) = wrong(fleets.write(tmp_path, text, teams_csv=f"{HEAD}red,one,Here,\nblue,two,There,\nlate,one,,\n"))
    wording(found)


@pytest.mark.usefixtures("entries")
def test_the_region_is_the_one_that_the_sdk_chooses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def region(entry: str) -> str | None:
        (tmp_path / "clouds.yaml").write_text(f"clouds: {{one: {{auth: {{auth_url: http://x.test}}, {entry}}}}}\n")
        (_, region, address) = chosen_entry("one")
        assert address == "http://x.test"
        assert region == (opened("one").config.get_region_name() or "")
        return region

    assert region("region_name: B, regions: [A, B]") == "A"
    assert region("region-name: B") == "B"
    assert region("regions: [{name: C, values: {}}]") == "C"
    assert region("profile: no-such-thing") == ""


@pytest.mark.usefixtures("entries")
def test_the_only_entry_is_the_one_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen_entry(None)[0] == "one"  # of OS_CLOUD
    monkeypatch.delenv("OS_CLOUD")
    assert chosen_entry(None)[0] is None
    (tmp_path / "clouds.yaml").write_text("clouds: {only: {auth: {auth_url: http://x.test}}}\n")
    assert chosen_entry(None) == ("only", "", "http://x.test")
    assert opened(None).config.name == "only"
    monkeypatch.setenv("OS_AUTH_URL", "http://y.test")
    assert chosen_entry(None) == (None, "", "http://y.test")


def test_an_order_has_the_environment_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENSTACK_PREP_VAR_CORES", "32")
    monkeypatch.setenv("OPENSTACK_PREP_VAR_PASSWORD", "a-secret")
    orders = choose(load_fleet(fleets.write(tmp_path, teams_csv=f"{HEAD}red,,,\nblue,,,4\n"))).orders
    assert [each.environment for each in orders.values()] == [{"OPENSTACK_PREP_VAR_CORES": "32"}] * 2
    monkeypatch.setenv("OPENSTACK_PREP_VAR_CORES", "1")  # as of a worker
    monkeypatch.setenv("OPENSTACK_PREP_VAR_TEAM", "nobody")
    values = {name: process.spec_of(each).values for name, each in orders.items()}
    assert values == {"red": {"team": "red", "cores": 32}, "blue": {"team": "blue", "cores": 4}}


@pytest.mark.parametrize(
    ("declared", "row"),
    [
        ("list", [{"name": "x", "password": {"command": ["touch", "x"]}}]),
        ("map", "{command: [touch, x]}"),
        ("map", {"a": {"b": [{"file": "/etc/shadow"}]}}),
    ],
)
def test_no_value_of_a_row_is_a_source_of_a_secret(tmp_path: Path, declared: str, row: object) -> None:
    path = fleets.of_rows(tmp_path, [{"more": row}], variables='{team: a, more: "${row.more}"}')
    spec = fleets.SPEC.replace("variables:", f"variables:\n  more: {{type: {declared}}}")
    (tmp_path / "tenant.yaml").write_text(spec + "stacks: [{name: s, template: t, parameters: {p: '${more}'}}]\n")
    (found,) = wrong(path)
    assert contains(found, "fleet.yaml:3", "0", "variables.more")


def test_plain_data_with_the_word_file_is_no_file(tmp_path: Path) -> None:
    path = fleets.write(tmp_path, teams_csv=f"{HEAD}red,,,\n")
    plain = "stacks: [{name: s, template: t, parameters: {p: {file: ~nobody-of-this-name/x}, q: {file: 'a\\0b'}}}]\n"
    (tmp_path / "tenant.yaml").write_text(fleets.SPEC + plain.replace("'a\\0b'", '"a\\0b"'))
    assert choose(load_fleet(path)).checked.resources == {"red": 3}


def test_only_some_targets(tmp_path: Path, wording: Wording) -> None:
    fleet = fleets.of(tmp_path, "a:x", "b:y", "c:x", "d:", "e:", waves="[{groups: [y]}, {percent: 34}]")
    assert list(choose(fleet, ["x", "d"]).orders) == ["a", "c", "d"]
    assert [[each.name for each in wave.targets] for wave in choose(fleet).waves] == [["b"], ["a", "c"], ["d", "e"]]
    assert [wave.title for wave in choose(fleet, ["d"]).waves] == ["wave 2 (34 %)"]
    with pytest.raises(ConfigError) as caught:
        choose(fleet, ["xx"])
    wording(caught.value)
    assert caught.value.exit_code == 2


def test_a_spec_that_is_replaced_during_the_run_is_not_carried_out(tmp_path: Path) -> None:
    """An earlier wave has tried other content; nobody has agreed to this one."""
    path = fleets.write(tmp_path, teams_csv=f"{HEAD}red,,,\n")
    order = choose(load_fleet(path)).orders["red"]
    spec = Path(order.spec)
    spec.write_text(f"{spec.read_text()}# another line\n")
    outcome = work(order)
    assert (outcome.status, [each["code"] for each in outcome.errors]) == (TargetStatus.REFUSED, [Code.PLAN_CHANGED])
