from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.base.errors import DownloadError, PrepError
from openstack_prep.download import rhcos
from openstack_prep.download.installer_cache import Kept
from openstack_prep.download.rhcos import Release, ask_installer, find_release, mirrored, read_stream
from tests.unit.texts import Wording
from tests.unit.web import Web, serve

DATA = Path(__file__).parents[1] / "data" / "rhcos"


def data(name: str) -> Any:
    return json.loads((DATA / f"{name}.json").read_text())


def find(name: str, arch: str) -> Release:
    return find_release(data(name), arch, name)


# --- both eras ----------------------------------------------------------------------------


def test_stream_metadata() -> None:
    assert find("stream", "aarch64") == Release(
        release="410.84.202201251203-0",
        arch="aarch64",
        location="https://rhcos-redirector.apps.art.xq1c.p1.openshiftapps.com/art/storage/releases/rhcos-4.10-aarch64/"
        "410.84.202201251203-0/aarch64/rhcos-410.84.202201251203-0-openstack.aarch64.qcow2.gz",
        sha256="43d705930aa55be857d08586660554f44a6fea48859dde0638ca23bf33f22f9f",
        uncompressed_sha256="14903b14d58bd9991e0c6dfad723a59f33c04a7b092f01db45de48a0d910ca4d",
        compression="gz",
    )


def test_the_older_era() -> None:
    assert find("old", "x86_64") == Release(
        release="43.80.20191002.1",
        arch="x86_64",
        location="https://releases-art-rhcos.svc.ci.openshift.org/art/storage/releases/rhcos-4.3/43.80.20191002.1/"
        "x86_64/rhcos-43.80.20191002.1-openstack.x86_64.qcow2",
        sha256="26646e2f87019b47e39b322b18f9b524d2a9c5d90410565ec5fd895d544c1d25",
        uncompressed_sha256="071dd9c430ba81e4353a2f1c49bc7462d3ff40f9d30dbc74881550ea7d8748a7",
        size=700316680,
        uncompressed_size=1889402880,
    )


def test_the_older_era_of_another_architecture() -> None:
    found = find("old_ppc64le", "ppc64le")
    assert (found.release, found.compression) == ("47.84.202206131039-0", "gz")
    with pytest.raises(DownloadError, match="old_ppc64le: only supports ppc64le, not x86_64"):
        find("old_ppc64le", "x86_64")


def test_a_base_without_an_architecture_is_of_the_one_there_was() -> None:
    content = data("old") | {"baseURI": "https://host/rhcos-4.1/410.8.20190520.0"}
    found = find_release(content, "x86_64", "old")
    assert found.location == "https://host/rhcos-4.1/410.8.20190520.0/rhcos-43.80.20191002.1-openstack.x86_64.qcow2"
    with pytest.raises(DownloadError, match="old: only supports x86_64, not s390x"):
        find_release(content, "s390x", "old")


def test_scos() -> None:
    assert find("scos", "s390x").location.endswith("/s390x/scos-10.0.20250628-0-openstack.s390x.qcow2.gz")


@pytest.mark.parametrize(
    ("formats", "compression"),
    [(["qcow2.xz"], "xz"), (["qcow2", "qcow2.zst"], "zst"), (["qcow2.xz", "qcow2.gz"], "gz"), (["qcow2"], "none")],
)
def test_other_compressions(formats: list[str], compression: str) -> None:
    content = data("stream")
    artifact = content["architectures"]["aarch64"]["artifacts"]["openstack"]
    (disk,) = artifact["formats"].values()
    artifact["formats"] = {name: {"disk": disk["disk"] | {"location": f"https://h/{name}"}} for name in formats}
    found = find_release(content, "aarch64", "stream")
    assert found.compression == compression
    assert found.location == "https://h/qcow2" + ("" if compression == "none" else f".{compression}")


def test_what_is_not_compressed_has_one_sum() -> None:
    content = data("stream")
    artifact = content["architectures"]["aarch64"]["artifacts"]["openstack"]
    artifact["formats"]["qcow2"] = artifact["formats"].pop("qcow2.gz")
    del artifact["formats"]["qcow2"]["disk"]["uncompressed-sha256"]
    found = find_release(content, "aarch64", "stream")
    assert found.uncompressed_sha256 == found.sha256


# --- what is missing ----------------------------------------------------------------------


def test_an_architecture_that_is_not_there() -> None:
    with pytest.raises(DownloadError) as caught:
        find("stream", "x86_64")
    assert str(caught.value) == "stream: architectures.x86_64 is missing; found aarch64, ppc64le, s390x instead"


def test_an_architecture_without_openstack(wording: Wording) -> None:
    with pytest.raises(DownloadError) as caught:
        find("stream", "s390x")
    wording(caught.value)


def without_sum(openstack: Any) -> None:
    del openstack["formats"]["qcow2.gz"]["disk"]["uncompressed-sha256"]


def with_short_sum(openstack: Any) -> None:
    openstack["formats"]["qcow2.gz"]["disk"]["sha256"] = "abc"


def with_a_path(openstack: Any) -> None:
    openstack["formats"]["qcow2.gz"]["disk"]["location"] = "/etc/passwd"


def with_a_broken_url(openstack: Any) -> None:
    openstack["formats"]["qcow2.gz"]["disk"]["location"] = "https://[/a.qcow2.gz"


def with_a_list(openstack: Any) -> None:
    openstack["formats"] = ["qcow2.gz"]


def with_another_format(openstack: Any) -> None:
    openstack["formats"] = {"raw.gz": {}, "vmdk": {}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without_sum, "uncompressed-sha256 is missing; found location, sha256 instead"),
        (with_short_sum, "'abc' is not a sha256"),
        (with_a_path, "'/etc/passwd' is not an http, https or file URL"),
        (with_a_broken_url, "not an http, https or file URL"),
        (with_a_list, "for aarch64 exists as nothing, but not as qcow2"),
        (with_another_format, "for aarch64 exists as raw.gz, vmdk, but not as qcow2"),
        (lambda openstack: openstack.pop("release"), "release is missing"),
        (lambda openstack: openstack.pop("formats"), "formats is missing; found release instead"),
    ],
)
def test_broken_stream_metadata(change: Callable[[Any], Any], message: str) -> None:
    content = data("stream")
    change(content["architectures"]["aarch64"]["artifacts"]["openstack"])
    with pytest.raises(DownloadError, match=message):
        find_release(content, "aarch64", "stream")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"images": {}}, "images.openstack is missing; found nothing instead"),
        ({"baseURI": 4}, "4 is not an http"),
        ({"images": {"openstack": {"path": "a.qcow2", "sha256": "0" * 64, "size": "big"}}}, "'big' is not a size"),
        ({"images": {"openstack": {"path": "a.qcow2", "sha256": "0" * 64, "size": -1}}}, "-1 is not a size"),
        ({"images": {"openstack": {"path": "a.qcow2.gz", "sha256": "0" * 64}}}, "uncompressed-sha256 is missing"),
    ],
)
def test_broken_metadata_of_the_older_era(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(DownloadError, match=message):
        find_release(data("old") | changed, "x86_64", "old")


@pytest.mark.parametrize("content", [None, [], "text", {"architectures": 4}])
def test_what_is_no_metadata(content: Any) -> None:
    with pytest.raises(DownloadError, match=r"it: architectures\S* is missing"):
        find_release(content, "x86_64", "it")


# --- where metadata come from -------------------------------------------------------------


def test_from_a_file_or_url() -> None:
    content = (DATA / "stream.json").read_bytes()
    assert read_stream(str(DATA / "stream.json")) == json.loads(content)
    with serve(Web(content)) as web:
        assert read_stream(web.url) == json.loads(content)


def test_a_file_that_is_no_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "stream.json"
    path.write_text("<html>")
    with pytest.raises(DownloadError, match=r"stream.json is not JSON: Expecting value"):
        read_stream(str(path))
    path.write_bytes(b"\xff\xfe\xfd")
    with pytest.raises(DownloadError, match="is not JSON"):
        read_stream(str(path))
    path.write_text("[" * 100_000)
    with pytest.raises(DownloadError, match="is not JSON"):
        read_stream(str(path))
    monkeypatch.setattr(rhcos, "LARGEST", 2)
    with pytest.raises(DownloadError, match="too large"):
        read_stream(str(path))


@pytest.fixture
def installer(tmp_path: Path) -> Callable[[str], str]:
    """Write a stand-in for the installer: a shell script."""

    def write(script: str) -> str:
        path = tmp_path / "my openshift-install; false"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o700)
        return str(path)

    return write


def test_from_an_installer(installer: Callable[[str], str]) -> None:
    path = installer(f'test "$*" = "coreos print-stream-json" && exec cat {DATA / "stream.json"}')
    assert ask_installer(path) == data("stream")


def test_an_installer_that_fails(installer: Callable[[str], str]) -> None:
    with pytest.raises(PrepError, match=r"print-stream-json failed \(3\): Error: unknown command"):
        ask_installer(installer('echo "Error: unknown command" >&2; exit 3'))
    with pytest.raises(DownloadError, match="print-stream-json is not JSON"):
        ask_installer(installer("echo usage"))


# --- streams ------------------------------------------------------------------------------


def of_stream(build: str, system: str = "rhcos") -> dict[str, Any]:
    """Return metadata with one image, named as those of the installer since 4.22."""
    location = f"https://rhcos.example.com/builds/{build}/x86_64/{system}-{build}-openstack.x86_64.qcow2.gz"
    disk = {"location": location, "sha256": "0" * 64, "uncompressed-sha256": "1" * 64}
    artifacts = {"openstack": {"release": build, "formats": {"qcow2.gz": {"disk": disk}}}}
    return {"stream": "rhcos-4.22", "architectures": {"x86_64": {"artifacts": artifacts}}}


NINE, TEN = of_stream("9.8.20260403-0"), of_stream("10.2.20260715-0")
STREAMS = {"rhel-9": NINE, "rhel-10": TEN}


def bootimages(default: Any, streams: Any = None) -> dict[str, Any]:
    """Return the ConfigMap of a release; it has no streams before 4.22."""
    data = {"releaseVersion": "4.22.3", "stream": json.dumps(default)}
    data |= {"streams": json.dumps(streams, indent=2)} if streams else {}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "coreos-bootimages"}, "data": data}


@pytest.mark.parametrize(
    ("metadata", "stream", "build"),
    [
        (NINE, None, "9.8.20260403-0"),
        (TEN, "rhel-10", "10.2.20260715-0"),
        (STREAMS, "rhel-9", "9.8.20260403-0"),
        (STREAMS, "rhel-10", "10.2.20260715-0"),
        (bootimages(NINE, STREAMS), None, "9.8.20260403-0"),
        (bootimages(NINE, STREAMS), "rhel-10", "10.2.20260715-0"),
        (bootimages(TEN, STREAMS), None, "10.2.20260715-0"),
        (bootimages(NINE), "rhel-9", "9.8.20260403-0"),
        (of_stream("39.20231101.3.0"), "rhel-9", "39.20231101.3.0"),  # a build that does not tell its stream
    ],
)
def test_the_image_of_a_stream(metadata: Any, stream: str | None, build: str) -> None:
    assert find_release(metadata, "x86_64", "x", stream).release == build


@pytest.mark.parametrize(
    ("metadata", "stream", "message"),
    [
        (STREAMS, None, "x: contains the streams rhel-10, rhel-9; choose one with os_image_stream"),
        (STREAMS, "rhel-11", "x: rhel-11 is missing; found rhel-10, rhel-9 instead"),
        (bootimages(NINE, STREAMS), "centos-10", "x: streams: centos-10 is missing; found rhel-10, rhel-9 instead"),
        (bootimages(NINE), "rhel-10", r"x: stream: its build 9\.8\.20260403-0 is rhel-9, not rhel-10"),
        (NINE, "rhel-10", r"x: its build 9\.8\.20260403-0 is rhel-9, not rhel-10"),
        ({"rhel-9": TEN}, "rhel-9", r"x: its build 10\.2\.20260715-0 is rhel-10, not rhel-9"),
        ({"kind": "ConfigMap", "data": {}}, None, "x: stream is missing; found nothing instead"),
        ({"data": {"stream": "<html>"}}, None, "x: stream is not JSON"),
        ({"data": {"stream": "{}", "streams": "[]"}}, "rhel-9", "x: streams: architectures is missing"),
    ],
)
def test_a_stream_that_is_not_there(metadata: Any, stream: str | None, message: str) -> None:
    with pytest.raises(DownloadError, match=message):
        find_release(metadata, "x86_64", "x", stream)


@pytest.mark.parametrize(
    ("build", "system", "stream"),
    [
        ("410.84.202201251203-0", "rhcos", "rhel-8"),
        ("413.92.202309070129-0", "rhcos", "rhel-9"),
        ("9.6.20250523-0", "rhcos", "rhel-9"),
        ("10.2.20260715-0", "rhcos", "rhel-10"),
        ("10.0.20250628-0", "scos", "centos-10"),
        ("39.20231101.3.0", "fedora-coreos", None),
        ("unknown", "rhcos", None),
    ],
)
def test_a_build_tells_its_stream(build: str, system: str, stream: str | None) -> None:
    metadata = of_stream(build, system)
    location = metadata["architectures"]["x86_64"]["artifacts"]["openstack"]["formats"]["qcow2.gz"]["disk"]
    location["location"] = f"https://example.com/{system}-{build}.gz"
    assert find_release(metadata, "x86_64", "x").stream == stream


@pytest.mark.parametrize("dump", [json.dumps, yaml.safe_dump])
def test_the_bootimages_of_a_release_as_yaml_or_json(tmp_path: Path, dump: Callable[[Any], str]) -> None:
    path = tmp_path / "coreos-bootimages.yaml"
    path.write_text(dump(bootimages(NINE, STREAMS)))
    assert find_release(read_stream(str(path)), "x86_64", "x", "rhel-10").stream == "rhel-10"
    path.write_text("name: [coreos-bootimages")
    with pytest.raises(DownloadError, match="is not JSON"):
        read_stream(str(path))


def test_an_installer_is_asked_for_a_stream(installer: Callable[[str], str]) -> None:
    path = installer('test "$*" = "coreos print-stream-json --stream rhel-10" && echo {}')
    assert ask_installer(path, "rhel-10") == {}
    with pytest.raises(PrepError, match=r"--stream rhel-9 failed"):
        ask_installer(path, "rhel-9")


def test_streams_are_apart_in_the_cache() -> None:
    """The cache is filled by the name of the file, which has the build in it."""
    places = {_place(each) for each in (find_release(NINE, "x86_64", "x"), find_release(TEN, "x86_64", "x"))}
    assert {path.name for path in places} == {
        "rhcos-9.8.20260403-0-openstack.x86_64.qcow2",
        "rhcos-10.2.20260715-0-openstack.x86_64.qcow2",
    }


def _place(release: Release) -> Path:
    return Kept([], release.location, release.uncompressed_sha256).places[0]


# --- mirrors ------------------------------------------------------------------------------


@pytest.mark.parametrize("mirror", ["http://mirror.lab:8080/rhcos", "http://mirror.lab:8080/rhcos/"])
def test_a_mirror_takes_the_place_of_the_host(mirror: str) -> None:
    assert mirrored("https://host/art/a.qcow2.gz?x=y", mirror) == "http://mirror.lab:8080/rhcos/art/a.qcow2.gz?x=y"
