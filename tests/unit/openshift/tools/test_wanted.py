from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.base.errors import SpecError
from openstack_prep.openshift.tools import ToolRequest
from openstack_prep.openshift.tools.layout import this_machine, this_system
from tests.unit.texts import Wording


def test_all_mistakes_at_once(tmp_path: Path, wording: Wording) -> None:
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
    wording([str(each).replace(str(tmp_path), "") for each in caught.value.mistakes])


def test_no_tools(wording: Wording) -> None:
    with pytest.raises(SpecError) as caught:
        ToolRequest(release="latest", tools=[])
    wording(caught.value)


@pytest.mark.parametrize(
    "release", ["ftp://mirror/4.18", "s3://bucket/x", "https://mirror/x?y", "file:relative://x", "http://[/x"]
)
def test_urls_of_no_folder(release: str, wording: Wording) -> None:
    with pytest.raises(SpecError) as caught:
        ToolRequest(release=release, system="linux", host="x86_64")
    wording(caught.value)


@pytest.mark.parametrize(("machine", "arch"), [("arm64", "aarch64"), ("AMD64", "x86_64"), ("s390x", "s390x")])
def test_this_machine(monkeypatch: pytest.MonkeyPatch, machine: str, arch: str) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    assert (this_machine(), this_system()) == (arch, "mac")
