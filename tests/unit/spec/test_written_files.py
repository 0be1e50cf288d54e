from __future__ import annotations

import os
from pathlib import Path

import pytest

from openstack_prep.base.errors import SpecError
from openstack_prep.spec import load_spec
from openstack_prep.spec.resolving import refuse_mistakes

SPEC = """\
name: x
project: {name: x}
users:
  - {name: u, password: {generate: u.password}}
  - {name: v, password: {generate: v.password}}
clouds_yaml:
  - {path: clouds.yaml, cloud: x, user: u}
  - {path: clouds.yaml, cloud: y, user: v}
application_credentials:
  - {name: app, clouds_yaml: clouds.yaml, cloud: app}
env_file:
  path: x.env
install_config:
  path: x/install-config.yaml
  cluster_name: x
  base_domain: example.com
  release: "4.20"
  cloud: x
  pull_secret_file: pull-secret.json
  external_network: external
  machines: {flavor: m}
"""


def conflicts(tmp_path: Path, *changes: tuple[str, str]) -> list[tuple[str, str]]:
    """Return the line and the text of each conflict in the spec with some texts replaced."""
    text = SPEC
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    (tmp_path / "spec.yaml").write_text(text)
    spec = load_spec(tmp_path / "spec.yaml")
    try:
        refuse_mistakes(spec)
    except SpecError as error:
        found = error.mistakes
    else:
        found = ()
    assert {each.code for each in found} <= {"spec.contradiction"}
    return [(each.where.split(":")[1], each.what) for each in found]


def test_different_files_and_entries_are_no_conflict(tmp_path: Path) -> None:
    assert conflicts(tmp_path) == []
    assert conflicts(tmp_path, ("v.password", "u.password")) == []  # both users have one password


@pytest.mark.parametrize(
    ("change", "first", "second"),
    [
        (("x.env", "clouds.yaml"), "12", "10"),
        (("x.env", "./x/../clouds.yaml"), "12", "10"),
        (("x.env", "u.password"), "12", "4"),
        (("x.env", "linked.env"), "12", "4"),
        (("x.env", "hard.env"), "12", "4"),
        (("cloud: app", "cloud: y"), "10", "8"),
        (("v.password", "clouds.yaml"), "10", "5"),
        (("x/install-config.yaml", "x.env"), "14", "12"),
        (("v.password", "x/install-config.yaml.kept"), "14", "5"),
    ],
)
def test_one_file_for_two_is_refused_at_both_lines(
    tmp_path: Path, change: tuple[str, str], first: str, second: str
) -> None:
    (tmp_path / "linked.env").symlink_to("u.password")
    (tmp_path / "u.password").touch(mode=0o600)
    os.link(tmp_path / "u.password", tmp_path / "hard.env")
    line, what = conflicts(tmp_path, change)[0]
    other = second if line == first else first
    assert line in (first, second)
    assert f"({tmp_path}/spec.yaml:{other})" in what
