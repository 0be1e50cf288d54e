from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.base.errors import SpecError
from openstack_prep.openshift.names import resolver
from openstack_prep.openshift.names.resolver import resolve
from tests.unit.texts import Wording


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """What the system's resolver knows."""
    names: dict[str, list[str]] = {}

    def getaddrinfo(name: str, *_: Any, **__: Any) -> list[Any]:
        if name not in names:
            raise socket.gaierror(-2, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, 0)) for each in names[name]]

    monkeypatch.setattr(resolver.socket, "getaddrinfo", getaddrinfo)
    return names


def test_a_hosts_file_comes_first(tmp_path: Path, known: dict[str, list[str]]) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("# mine\n192.0.2.5\tAPI.dev.example.com api # here\n2001:db8::5 api.dev.example.com\nbroken x\n\n")
    known |= {"api.dev.example.com": ["192.0.2.99"], "other": ["192.0.2.8", "192.0.2.7", "192.0.2.8"]}
    found = resolve(["api.dev.example.com", "other", "x"], hosts=hosts)
    assert (found["api.dev.example.com"].addresses, found["api.dev.example.com"].source) == (
        ("192.0.2.5", "2001:db8::5"),
        f"{hosts}:2, {hosts}:3",
    )
    assert (found["other"].addresses, found["other"].source) == (("192.0.2.7", "192.0.2.8"), "the resolver")
    assert (found["x"].addresses, found["x"].late) == ((), False)


def test_nobody_waits_for_a_resolver_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    hang = threading.Event()
    monkeypatch.setattr(resolver.socket, "getaddrinfo", lambda *_, **__: hang.wait(10) and [])
    found = resolve(["a", "b"], seconds=0.02)
    hang.set()
    assert [each.late for each in found.values()] == [True, True]
    assert found["a"].addresses == ()


def test_a_name_that_is_none(known: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise UnicodeError("label too long")

    monkeypatch.setattr(resolver.socket, "getaddrinfo", refuse)
    assert resolve(["x" * 70])["x" * 70].addresses == ()


def test_a_hosts_file_that_nobody_can_read(tmp_path: Path, wording: Wording) -> None:
    with pytest.raises(SpecError) as caught:
        resolve(["a"], hosts=tmp_path / "none")
    wording(caught.value)
