from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.base.errors import SpecError
from openstack_prep.openshift.tools import ToolRequest
from openstack_prep.openshift.tools.layout import this_machine, this_system


def test_all_mistakes_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    wrong: dict[str, Any] = {"arch": "amd64", "host": "i386", "system": "windows"}
    with pytest.raises(SpecError) as caught:
        ToolRequest(
            release="4.18",
            mirror="https://me:hidden@mirror/?token=hidden",
            tools=["oc", "kubeadm"],
            into=tmp_path / "file",
            key=tmp_path / "gone",
            **wrong,
        )
    assert [str(each).replace(str(tmp_path), "") for each in caught.value.mistakes] == [
        "release: '4.18' is neither a version nor a channel; write stable-4.18 or latest-4.18, "
        "or the URL or folder of a sha256sum.txt, with a slash in it",
        "mirror: 'https://mirror/' is not a folder; write an http, https or file URL of one",
        "arch: 'amd64' is not supported; give one of x86_64, aarch64, ppc64le, s390x",
        "host: 'i386' is not supported; give one of x86_64, aarch64, ppc64le, s390x",
        "system: 'windows' is not supported; give one of linux, mac",
        "tools: 'kubeadm' is not a tool of a release; give some of openshift-install, oc, kubectl",
        "key: '/gone' cannot be read; give the file of a public key",
        "into: '/file' is not a folder; give a folder",
    ]


def test_no_tools() -> None:
    with pytest.raises(SpecError, match="tools: no tools selected; give some of"):
        ToolRequest(release="latest", tools=[])


@pytest.mark.parametrize(
    "release", ["ftp://mirror/4.18", "s3://bucket/x", "https://mirror/x?y", "file:relative://x", "http://[/x"]
)
def test_urls_of_no_folder(release: str) -> None:
    with pytest.raises(SpecError, match=r"^release: .* is not a folder; write an http, https or file URL of one$"):
        ToolRequest(release=release, system="linux", host="x86_64")


@pytest.mark.parametrize(("machine", "arch"), [("arm64", "aarch64"), ("AMD64", "x86_64"), ("s390x", "s390x")])
def test_this_machine(monkeypatch: pytest.MonkeyPatch, machine: str, arch: str) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    assert (this_machine(), this_system()) == (arch, "mac")
