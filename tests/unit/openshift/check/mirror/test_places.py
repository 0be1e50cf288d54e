from __future__ import annotations

import json
from typing import Any

import pytest

from openstack_prep.base.secret import Secret
from openstack_prep.openshift.check.mirror import RELEASE, login_for, mirrors_of
from openstack_prep.openshift.install_config.model import Mirror


def test_the_longest_source_decides() -> None:
    sources = [
        Mirror(source="quay.io", mirrors=("all.lab/quay",)),
        Mirror(source="quay.io/openshift-release-dev", mirrors=("a.lab/dev", "b.lab/dev")),
        Mirror(source="quay.io/openshift-release-dev", mirrors=("a.lab/dev", "c.lab/dev")),
        Mirror(source="quay.io/openshift-release", mirrors=("wrong.lab/x",)),
    ]
    assert mirrors_of(RELEASE, sources) == ["a.lab/dev/ocp-release", "b.lab/dev/ocp-release", "c.lab/dev/ocp-release"]
    assert mirrors_of("quay.io/other/image", sources) == ["all.lab/quay/other/image"]
    assert mirrors_of("docker.io/library/x", sources) == []
    assert mirrors_of(RELEASE, [Mirror(source=RELEASE, mirrors=("m.lab:5000/release",))]) == ["m.lab:5000/release"]


@pytest.mark.parametrize(
    ("auths", "login"),
    [
        ({"m.lab:5000": {"auth": "YTpi"}}, "YTpi"),
        ({"https://m.lab:5000/": {"auth": "YTpi"}}, "YTpi"),
        ({"m.lab:5000": {"auth": "YTpi"}, "m.lab:5000/ocp": {"auth": "Yzpk"}}, "Yzpk"),
        ({"m.lab": {"auth": "YTpi"}}, None),
        ({"m.lab:5000": {"credsStore": "x"}}, None),
        ({"m.lab:5000": {"auth": "two\r\nlines"}}, None),
        ([], None),
        (7, None),
    ],
)
def test_the_login_of_a_repository(auths: Any, login: str | None) -> None:
    found = login_for("m.lab:5000/ocp/release", Secret(json.dumps({"auths": auths})))
    assert (found.reveal() if found else None) == login


def test_no_login() -> None:
    assert login_for("m.lab/x", None) is None
    assert login_for("m.lab/x", Secret("no JSON")) is None
