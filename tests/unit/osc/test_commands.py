"""``openstack prep ...`` in the real shell of python-openstackclient, with the services of requests-mock."""

from __future__ import annotations

import argparse
import json
import logging
import re
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests_mock
import yaml
from openstackclient.shell import OpenStackShell

from openstack_prep.cli.main import DEFAULTS, build_parser
from openstack_prep.reports import last_run
from tests.unit.conftest import IDENTITY, failure, sent
from tests.unit.texts import contains

SPEC = """\
name: lab
flavors:
  - {name: master, vcpus: 4, ram: 16GiB, disk: 25}
  - {name: worker, vcpus: 8, ram: 32GiB, disk: 100}
"""
NAMES = ("apply", "check", "destroy", "export", "plan", "show", "verify")
Flavors = list[dict[str, Any]]

pytestmark = pytest.mark.usefixtures("clouds_yaml", "logging_as_before")


class Said(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def rows(self) -> Any:
        return json.loads(self.out)


Client = Callable[..., Said]


@pytest.fixture
def logging_as_before() -> Iterator[None]:
    """The client adds handlers to the root logger, and sets levels."""
    ours, root = logging.getLogger("openstack_prep"), logging.getLogger()
    before = ours.handlers[:], ours.propagate, ours.level, root.handlers[:], root.level
    yield
    ours.handlers[:], ours.propagate, ours.level, root.handlers[:], root.level = before


@pytest.fixture
def client(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Client:
    (tmp_path / "spec.yaml").write_text(SPEC)

    def run(*words: str) -> Said:
        try:
            code = OpenStackShell().run([*words])
        except SystemExit as end:  # of the parser
            code = int(end.code or 0)
        return Said(code, *capsys.readouterr())

    return run


def entered(services: requests_mock.Mocker) -> list[str]:
    """Return the users of all logins."""
    logins = (each.json()["auth"]["identity"] for each in services.request_history if each.path.endswith("/tokens"))
    return [each["password"]["user"].get("name", "") for each in logins]


def test_the_entry_points_name_commands() -> None:
    found = {each.name: each.load() for each in metadata.entry_points(group="openstack.prep.v1")}
    assert {name: each.name for name, each in found.items()} == {f"prep_{name}": name for name in NAMES}
    (plugin,) = [each for each in metadata.entry_points(group="openstack.cli.extension") if each.name == "prep"]
    module = plugin.load()
    assert (module.API_NAME, module.DEFAULT_API_VERSION in module.API_VERSIONS) == ("prep", True)


def test_the_client_lists_and_completes_them(client: Client) -> None:
    listed = client("command", "list", "-f", "json", "--group", "prep").rows
    assert listed == [{"Command Group": "openstack.prep.v1", "Commands": [f"prep {name}" for name in NAMES]}]
    lines = [each.strip() for each in client("complete").out.splitlines()]
    assert f"cmds_prep='{' '.join(NAMES)}'" in lines
    assert "--allow-replace" in next(each for each in lines if each.startswith("cmds_prep_apply"))


@pytest.mark.parametrize("name", NAMES)
def test_they_have_all_options_of_our_command(name: str, client: Client) -> None:
    whole = build_parser([name])
    (commands,) = (each for each in whole._actions if isinstance(each, argparse._SubParsersAction))
    ours = {word for each in commands.choices[name]._actions for word in each.option_strings}
    of_client = {f"--{each.replace('_', '-')}" for each in DEFAULTS if each != "jobs"} | {"-C", "-f", "-q", "-v"}
    help_text = client("prep", name, "--help").out
    assert not [each for each in ours - of_client if f"{each}" not in help_text]
    for word in ("--format", "--column"):
        assert word in help_text


def test_options_of_other_commands_are_taken_or_explained_here_as_well(client: Client, flavors: Flavors) -> None:
    said = client("--os-cloud", "lab", "prep", "plan", "-out=my.plan", "spec.yaml", "-f", "json")
    assert said.code == 0
    assert Path("my.plan").is_file()
    assert "--format json" in client("--os-cloud", "lab", "prep", "plan", "-o", "json", "spec.yaml").err
    assert "use --yes" in client("--os-cloud", "lab", "prep", "apply", "-auto-approve", "spec.yaml").err
    assert not Path("json").exists()


def test_the_start_of_the_client_and_of_our_command_stays_quick() -> None:
    code = "import sys, openstack_prep.osc.plugin, openstack_prep.cli.main as m; m.build_parser([]);"
    code += (
        "print([e for e in ('openstack', 'pydantic', 'cliff', 'osc_lib', 'openstack_prep.cloud') if e in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_crash_leaves_no_core_dump(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of our own command: it would contain the secrets of the run."""
    set_limits: list[int] = []
    monkeypatch.setattr("resource.setrlimit", lambda which, limits: set_limits.append(which))
    client("prep", "plan", "missing.yaml")
    assert set_limits == [resource.RLIMIT_CORE]


def test_a_plan_as_rows_and_as_values(client: Client, flavors: Flavors, services: requests_mock.Mocker) -> None:
    said = client("--os-cloud", "lab", "prep", "plan", "spec.yaml", "-f", "json")
    assert said.code == 0
    assert [each["Resource"] for each in said.rows] == ["flavor/master", "flavor/worker"]
    assert {"field": "vcpus", "before": None, "after": 4} in said.rows[0]["Changes"]
    assert said.err.splitlines()[-1] == "apply lab: 2 to create"
    assert not [each for each in sent(services) if each.startswith("POST") and "tokens" not in each]
    said = client(
        "--os-cloud", "lab", "prep", "plan", "spec.yaml", "-f", "value", "-c", "Resource", "--detailed-exitcode"
    )
    assert (said.code, said.out) == (2, "flavor/master\nflavor/worker\n")
    assert "vcpus 4" in client("--os-cloud", "lab", "prep", "plan", "spec.yaml").out
    for default in ("plan", "show"):  # the only spec of the folder
        assert client("--os-cloud", "lab", "prep", default).code == 0


def test_apply_show_and_destroy(client: Client, flavors: Flavors) -> None:
    words = ("--os-cloud", "lab", "prep")
    said = client(*words, "apply", "spec.yaml", "-f", "json")
    assert (said.code, said.out, flavors) == (2, "", [])
    assert "pass --yes" in said.err
    said = client(*words, "apply", "--yes", "spec.yaml", "-f", "json")
    assert [(each["Resource"], each["Status"]) for each in said.rows] == [
        (f"flavor/{n}", "done") for n in ("master", "worker")
    ]
    assert "2 done, 0 failed" in said.err
    assert [each["Managed"] for each in client(*words, "show", "spec.yaml", "-f", "json").rows] == [True, True]
    assert client(*words, "plan", "spec.yaml", "-f", "json").rows == []
    assert len(client(*words, "plan", "--all", "spec.yaml", "-f", "json").rows) == 2
    said = client(*words, "destroy", "--yes", "spec.yaml", "-f", "csv", "-c", "Status")
    assert (said.code, said.out, flavors) == (0, '"Status"\n"done"\n"done"\n', [])


def test_errors_are_those_of_our_command(client: Client, services: requests_mock.Mocker, tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text("name: lab\nfoo: bar\n")
    said = client("prep", "plan", "spec.yaml", "-f", "json")
    assert (said.code, said.out) == (2, "")
    assert "spec.yaml:2: foo: unknown key" in said.err
    (tmp_path / "spec.yaml").write_text(SPEC)
    said = client("prep", "plan", "spec.yaml")
    assert said.code == 2
    assert contains(said.err, "--os-cloud", "[config.invalid]")
    services.post(f"{IDENTITY}/auth/tokens", **failure(401))
    said = client("--os-cloud", "lab", "prep", "plan", "spec.yaml")
    assert (said.code, "access.denied" in said.err, "Traceback" in said.err) == (1, True, False)
    assert "Traceback" in client("--debug", "--os-cloud", "lab", "prep", "plan", "spec.yaml").err


def test_they_send_spans(client: Client, flavors: Flavors, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    said = client("--os-cloud", "lab", "prep", "apply", "--yes", "spec.yaml", "-f", "json")
    assert [each["Status"] for each in said.rows] == ["done", "done"]
    names = re.findall(r'"name": "(.*)"', said.err)
    assert sorted(names) == ["create flavor", "create flavor", "openstack-prep apply"]


def test_the_log_of_requests_has_the_end_of_our_command(
    client: Client, flavors: Flavors, services: requests_mock.Mocker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv(last_run.SWITCH)

    def end(*words: str) -> tuple[int, str | None]:
        client("--os-cloud", "lab", "prep", *words, "spec.yaml")
        found = last_run.read()
        return found.get("exit_code", 0), found.get("error")

    assert end("plan") == (0, None)
    assert end("plan", "--detailed-exitcode") == (2, None)
    assert end("apply") == (2, "ConfigError")
    services.post("http://nova/v2.1/flavors", **failure(409))
    assert end("apply", "--yes") == (1, None)
    services.get("http://nova/v2.1/flavors/detail", **failure(403))
    assert end("plan") == (1, "NotAllowed")


@pytest.mark.parametrize(
    ("spec", "environment", "words", "user"),
    [
        ("", "mine", (), "me"),
        ("", "", ("--os-cloud", "mine"), "me"),
        ("clouds: {admin: lab}\n", "mine", (), "admin"),
        ("clouds: {admin: lab}\n", "", (), "admin"),
        ("clouds: {admin: lab}\n", "mine", ("--os-cloud", "mine"), "me"),
        ("clouds: {admin: lab}\n", "mine", ("--os-username", "someone"), "someone"),
    ],
)
def test_who_acts(
    spec: str,
    environment: str,
    words: tuple[str, ...],
    user: str,
    client: Client,
    flavors: Flavors,
    services: requests_mock.Mocker,
    clouds_yaml: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    clouds = yaml.safe_load(clouds_yaml.read_text())
    lab = clouds["clouds"]["lab"]
    clouds["clouds"]["mine"] = {**lab, "auth": {**lab["auth"], "username": "me"}}
    clouds_yaml.write_text(yaml.safe_dump(clouds))
    if environment:
        monkeypatch.setenv("OS_CLOUD", environment)
    (tmp_path / "spec.yaml").write_text(spec + SPEC)
    assert client(*words, "prep", "plan", "spec.yaml").code == 0
    assert entered(services) == [user]
