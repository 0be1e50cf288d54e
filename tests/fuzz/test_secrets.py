"""A marker in every secret of every kind: none of them in any output, log, open file or repr.

Commands succeed, fail and crash, in all formats, with --debug, on whole and on damaged files.
"""

from __future__ import annotations

import json
import logging
import os
import pickle
import pprint
import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import requests_mock
from hypothesis import given
from hypothesis import strategies as st

from openstack_prep import load_spec
from openstack_prep.base.secret import Secret
from tests.fuzz import corpus
from tests.fuzz.marked import GENERATED, MARK, PLACES, SPEC, files
from tests.fuzz.mutating import _add, _double, _remove, _replace, as_yaml, steps_of
from tests.fuzz.running import Outcome, run
from tests.unit.conftest import ADMIN_PROJECT, ENDPOINTS, IDENTITY, failure

VERSION = {"id": "v3.14", "status": "stable", "links": [{"rel": "self", "href": f"{IDENTITY}/"}]}
PREVIEW = f"{ENDPOINTS['orchestration']}/stacks/preview"
FORMS = ("text", "json", "yaml")
COMMANDS = """
0 validate spec.yaml
0 kubernetes checklist spec.yaml
2 plan spec.yaml
0 plan --destroy spec.yaml
2 plan -o saved.plan spec.yaml
0 show spec.yaml
1 audit spec.yaml
2 apply --yes spec.yaml
0 destroy --yes spec.yaml
2 credential rotate --yes spec.yaml
0 unlock --yes spec.yaml
0 support-bundle spec.yaml
2 rke render spec.yaml
2 rke mesh spec.yaml
1 exposures show spec.yaml
2 address-pairs sync spec.yaml
2 pre-ipi --yes spec.yaml
1 check --release 4.20 install-config.yaml
2 names
0 export
0 export --os-cloud token
1 verify --infra-id dev-x7k2p
2 verify --metadata metadata.json
0 cleanup --plan --metadata metadata.json
2 post-ipi --yes --vip 10.0.0.5 --metadata metadata.json
2 plan --os-cloud credential spec.yaml
2 plan --os-cloud none spec.yaml
0 rke check cluster.yml
0 rke check --rke2 server config.yaml
0 kubernetes convert cluster.yml
0 exposures convert services.json --to metallb
2 address-pairs sync --tag t --within 10.0.0.0/8 --services services.json --dry-run
""".strip().splitlines()
"""Exit codes and commands.  Those that end with 2 are refused for what this folder or cloud lacks, after secrets were
read; ``tests/functional/test_secrets.py`` applies and destroys on a devcloud."""
CRASHES = [
    *("openstack_prep.core.planner.plan_apply", "openstack_prep.core.planner.plan_destroy"),
    *("openstack_prep.core.executor.execute", "openstack_prep.core.observation.examine"),
    *("openstack_prep.cloud.service.Service.get", "openstack_prep.spec.completion.derive"),
    *("openstack_prep.resources.identity.user.User.find", "openstack_prep.verbs.opening.resolve_spec"),
    "openstack_prep.cli.project.verbs.print_result",
]
LEAK = re.compile(f"{MARK}[a-z0-9-]*")


def leaks(text: str) -> set[str]:
    return set(LEAK.findall(text))


@pytest.fixture
def whole(
    folder: Path, empty_cloud: requests_mock.Mocker, flavors: list[Any], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A folder with a spec and files that hold all markers; a cloud in which nothing stands; logs are collected."""
    for name, text in files().items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o600)
    empty_cloud.get("http://keystone/", json={"versions": {"values": [VERSION]}})
    nova = {"id": "v2.1", "status": "CURRENT", "version": "2.96", "min_version": "2.1"}
    links = [{"rel": "self", "href": f"{ENDPOINTS['compute']}/"}]
    project = {"id": ADMIN_PROJECT, "name": "admin", "domain_id": "default", "enabled": True, "description": ""}
    empty_cloud.get(f"{IDENTITY}/projects/{ADMIN_PROJECT}", json={"project": project | {"tags": [], "options": {}}})
    empty_cloud.get(f"{IDENTITY}/projects/project", json={"project": project | {"id": "project", "name": "lease"}})
    empty_cloud.get(re.compile("^http://swift/v1/"), json=[])
    for missing in ("/v2/images/i$", "/os-keypairs/k$"):  # what the nodes of the stacks need
        empty_cloud.get(re.compile(missing), **failure(404))
    empty_cloud.get("http://nova/", json={"versions": [nova | {"links": links}]})
    empty_cloud.post(PREVIEW, json={"stack": {"resources": []}})
    for name, value in GENERATED.items():
        monkeypatch.setenv(name, value)
    before = logging.getLogger().handlers[:]
    logging.getLogger().setLevel(logging.DEBUG)
    yield folder
    logging.getLogger().handlers[:] = before


def call(command: str, form: str = "text", *, debug: bool = True) -> Outcome:
    """Run a command with --debug, whose log goes to what is caught as standard error."""
    words = command.split()
    for each in logging.getLogger().handlers[:]:
        if type(each) is logging.StreamHandler:
            logging.getLogger().removeHandler(each)
    return run([*words, *(["--debug"] if debug else []), *(["--format", form] if form != "text" else [])])


def open_files(folder: Path) -> list[str]:
    """Return files with a marker that others than their owner can read."""
    found = []
    for path in (each for each in folder.rglob("*") if each.is_file()):
        if path.stat().st_mode & 0o077 and LEAK.search(path.read_text(errors="replace")):
            found.append(str(path))
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_no_output_and_no_open_file_has_a_secret(command: str, whole: Path, caplog: pytest.LogCaptureFixture) -> None:
    os.umask(0)
    code, _, command = command.partition(" ")
    for form in FORMS:
        found = call(command, form)
        assert not leaks(found.out + found.err), command
        assert not leaks(caplog.text), command
        assert found.code == int(code), found.err
        assert "internal error" not in found.err, found.err
    assert not open_files(whole)


def test_a_support_bundle_has_no_secret(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENSTACK_PREP_REQUEST_LOG", "on")
    monkeypatch.setenv("XDG_STATE_HOME", str(whole / "state"))
    for command in ("plan spec.yaml", "apply --yes spec.yaml", "export", "plan --os-cloud token spec.yaml"):
        call(command, debug=False)
    for name, words in {"a.yaml": "", "b.yaml": " --os-cloud token", "c.yaml": " --offline"}.items():
        assert call(f"support-bundle spec.yaml --output {name}{words}", debug=False).code == 0
        text = (whole / name).read_text()
        assert "GET identity/projects" in text
        assert not leaks(text)
    logs = [each.read_text() for each in (whole / "state").rglob("*.jsonl")]
    assert len(logs) == 4
    assert not leaks("".join(logs))


@pytest.mark.parametrize("place", CRASHES)
def test_a_crash_shows_no_secret(
    place: str, whole: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def crash(*words: object, **more: object) -> None:
        raise RuntimeError("forced")

    monkeypatch.setattr(place, crash)
    crashed = 0
    for command in ("plan spec.yaml", "apply --yes spec.yaml", "destroy --yes spec.yaml", "validate spec.yaml"):
        found = call(command)
        assert not leaks(found.out + found.err + caplog.text), command
        crashed += "internal error: RuntimeError: forced" in found.err
    assert crashed


def test_no_repr_has_a_secret(whole: Path) -> None:
    spec = load_spec(whole / "spec.yaml")
    for each in (spec, *spec.parts, *spec.resources):
        for text in (repr(each), str(each), pprint.pformat(each), f"{each!r:>9}"):
            assert not leaks(text), type(each)
    with pytest.raises(TypeError):
        pickle.dumps(Secret("word"))


@given(data=st.data())
def test_no_message_about_a_damaged_spec_has_a_secret(data: st.DataObject, whole: Path) -> None:
    """Changes spare the names of secrets: whoever moves one to another key has written it down there."""
    spec = deepcopy(SPEC)
    for _ in range(data.draw(st.integers(1, 3))):
        paths = [each for each in steps_of(spec) if each and not isinstance(_at(spec, each), str)]
        change = data.draw(st.sampled_from((_replace, _remove, _add, _double)))
        spec = change(data.draw, spec, data.draw(st.sampled_from(paths or [()])))
    text = as_yaml(spec).encode("utf-8", "surrogatepass")
    if data.draw(st.booleans()):
        text = text[: data.draw(st.integers(0, len(text)))]
    (whole / "spec.yaml").write_bytes(text)
    for command in ("validate spec.yaml", "plan spec.yaml"):
        found = call(command, data.draw(st.sampled_from(FORMS)), debug=False)
        assert not leaks(found.out + found.err)


def _at(data: Any, steps: Any) -> Any:
    for step in steps:
        data = data[step]
    return data


def test_every_marker_is_read(whole: Path) -> None:
    """The trials would be worth nothing if the markers did not reach the secrets."""
    assert len(PLACES) == len(set(PLACES)) > 25
    assert call("validate spec.yaml").code == 0
    text = json.dumps(SPEC) + "".join(files().values()) + "".join(GENERATED.values())
    assert {each for each in PLACES if f"{MARK}{each}" not in text} == set()
    assert corpus.ID in text
