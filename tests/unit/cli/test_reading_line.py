from __future__ import annotations

import argparse
import logging

import pytest

from openstack_prep.cli.output import ERASE, reading

OPTIONS = argparse.Namespace(debug=False)
LINE = "reading the cloud ..."


def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_the_line_is_erased_also_after_an_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_a_terminal(monkeypatch)
    with reading(OPTIONS):
        assert capsys.readouterr().err == LINE
    assert capsys.readouterr().err == ERASE
    with pytest.raises(KeyboardInterrupt), reading(OPTIONS):
        raise KeyboardInterrupt
    assert capsys.readouterr() == ("", LINE + ERASE)


def test_a_note_does_not_stand_behind_it(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    at_a_terminal(monkeypatch)
    log = logging.getLogger("openstack_prep")
    handler = logging.StreamHandler()
    monkeypatch.setattr(log, "handlers", [handler])
    with reading(OPTIONS):
        log.warning("waiting")
    assert capsys.readouterr().err == f"{LINE}{ERASE}waiting\n{ERASE}"
    assert handler.filters == []


def test_without_a_terminal_or_with_debug_there_is_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with reading(OPTIONS):
        pass
    at_a_terminal(monkeypatch)
    with reading(argparse.Namespace(debug=True)):
        pass
    assert capsys.readouterr().err == ""
