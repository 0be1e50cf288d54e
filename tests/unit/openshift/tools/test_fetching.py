from __future__ import annotations

import hashlib
import os
import signal
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from openstack_prep.base.errors import ConfigError, DownloadError, PrepError
from openstack_prep.core import interrupts
from openstack_prep.download import http as download
from openstack_prep.openshift.tools import Tool, ToolRequest, fetch_tools, fetching
from tests.unit.openshift.tools.archives import CLIENT, INSTALLER, client, put, release
from tests.unit.openshift.tools.gpg import Signer
from tests.unit.texts import Wording, expect_error
from tests.unit.web import Web, serve

OCP = "/pub/x86_64/clients/ocp"
NEWER = "4.18.8"


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    """A mirror with one release, which is the stable one, too."""
    monkeypatch.setattr(download, "PAUSE", 0.001)
    with serve(Web(b"")) as web:
        publish(web, release())
        yield web


def publish(web: Web, files: dict[str, bytes]) -> None:
    for folder in ("4.18.7", "stable-4.18"):
        web.files |= {f"{OCP}/{folder}/{name}": content for name, content in files.items()}


@pytest.fixture
def wanted(mirror: Web, tmp_path: Path) -> ToolRequest:
    base = mirror.url.removesuffix("/disk") + "/pub"
    return ToolRequest(release="4.18.7", mirror=base, system="linux", host="x86_64", into=tmp_path / "bin")


def told(tools: tuple[Tool, ...]) -> list[tuple[str, str, str]]:
    return [(each.name, each.version, each.status) for each in tools]


def asked(web: Web) -> list[str]:
    """Return the names of the files asked for since the last time."""
    names = [path.rpartition("/")[2] for path in web.paths]
    web.paths.clear()
    return names


BOTH = ["sha256sum.txt", "openshift-install-linux-4.18.7.tar.gz", "openshift-client-linux-4.18.7.tar.gz"]


def test_a_stopped_download_leaves_nothing_but_its_lock(mirror: Web, wanted: ToolRequest) -> None:
    def stop(name: str, done: int, total: int | None) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    with interrupts.raised(), pytest.raises(interrupts.Interrupted):
        fetch_tools(wanted, stop)
    assert [path.name for path in wanted.into.rglob("*") if path.is_file()] == ["lock"]
    assert {each.status for each in fetch_tools(wanted)} == {"fetched"}


def test_a_release(mirror: Web, wanted: ToolRequest) -> None:
    tools = fetch_tools(wanted)
    assert told(tools) == [(name, "4.18.7", "fetched") for name in ("openshift-install", "oc", "kubectl")]
    assert asked(mirror) == BOTH
    for tool in tools:
        content = Path(tool.path).read_bytes()
        assert content == (INSTALLER if tool.name == "openshift-install" else CLIENT) + b"4.18.7"
        assert tool.sha256 == hashlib.sha256(content).hexdigest()
        assert stat.S_IMODE(os.stat(tool.path).st_mode) == 0o755
    assert sorted(os.listdir(wanted.into)) == [".openstack-prep", "kubectl", "oc", "openshift-install"]
    assert sorted(os.listdir(wanted.into / fetching.HIDDEN)) == ["lock", "tools.json"]


def test_a_second_time_a_version_takes_no_request(mirror: Web, wanted: ToolRequest) -> None:
    first = fetch_tools(wanted)
    paths = [path for path in wanted.into.rglob("*") if path.name != "lock" and path.is_file()]
    before = [(path.stat().st_ino, path.stat().st_ctime_ns) for path in paths]
    mirror.files, mirror.refusals = {}, [404] * 9
    mirror.paths.clear()
    assert fetch_tools(wanted) == tuple(replace(each, status="kept") for each in first)
    assert [(path.stat().st_ino, path.stat().st_ctime_ns) for path in paths] == before
    assert asked(mirror) == []


def test_a_channel_takes_one_request(mirror: Web, wanted: ToolRequest) -> None:
    channel = replace(wanted, release="stable-4.18")
    assert {each.status for each in fetch_tools(channel)} == {"fetched"}
    assert asked(mirror) == BOTH
    assert {each.status for each in fetch_tools(channel)} == {"kept"}
    assert asked(mirror) == ["sha256sum.txt"]


def test_a_channel_moves_on(mirror: Web, wanted: ToolRequest) -> None:
    channel = replace(wanted, release="stable-4.18")
    fetch_tools(channel)
    mirror.files = {}
    publish(mirror, release(NEWER))
    tools = fetch_tools(channel)
    assert told(tools) == [(name, NEWER, "replaced") for name in ("openshift-install", "oc", "kubectl")]
    assert (wanted.into / "openshift-install").read_bytes() == INSTALLER + NEWER.encode()
    assert {each.status for each in fetch_tools(channel)} == {"kept"}


def test_only_some(mirror: Web, wanted: ToolRequest) -> None:
    assert told(fetch_tools(replace(wanted, tools=["kubectl"]))) == [("kubectl", "4.18.7", "fetched")]
    assert not (wanted.into / "oc").exists()
    assert asked(mirror) == [BOTH[0], BOTH[2]]
    again = told(fetch_tools(replace(wanted, tools=["oc", "kubectl"])))
    assert again == [("oc", "4.18.7", "fetched"), ("kubectl", "4.18.7", "kept")]


def test_another_machine(mirror: Web, wanted: ToolRequest) -> None:
    tools = ["openshift-install"]
    fetch_tools(replace(wanted, tools=tools))
    mac = replace(wanted, tools=tools, system="mac", host="aarch64")
    assert told(fetch_tools(mac)) == [("openshift-install", "4.18.7", "replaced")]
    assert (wanted.into / "openshift-install").read_bytes() == b"another machine'sinstall-mac-arm64"


@pytest.mark.parametrize("harm", ["gone", "not to be run"])
def test_a_tool_that_is_not_as_it_was(mirror: Web, wanted: ToolRequest, harm: str) -> None:
    fetch_tools(wanted)
    path = wanted.into / "oc"
    if harm == "gone":
        path.unlink()
    else:
        path.chmod(0o644)
    tools = {each.name: each.status for each in fetch_tools(wanted)}
    assert tools["openshift-install"] == "kept"
    assert tools["oc"] == ("fetched" if harm == "gone" else "replaced")
    assert path.read_bytes() == CLIENT + b"4.18.7"


@pytest.mark.parametrize("was_fetched", [True, False])
def test_somebodys_own_tool_stays(mirror: Web, wanted: ToolRequest, was_fetched: bool) -> None:
    if was_fetched:
        fetch_tools(wanted)
    wanted.into.mkdir(exist_ok=True)
    path = wanted.into / "kubectl"
    path.unlink(missing_ok=True)  # it may be a link to oc
    path.write_bytes(b"mine")
    for request in (wanted, replace(wanted, release="stable-4.18")):
        with expect_error(ConfigError, str(path), "--into", "--only"):
            fetch_tools(request)
    assert path.read_bytes() == b"mine"
    assert told(fetch_tools(replace(wanted, tools=["oc"])))[0][2] == ("kept" if was_fetched else "fetched")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"oc": 1}', '{"oc": {"version": "4.18.7"}}'])
def test_a_record_that_nobody_can_read_is_made_anew(mirror: Web, wanted: ToolRequest, text: str) -> None:
    fetch_tools(wanted)
    (wanted.into / fetching.HIDDEN / "tools.json").write_text(text)
    assert {each.status for each in fetch_tools(wanted)} == {"replaced"}
    assert {each.status for each in fetch_tools(wanted)} == {"kept"}


# --- other places -------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_folder(tmp_path: Path, scheme: str) -> None:
    folder = put(tmp_path / "with space", release())
    where = f"{scheme}{folder}".replace(" ", "%20" if scheme else " ")
    tools = fetch_tools(ToolRequest(release=where, system="linux", host="x86_64", into=tmp_path / "bin"))
    assert {each.version for each in tools} == {"4.18.7"}
    assert tools[0].source == f"{where}/openshift-install-linux-4.18.7.tar.gz"


def test_a_folder_that_has_an_archive_under_its_other_name(tmp_path: Path) -> None:
    folder = put(tmp_path / "mirror", release())
    (folder / "openshift-install-linux-4.18.7.tar.gz").unlink()
    only = ToolRequest(
        release=str(folder), system="linux", host="x86_64", into=tmp_path / "bin", tools=["openshift-install"]
    )
    assert fetch_tools(only)[0].source == f"{folder}/openshift-install-linux.tar.gz"


def test_a_mirror_on_disk(tmp_path: Path) -> None:
    put(tmp_path / "pub/aarch64/clients/ocp/latest", release())
    wanted = ToolRequest(release="latest", mirror=str(tmp_path / "pub"), arch="aarch64", host="aarch64", system="linux")
    assert {each.version for each in fetch_tools(replace(wanted, into=tmp_path / "bin"))} == {"4.18.7"}


def test_secrets_of_a_url_are_kept_nowhere(mirror: Web, tmp_path: Path) -> None:
    url = mirror.url.removesuffix("/disk").replace("http://", "http://me:hidden@") + OCP + "/4.18.7"
    wanted = ToolRequest(release=url, system="linux", host="x86_64", into=tmp_path / "bin")
    tools = fetch_tools(wanted)
    assert mirror.asked[0]["Authorization"].startswith("Basic ")
    assert "hidden" not in str(tools) + (tmp_path / "bin" / fetching.HIDDEN / "tools.json").read_text()
    mirror.files = {"/": b""}
    with pytest.raises(DownloadError) as caught:
        fetch_tools(wanted)
    assert "hidden" not in str(caught.value)


# --- signatures ---------------------------------------------------------------------------


@pytest.fixture
def signed(mirror: Web, wanted: ToolRequest, signer: Signer, tmp_path: Path) -> ToolRequest:
    publish(mirror, {"sha256sum.txt.gpg": signer.detached(release()["sha256sum.txt"])})
    return replace(wanted, key=signer.public(tmp_path / "key"))


def test_a_signed_release(mirror: Web, signed: ToolRequest, signer: Signer) -> None:
    assert {each.signed_by for each in fetch_tools(signed)} == {signer.fingerprint}
    assert asked(mirror) == ["sha256sum.txt", "sha256sum.txt.gpg", *BOTH[1:]]
    assert {(each.status, each.signed_by) for each in fetch_tools(signed)} == {("kept", signer.fingerprint)}
    assert asked(mirror) == []


def test_what_was_fetched_without_a_key_is_verified_later(mirror: Web, signed: ToolRequest, signer: Signer) -> None:
    assert {each.signed_by for each in fetch_tools(replace(signed, key=None))} == {None}
    asked(mirror)
    assert {(each.status, each.signed_by) for each in fetch_tools(signed)} == {("kept", signer.fingerprint)}
    assert asked(mirror) == ["sha256sum.txt", "sha256sum.txt.gpg"]


def test_a_signature_by_another_name(mirror: Web, signed: ToolRequest, signer: Signer) -> None:
    for folder in ("4.18.7", "stable-4.18"):
        mirror.files[f"{OCP}/{folder}/sha256sum.txt.sig"] = mirror.files.pop(f"{OCP}/{folder}/sha256sum.txt.gpg")
    assert {each.signed_by for each in fetch_tools(signed)} == {signer.fingerprint}


def test_sums_that_nobody_signed_are_not_used(mirror: Web, signed: ToolRequest, wording: Wording) -> None:
    publish(mirror, {"sha256sum.txt": release(NEWER)["sha256sum.txt"]})
    with pytest.raises(DownloadError) as caught:
        fetch_tools(signed)
    wording(caught.value)
    assert not signed.into.exists()


def test_a_release_without_a_signature(mirror: Web, wanted: ToolRequest, signer: Signer, tmp_path: Path) -> None:
    with expect_error(DownloadError, "txt.gpg", "404", "txt.sig", "txt.asc", "key"):
        fetch_tools(replace(wanted, key=signer.public(tmp_path / "key")))


def test_a_key_without_gpg(mirror: Web, signed: ToolRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="install gnupg"):
        fetch_tools(signed)
    assert asked(mirror) == []


# --- what goes wrong ----------------------------------------------------------------------


def test_a_release_that_is_not_there(mirror: Web, wanted: ToolRequest) -> None:
    with expect_error(DownloadError, "4.18.99/sha256sum.txt", "404"):
        fetch_tools(replace(wanted, release="4.18.99"))
    with pytest.raises(DownloadError, match=r"lists no openshift-install-linux-s390x-VERSION"):
        fetch_tools(replace(wanted, host="s390x"))
    assert not wanted.into.exists()


def test_a_folder_of_another_version(mirror: Web, wanted: ToolRequest) -> None:
    mirror.files = {}
    publish(mirror, release(NEWER))
    with pytest.raises(DownloadError, match=r"lists openshift-install-linux-4.18.8.tar.gz instead of 4.18.7"):
        fetch_tools(wanted)


def test_a_list_that_is_too_large(mirror: Web, wanted: ToolRequest, wording: Wording) -> None:
    publish(mirror, {"sha256sum.txt": bytes(2**21)})
    with pytest.raises(DownloadError) as caught:
        fetch_tools(wanted)
    wording(caught.value)


def test_an_archive_that_is_not_the_listed_one_changes_nothing(mirror: Web, wanted: ToolRequest) -> None:
    channel = replace(wanted, release="stable-4.18")
    fetch_tools(channel)
    newer = release(NEWER)
    newer[f"openshift-client-linux-{NEWER}.tar.gz"] = client(b"#!/bin/sh\nrm -rf /\n")
    publish(mirror, newer)
    with pytest.raises(DownloadError, match=rf"client-linux-{NEWER}.tar.gz has sha256 \w+ instead of"):
        fetch_tools(channel)
    assert (wanted.into / "oc").read_bytes() == CLIENT + b"4.18.7"
    assert sorted(os.listdir(wanted.into / fetching.HIDDEN)) == ["lock", "tools.json"]
    publish(mirror, release(NEWER))
    assert [each.status for each in fetch_tools(channel)] == ["kept", "replaced", "replaced"]


def test_a_broken_connection_is_resumed(mirror: Web, wanted: ToolRequest) -> None:
    mirror.breaks = [10**6, 50]  # of the list, and of the first archive
    assert {each.status for each in fetch_tools(wanted)} == {"fetched"}
    assert "Range" in mirror.asked[2]


def test_progress(wanted: ToolRequest) -> None:
    seen: list[tuple[str, int, int | None]] = []
    fetch_tools(wanted, lambda *what: seen.append(what))
    size = len(release()["openshift-client-linux-4.18.7.tar.gz"])
    assert seen[-1] == ("openshift-client-linux-4.18.7.tar.gz", size, size)


def test_a_folder_in_a_tools_place(wanted: ToolRequest) -> None:
    (wanted.into / "oc").mkdir(parents=True)
    with expect_error(PrepError, "bin/oc", "unchanged"):
        fetch_tools(wanted)


def test_two_runs_do_not_meet(wanted: ToolRequest, wording: Wording) -> None:
    with (
        fetching.locked(wanted.into),
        pytest.raises(PrepError) as caught,
    ):
        fetch_tools(wanted)
    wording(caught.value)
    assert {each.status for each in fetch_tools(wanted)} == {"fetched"}


def test_what_a_killed_run_left_is_removed(wanted: ToolRequest) -> None:
    left = wanted.into / fetching.HIDDEN / "parts" / "openshift-install.part"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    assert {each.status for each in fetch_tools(wanted)} == {"fetched"}
    assert not left.parent.exists()
