"""Files that are read once a cloud answers, damaged: refused by their names, and nothing is written to the cloud."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import requests_mock
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.fuzz import corpus
from tests.fuzz.mutating import Raw, as_json, changed, damaged
from tests.fuzz.running import judge, judge_refusal, run
from tests.fuzz.trials import BESIDE, Trial
from tests.unit.conftest import CLOUDS, ENDPOINTS

POOL_FILE = "{name: lab, path: pool.yaml, cidr: 10.0.0.0/24, gateway: 10.0.0.1, addresses: [10.0.0.100-10.0.0.199]}"
SPECS = {
    "image.yaml": "name: lab\nimages: [{name: rhcos, rhcos: {stream: stream.json}}]\n",
    "pool_file.yaml": f"name: lab\npool_files: [{POOL_FILE}]\n",
    "flavors.yaml": "name: lab\nflavors: [{name: a, vcpus: 4, ram: 16GiB, disk: 25}, {name: b, vcpus: 1, ram: 1}]\n",
    "entry.yaml": "name: lab\nclouds_yaml: [{path: written.yaml, cloud: lab, user: me, password: word}]\n",
}
PREVIEW = f"{ENDPOINTS['orchestration']}/stacks/preview"
STACK = r"stack\.yaml:2: stack/s"
TRIALS = [
    Trial("stack", "template.yaml", lambda: [corpus.TEMPLATE], ["plan stack.yaml"], named=STACK),
    Trial("stack-json", "template.yaml", lambda: [corpus.TEMPLATE], ["plan stack.yaml"], as_json, named=STACK),
    Trial("stream", "stream.json", corpus.streams, ["plan image.yaml"], as_json),
    Trial("stream-yaml", "stream.json", lambda: corpus.streams()[-1:], ["plan image.yaml"]),
    Trial("pool", "pool.yaml", lambda: [corpus.POOL], ["plan pool_file.yaml", "plan --destroy pool_file.yaml"]),
    Trial(
        "written-clouds.yaml", "written.yaml", lambda: [corpus.CLOUDS], ["plan entry.yaml", "plan --destroy entry.yaml"]
    ),
]


@pytest.fixture
def cloud(folder: Path, empty_cloud: requests_mock.Mocker, flavors: list[dict[str, Any]]) -> requests_mock.Mocker:
    """A cloud in which nothing stands, and specs for it."""
    (folder / "clouds.yaml").write_text(CLOUDS)
    for name, text in (BESIDE | SPECS).items():
        (folder / name).write_text(text)
    empty_cloud.post(PREVIEW, json={"stack": {"resources": []}})
    return empty_cloud


SAME = ("steps", "spec", "files", "allow_replace")
"""Parts of a saved plan that must be as they were for it to be applied."""


def writes(cloud: requests_mock.Mocker) -> list[str]:
    """Return the requests that change something, unlike logins and questions about stacks."""
    asked = [each for each in cloud.request_history if each.method not in ("GET", "HEAD")]
    return [f"{each.method} {each.url}" for each in asked if not each.url.endswith(("/auth/tokens", "/preview"))]


@pytest.mark.parametrize("trial", TRIALS, ids=str)
@given(data=st.data())
def test_a_damaged_file_changes_nothing(
    trial: Trial, cloud: requests_mock.Mocker, folder: Path, data: st.DataObject
) -> None:
    cloud.reset_mock()
    (folder / trial.file).write_bytes(data.draw(damaged(trial.documents(), trial.form)))
    found = run(data.draw(st.sampled_from(trial.commands)).split())
    judge(found, (0, 2))
    if found.code == 2:
        judge_refusal(found, trial.named or trial.file)
    assert not writes(cloud)


def resealed(content: dict[str, Any]) -> dict[str, Any]:
    """Return a saved plan with the digest that fits, as somebody would who knows how it is made."""
    rest = {name: value for name, value in content.items() if name != "digest"}
    try:
        canonical = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError):
        return content
    return {**rest, "digest": hashlib.sha256(canonical.encode()).hexdigest()}


@given(data=st.data())
def test_a_changed_plan_is_not_applied(
    cloud: requests_mock.Mocker, flavors: list[dict[str, Any]], folder: Path, data: st.DataObject
) -> None:
    del flavors[:]
    path = folder / "saved.plan"
    path.unlink(missing_ok=True)
    assert run(["plan", "-o", "saved.plan", "flavors.yaml"]).code == 0
    saved = json.loads(path.read_text())
    if data.draw(st.booleans()):
        content = data.draw(changed([saved]))
        assume(isinstance(content, dict) and not isinstance(content, Raw))
        path.write_text(as_json(resealed(content)), encoding="utf-8", errors="surrogatepass")
    else:
        path.write_bytes(data.draw(damaged([saved], as_json)))
    cloud.reset_mock()
    found = run(["apply", "--plan", "saved.plan"])
    judge(found, (0, 2))
    if found.code == 2:
        judge_refusal(found, "saved.plan|flavors.yaml")
        assert not writes(cloud)
    else:
        now = json.loads(path.read_bytes().decode("utf-8-sig"))
        assert [now[name] for name in ("steps", "spec", "files")] == [
            saved[name] for name in ("steps", "spec", "files")
        ]
