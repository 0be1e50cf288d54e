from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from openstack_prep.cli.main import build_parser, main
from openstack_prep.cli.of_spec import fix_options
from openstack_prep.cli.parser import COMMANDS, INSTEAD, PREVIEW, respell
from tests.unit.texts import contains


@pytest.mark.parametrize(
    ("line", "program", "meant"),
    [
        ("plna spec.yaml", "openstack-prep", "plan"),
        ("rke chek .", "openstack-prep rke", "check"),
        ("plan --alow-replace spec.yaml", "openstack-prep plan", "--allow-replace"),
        ("plan --html=x --jbos=3 spec.yaml", "openstack-prep plan", "--jobs"),
        ("plan --format jsno spec.yaml", "openstack-prep plan", "json"),
        ("init", "openstack-prep", "openstack-prep example minimal"),
        ("state list", "openstack-prep", "openstack-prep show"),
        ("refresh", "openstack-prep", "openstack-prep plan"),
        ("output kubeconfig", "openstack-prep", "--reveal OUTPUT"),
        ("fmt", "openstack-prep", "openstack-prep validate"),
        ("import network/web 1234", "openstack-prep import", "openstack-prep export --adopt permanently"),
        ("plan --htlm report.html spec.yaml", "openstack-prep plan", "--html"),
    ],
)
def test_a_mistyped_word_gets_one_line_with_what_is_probably_meant(
    line: str, program: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(line.split())
    except SystemExit as end:
        code = int(str(end.code))
    err = capsys.readouterr().err
    assert code == 2
    assert err.count("\n") == 1
    assert contains(err, meant, f"{program} --help", "[config.invalid]")


def test_the_value_of_an_unknown_option_is_not_unknown_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["graph", "spec.yaml", "--html", "report.html"])
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("openstack-prep: graph: --html is unknown; openstack-prep graph --help")


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("-pw0rd-of-mine", "-p..."),
        ("-pA=w0rd-of-mine", "-p..."),
        ("-vpw0rd-of-mine", "-v..."),
        ("-qA=w0rd-of-mine", "-q..."),
        ("--os-passwordw0rd-of-mine", "--os-password..."),
        ("--os-keyW0rd-of-mine", "--os-key..."),
        ("--os-password=w0rd-of-mine", "--os-password"),
        ("--formatt=json", "--formatt"),
    ],
)
def test_a_secret_glued_to_an_unknown_option_is_not_shown(
    word: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["plan", "spec.yaml", word])
    said = capsys.readouterr().err
    assert f" {shown} is unknown" in said
    assert "0rd-of-mine" not in said


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("--os-password w0rd-of-mine plan spec.yaml", "--os-password"),
        ("-p w0rd-of-mine plan spec.yaml", "-p"),
        ("--debug --password w0rd-of-mine", "--password"),
        ("fleet --token w0rd-of-mine plan fleet.yaml", "--token"),
    ],
)
def test_a_secret_after_an_unknown_option_before_the_command_is_not_shown(
    line: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(line.split())
    said = capsys.readouterr().err
    assert f" {shown} is unknown" in said
    assert "0rd-of-mine" not in said


def test_a_word_that_resembles_none_gets_the_choices(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["completion", "powershell"])
    assert contains(capsys.readouterr().err, "powershell", "bash, zsh", "[config.invalid]")


# --- options as other commands write them ---------------------------------------------------------


def options_of(line: str) -> argparse.Namespace:
    """Return the options of a command line that is valid."""
    words = shlex.split(line)
    return build_parser(words).parse_args(words)


@pytest.mark.parametrize("command", ["exposures show", "rke mesh"])
def test_a_printed_command_reads_the_same_spec_by_the_same_entry(command: str) -> None:
    given = "-C sub --os-cloud mine --var x=1 --vars-file f.yaml"
    options = options_of(f"{command} {given} spec.yaml")
    assert fix_options(options, has_plain_secrets=False) == given.split()
    assert fix_options(options, has_plain_secrets=True) == given.replace("x=1", "x=...").split()


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("plan -out=my.plan spec.yaml", "out", Path("my.plan")),
        ("plan -out my.plan spec.yaml", "out", Path("my.plan")),
        ("plan --out=my.plan spec.yaml", "out", Path("my.plan")),
        ("plan -o my.plan spec.yaml", "out", Path("my.plan")),
        ("plan -omy.plan spec.yaml", "out", Path("my.plan")),
        ("plan -o=my.plan spec.yaml", "out", Path("my.plan")),
        ("plan -o ./json spec.yaml", "out", Path("json")),
        ("plan -o ut=my.plan spec.yaml", "out", Path("ut=my.plan")),
        ("fleet plan -out=my.plan fleet.yaml", "out", Path("my.plan")),
        ("plan -destroy spec.yaml", "destroy", True),
        ("plan -detailed-exitcode spec.yaml", "detailed_exitcode", True),
        ("plan -target=network/net -target user/a spec.yaml", "target", ["network/net", "user/a"]),
        ("plan -var 'a=b c' spec.yaml", "var", [("a", "b c")]),
        ("plan '-var=a=b c' spec.yaml", "var", [("a", "b c")]),
        ("plan spec.yaml -format json", "format", "json"),
        ("plan spec.yaml -f json", "format", "json"),
        ("-fyaml plan spec.yaml", "format", "yaml"),
        ("graph -f svg spec.yaml", "format", "svg"),
        ("apply -qyv spec.yaml", "yes", True),
        ("plan -vv spec.yaml", "verbose", 2),
        ("-C lab plan", "directory", [Path("lab")]),
        ("plan -", "spec", Path("/dev/stdin")),
        ("fleet validate -", "fleet", Path("/dev/stdin")),
        ("-format=json plan spec.yaml", "format", "json"),
        ("apply -yes spec.yaml", "yes", True),
        ("apply -y spec.yaml", "yes", True),
        ("apply -plan=my.plan", "plan", Path("my.plan")),
        ("apply -lock-timeout=60 spec.yaml", "lock_timeout", 60.0),
        ("check -html=page.html install-config.yaml", "html", Path("page.html")),
        (
            "ipi -yes -- openshift-install create cluster -dir=lab",
            "installer",
            "openshift-install create cluster -dir=lab",
        ),
    ],
)
def test_one_dash_is_enough_for_a_long_option(line: str, name: str, value: object) -> None:
    found = getattr(options_of(line), name)
    assert (" ".join(found) if name == "installer" else found) == value


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("plan -o json spec.yaml", "--format json"),
        ("plan -ojson spec.yaml", "--format json"),
        ("plan -o=yaml spec.yaml", "--format json"),
        ("plan --out json spec.yaml", "--format json"),
        ("plan -output=my.plan spec.yaml", "-o VALUE"),
        ("plan --output=json spec.yaml", "--format json"),
        ("plan -json spec.yaml", "--format json"),
        ("plan --json spec.yaml", "--format json"),
        ("plan -f spec.yaml", "without an option"),
        ("plan one.yaml two.yaml", "example fleet"),
        ("apply --filename=spec.yaml", "without an option"),
        ("show -o json spec.yaml", "--format json"),
        ("fleet plan -o json fleet.yaml", "--format json"),
        ("fleet export --output json fleet.yaml", "--format json"),
        ("kubernetes convert cluster.yml --output json", "--format json"),
        ("kubernetes convert cluster.yml --output=", "is empty"),
        ("apply -auto-approve spec.yaml", "--yes"),
        ("plan --auto-approve spec.yaml", "leave it out"),
        ("-chdir=lab plan", "-C DIR"),
        ("destroy --auto-approve spec.yaml", "--yes"),
        ("fleet apply -auto-approve fleet.yaml", "--yes"),
        ("apply --dry-run spec.yaml", "openstack-prep plan"),
        ("apply --dry-run=client spec.yaml", "openstack-prep plan"),
        ("apply -n spec.yaml", "openstack-prep plan"),
        ("destroy -n spec.yaml", "plan --destroy"),
        ("cleanup --dry-run", "--plan"),
        ("address-pairs sync -n spec.yaml", "--dry-run"),
        ("apply --check spec.yaml", "openstack-prep plan"),
        ("apply -destroy spec.yaml", "the command destroy"),
        ("plan -refresh=false spec.yaml", "leave it out"),
        ("plan -var-file=prod.tfvars spec.yaml", "--vars-file"),
        ("plan -parallelism=4 spec.yaml", "--jobs"),
        ("plan -no-color spec.yaml", "--color never"),
        ("apply -lock=false spec.yaml", "--lock-timeout"),
        ("plan -lock=false spec.yaml", "leave it out"),
        ("plan -lock-timeout=60s spec.yaml", "leave it out"),
        ("destroy --plan spec.yaml", "openstack-prep plan --destroy"),
        ("apply -replace=network/net spec.yaml", "--allow-replace"),
        ("apply -lock-timeout=60s spec.yaml", "60s is not a number of seconds"),
        ("show -n kube-system spec.yaml", "leave it out"),
        ("-json plan spec.yaml", "--format json"),
    ],
)
def test_an_option_of_other_commands_is_refused_with_the_right_one(
    line: str, fix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert fix in said.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


def test_no_option_is_hidden_by_those_of_other_commands() -> None:
    """What a command has itself is never explained away, and each replacement is an option of some command."""
    parsers = dict(commands_of(build_parser()))
    known = {option for each in parsers.values() for option in each._option_string_actions}
    assert {needed for fixes in INSTEAD.values() for needed, _ in fixes} - {""} <= known
    assert set(PREVIEW) <= parsers.keys()
    assert parsers.keys().isdisjoint(COMMANDS)
    for each in parsers.values():
        for option in each._option_string_actions:
            assert respell(each, [option]) == [option]


def commands_of(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield each command with its parser."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from commands_of(each)
            return
    yield parser.prog.partition(" ")[2], parser


def test_a_saved_plan_is_no_spec(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "my.plan").write_text('{\n "format": 3,\n "made_by": "openstack-prep 1.0",\n "salt": "00"\n}\n')
    assert main(["apply", str(tmp_path / "my.plan")]) == 2
    assert f"apply --plan {tmp_path / 'my.plan'}" in capsys.readouterr().err
