"""named-checkzone and dnsmasq with the names of exposures."""

from __future__ import annotations

from pathlib import Path

from openstack_prep.exposures.names import files
from tests.external.conftest import Programs
from tests.unit.exposures.names.test_names import ALL, MAIL, SIX, TODAY, WEB


def write(folder: Path) -> Path:
    for name, text in files(ALL, [WEB, MAIL, SIX], today=TODAY).items():
        (folder / name).write_text(text)
    return folder


def test_named_accepts_the_zones(programs: Programs, tmp_path: Path) -> None:
    for zone in ALL.zones:
        assert "OK" in programs.run("named-checkzone", "-i", "local", zone, write(tmp_path) / f"{zone}.zone")


def test_dnsmasq_answers_with_the_names(programs: Programs, tmp_path: Path) -> None:
    folder = write(tmp_path)
    script = f"""
dnsmasq --test --conf-file={folder}/dnsmasq.conf
dnsmasq --no-daemon --no-resolv --no-hosts --conf-file={folder}/dnsmasq.conf 2>/run/log &
ask() {{ dig +short +time=1 +tries=1 @127.0.0.1 "$@" | sort | tr '\\n' ' '; echo; }}
until_it dig +time=1 +tries=1 @127.0.0.1 example.com
ask shop.example.com; ask cart.shop.example.com; ask mail.example.org; ask shop.example.com aaaa
ask cart.shop.example.com aaaa; ask no.example.com
"""
    printed = [line.strip() for line in programs.inside(script, "dnsmasq", "dig").splitlines()]
    assert printed == [
        "dnsmasq: syntax check OK.",
        "192.0.2.10 192.0.2.11",
        "192.0.2.10",
        "192.0.2.11",
        "2001:db8::10",
        "2001:db8::10",
        "",
    ]
