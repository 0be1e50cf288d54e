from __future__ import annotations

import pytest

from openstack_prep.cli.main import main


@pytest.mark.parametrize(
    ("line", "usage", "meant"),
    [
        ("plna spec.yaml", "openstack-prep [", "plan"),
        ("rke chek .", "openstack-prep rke [", "check"),
        ("plan --alow-replace spec.yaml", "openstack-prep plan [", "--allow-replace"),
        ("plan --html=x --jbos=3 spec.yaml", "openstack-prep plan [", "--jobs"),
        ("plan --format jsno spec.yaml", "openstack-prep plan [", "json"),
        ("plan --htlm report.html spec.yaml", "openstack-prep plan [", "--html"),
    ],
)
def test_a_mistyped_word_gets_its_commands_usage_and_what_is_probably_meant(
    line: str, usage: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(line.split())
    except SystemExit as end:
        code = int(str(end.code))
    err = capsys.readouterr().err
    assert code == 2
    assert err.startswith(f"usage: {usage}")
    assert f"did you mean {meant}?" in err


def test_the_value_of_an_unknown_option_is_not_unknown_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["graph", "spec.yaml", "--html", "report.html"])
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("openstack-prep: graph: --html is unknown; openstack-prep graph --help")


def test_a_word_that_resembles_none_gets_the_choices(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["completion", "powershell"])
    assert "powershell is unknown; use bash, zsh" in capsys.readouterr().err
