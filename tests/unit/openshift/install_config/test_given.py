from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.base.errors import SpecError
from openstack_prep.openshift.check.agent_config import agent_config
from openstack_prep.openshift.install_config import InstallConfigValues

OPENSTACK = "platform.openstack"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"apiFloatingIP": "192.0.2.1"}, ("apiFloatingIP", "192.0.2.1")),
        ({"lbFloatingIP": "192.0.2.1"}, ("lbFloatingIP", "192.0.2.1")),
        ({"apiFloatingIP": "192.0.2.1", "lbFloatingIP": "192.0.2.9"}, ("apiFloatingIP", "192.0.2.1")),
        ({"apiFloatingIP": "", "lbFloatingIP": "192.0.2.9"}, ("lbFloatingIP", "192.0.2.9")),
        ({}, ("apiFloatingIP", None)),
    ],
)
def test_a_field_in_the_words_of_any_release(said: dict[str, Any], expected: tuple[str, Any]) -> None:
    name, value = expected
    given = InstallConfigValues({"platform": {"openstack": {"cloud": "mycloud", **said}}})
    assert given.field("api_floating_ip") == (f"{OPENSTACK}.{name}", value)


def test_a_place_is_the_line_of_what_is_nearest(tmp_path: Path) -> None:
    file = tmp_path / "install-config.yaml"
    file.write_text("platform:\n  openstack:\n    apiVIP: 10.0.0.5\n")
    given = InstallConfigValues(file)
    assert given.place(given.field("api_vips")[0]) == f"{file}:3: {OPENSTACK}.apiVIP"
    assert given.place(f"{OPENSTACK}.cloud") == f"{file}:2: {OPENSTACK}.cloud"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("~: 1", 1),  # the mapping that has it
        ("null: {a: 1}", 1),
        ("x: .inf", 5),
        ("x: {y: [1, -.Inf]}", 5),
        ("x: .nan", 5),
        ("controlPlane: {cidr: .nan}", 5),  # elsewhere a field for a text
    ],
)
def test_what_json_has_no_form_for(tmp_path: Path, text: str, line: int) -> None:
    """Also in a field that no release knows, and that older releases ignore with a warning."""
    file = tmp_path / "install-config.yaml"
    file.write_text(f"platform:\n  openstack:\n    cloud: .inf\nmetadata: {{annotations: {{a: .nan}}}}\n{text}\n")
    assert [each.where.split(": ")[0] for each in InstallConfigValues(file).repeated] in (
        [f"{file}:{line}"],
        [f"{file}:1"],
    )


def test_letters_that_go_folds(tmp_path: Path) -> None:
    """Go takes the long s and the sign of kelvin for s and k in the name of a field."""
    given = InstallConfigValues({"platform": {"open\u017ftack": {"cloud": "a"}}, "\u212aind": "x"})
    assert given.value("platform.openstack.cloud") == "a"
    assert given.value("kind") == "x"


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (InstallConfigValues, "platform:\n  openstack: {cloud: a, password:s3cret}\n"),
        (lambda path: list(agent_config(path, 18, {})), "hosts:\n- bmc: {username: admin, password:s3cret}\n"),
    ],
    ids=["install-config.yaml", "agent-config.yaml"],
)
def test_a_key_that_may_be_a_secret_is_not_shown(tmp_path: Path, read: Callable[[Path], object], text: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    with pytest.raises(SpecError) as raised:
        read(file)
    assert [mistake.where for mistake in raised.value.mistakes] == [f"{file}:2"]
    assert "s3cret" not in str(raised.value)
