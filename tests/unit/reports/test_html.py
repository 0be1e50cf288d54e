from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import stat
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import CloudError, ConfigError
from openstack_prep.cli.main import main
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.model import Action, Observed, Result, Status
from openstack_prep.core.plan import Report
from openstack_prep.core.planner import plan_apply
from openstack_prep.pictures.svg import style_sheet
from openstack_prep.pictures.topology.elements import Topology
from openstack_prep.reports import files, html, html_content
from openstack_prep.reports.html import Item, Page, PageSection, Picture
from openstack_prep.reports.html_content import page_of_run
from openstack_prep.spec import load_spec
from openstack_prep.verbs import api
from tests.unit.box import Box
from tests.unit.conftest import ENDPOINTS, connection, failure
from tests.unit.texts import Wording, contains

DATA = Path(__file__).parents[1] / "data"
NAME = "</script><script>x</script>\n\u202e\"'&\x1b[31m"
VOID = ("meta", "input", "br")
SPEC = """\
name: lab
clouds: {admin: lab}
flavors: [{name: master, vcpus: 4, ram: 16GiB, disk: 25}]
networks: [{name: nodes}]
"""


class Reader(HTMLParser):
    """Lists the elements of a page, and its texts by line; every element must be closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip() and self.open[-1] not in ("style", "script", "footer"):
            self.texts.append(data.strip())


def page(**fields: Any) -> Page:
    given = {"title": "Plan", "verdict": "fine", "good": True, "made": datetime(2026, 11, 23, 12, tzinfo=UTC)}
    return Page(**given | fields)


def stored_data(name: str) -> Any:
    return json.loads((DATA / name).read_text())


def plan_data(**fields: Any) -> dict[str, Any]:
    return {"steps": stored_data("plan.json"), "undeclared": [], "refusals": [], "warnings": []} | fields


LEAST_CONTRAST = 4.5
"""Source: W3C, "Web Content Accessibility Guidelines 2.2", 1.4.3, as the formula of the contrast."""


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours such as #ffffff, from 1 to 21."""

    def luminance(color: str) -> float:
        parts = (int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def rules(sheet: str) -> list[dict[str, str]]:
    """Return the colours that each rule of a style sheet sets."""
    found = (dict(re.findall(r"--([\w-]+): (#\w{6});", block)) for block in re.findall(r"\{([^{}]*)\}", sheet))
    return [each for each in found if each]


def test_chips_and_texts_have_enough_contrast() -> None:
    """On light and dark screens and on paper; no opacity makes it less."""
    found = rules(html._resource("report.css"))
    chips = [each for each in found if "hue" in each]
    pages = [each for each in found if "page" in each]
    assert (len(chips), len(pages)) == (18, 3)
    pairs = [(each["hue"], each["tint"]) for each in chips]
    pairs += [(each[text], each[ground]) for each in pages for text in ("ink", "soft") for ground in ("page", "card")]
    assert [each for each in pairs if contrast(*each) < LEAST_CONTRAST] == []
    assert {*re.findall(r"opacity: ([\d.]+)", html._resource("report.css"))} == {"1"}


def test_pictures_have_enough_contrast() -> None:
    found = [each for each in rules(style_sheet()) if "paper" in each]
    assert len(found) == 3
    for colors in found:
        grounds, hues = ("paper", "panel", "box"), [each.removesuffix("-fill") for each in colors if "-fill" in each]
        assert len(hues) == 10
        pairs = [(text, ground) for text in ("ink", "soft", *hues) for ground in grounds]
        pairs += [(text, f"{hue}-fill") for hue in hues for text in ("ink", "soft", hue)]
        low = [each for each in pairs if contrast(*map(colors.__getitem__, each)) < LEAST_CONTRAST]
        assert low == []


def test_what_a_plan_says(stored: Callable[[str, str], None]) -> None:
    refusal = {
        "status": "error",
        "where": "quota/a",
        "what": "is too small",
        "why": "",
        "fix": "raise it",
        "code": "x.y",
    }
    sections = list(html_content.plan_sections(plan_data(refusals=[refusal], warnings=["old release"])))
    stored("../reports/data/plan.txt", "\n".join(Reader(page(sections=sections).html()).texts))


@pytest.mark.parametrize(("changed", "drawn"), [(10, 10), (0, 0), (170, 0)])
def test_of_a_large_plan_only_changes_are_drawn(changed: int, drawn: int) -> None:
    boxes = [Box(name=str(each)) for each in range(182)]
    plan = plan_apply("lab", boxes, {each.key: Observed(id=each.name) for each in boxes[changed:]})
    (picture,) = html_content.of_plan(plan)
    assert picture.svg.count('class="create"') - bool(drawn) == drawn  # one is in the legend
    assert picture.svg.count('class="keep"') == 0
    assert picture.note


def test_prune_is_only_named_for_what_it_deletes() -> None:
    removed, kept = ({**stored_data("plan.json")[0], "action": action} for action in ("delete", "keep"))
    for sections in (
        html_content.plan_sections(plan_data(steps=[], undeclared=[removed, kept])),
        html_content.report_sections({"steps": [], "undeclared": [removed, kept]}, ()),
    ):
        assert [("only with --prune" in each.note, len(each.items)) for each in sections] == [(True, 1), (False, 1)]


def test_what_a_run_says(stored: Callable[[str, str], None]) -> None:
    sections = list(html_content.report_sections(stored_data("report.json"), stored_data("plan.json")))
    stored("../reports/data/run.txt", "\n".join(Reader(page(sections=sections).html()).texts))


def test_what_findings_say(stored: Callable[[str, str], None]) -> None:
    chains = stored_data("verify.json")["chains"]
    sections = [html_content.findings(each["target"], each["links"]) for each in chains]
    drift = [{"resource": "port/a", "code": "pairs", "what": "allows 10.0.0.9"}]
    sections += [html_content.drift_section(drift), html_content.drift_section([])]
    stored("../reports/data/findings.txt", "\n".join(Reader(page(sections=sections).html()).texts))


def test_names_of_others_are_text_and_the_policy_knows_our_script_alone() -> None:
    item = Item(kind=NAME, sign=NAME, name=NAME, summary=NAME, rows=[(NAME, NAME), (NAME, NAME, NAME)], code=NAME)
    hostile = page(
        title=NAME,
        verdict=NAME,
        facts=[(NAME, NAME)],
        sections=[PageSection(title=NAME, items=[item], note=NAME)],
        pictures=[Picture(title=NAME, note=NAME)],
    ).html()
    plain = page(sections=[PageSection(title="a", items=[Item(kind="a", sign="a", name="a", rows=[("a", "b", "c")])])])
    read = Reader(hostile)
    assert read.tags - Reader(plain.html()).tags <= {"p", "pre"}
    assert not {each for each in read.attributes if each.startswith("on") or each in ("src", "href", "style")}
    assert "\u202e" not in hostile
    assert "\x1b" not in hostile
    for tag in ("style", "script"):
        (content,) = re.findall(f"<{tag}>(.*?)</{tag}>", hostile, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in hostile
    assert "default-src 'none'" in hostile
    assert "url(" not in hostile
    assert "@import" not in hostile


def test_a_report_is_private_and_replaces_only_reports(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    files.write("html", file, page().html())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    files.write("html", file, page(title="again").html())
    assert "again" in file.read_text()
    spec = tmp_path / "spec.yaml"
    spec.write_text("name: lab\n")
    for wrong, what in [(spec, "is not a report"), (tmp_path, "is a folder"), (tmp_path / "a/b", "does not exist")]:
        with pytest.raises(ConfigError, match=what):
            files.write("html", wrong, page().html())
    assert spec.read_text() == "name: lab\n"


def test_a_link_to_a_page_is_replaced_and_streams_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    target, link = tmp_path / "target.html", tmp_path / "link.html"
    files.write("html", target, page().html())
    link.symlink_to(target)
    files.write("html", link, page(title="again").html())
    assert not link.is_symlink()
    assert "again" not in target.read_text()
    os.mkfifo(tmp_path / "pipe")
    for wrong in (tmp_path / "pipe", Path("/dev/null"), Path("/dev/stdout"), Path("/dev/new.html")):
        with pytest.raises(ConfigError) as caught:
            files.judge("html", wrong)
        wording(caught.value)
    monkeypatch.setattr(os, "access", lambda *_: False)  # for root every folder is writable
    with pytest.raises(ConfigError, match="is not writable"):
        files.judge("html", target)


def test_a_cloud_that_cannot_be_read_costs_the_picture_alone() -> None:
    def look() -> Topology:
        raise CloudError("GET ports: 503")

    assert html_content.of_topology(look).note == "Not drawn: GET ports: 503"
    assert html_content.of_topology(lambda: {}["x"]).note == "Not drawn: KeyError: 'x'"
    assert "no networks" in html_content.of_topology(lambda: Topology(subject="project p")).note


@pytest.fixture
def lab(clouds_yaml: Path, empty_cloud: requests_mock.Mocker, flavors: list[dict[str, Any]]) -> Path:
    path = clouds_yaml.parent / "spec.yaml"
    path.write_text(SPEC)
    return path


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("plan", 0, ["Plan to apply lab", "2 to create", "flavor/master", "Dependency graph", "Networks of spec lab"]),
        ("plan --destroy", 0, ["Plan to destroy lab"]),
        ("audit", 1, ["Audit of lab", "2 differences", "flavor/master"]),
        ("check --offline --release 4.20", 2, ["Check of install-config.yaml", "Unreadable", "spec.yaml"]),
        ("apply --yes", 1, ["Apply of lab", "1 done, 1 failed", "flavor/master", "network/nodes"]),
    ],
)
def test_commands_write_it(
    lab: Path, services: requests_mock.Mocker, command: str, code: int, words: list[str]
) -> None:
    services.post(f"{ENDPOINTS['network']}/v2.0/networks", **failure(400, "no more networks"))
    assert main([*command.split(), str(lab), "--html", "report.html"]) == code
    text = " ".join(Reader(Path("report.html").read_text()).texts)
    assert [each for each in words if each not in text] == []


def test_a_run_shows_its_own_steps_and_the_networks_that_exist_now(lab: Path, services: requests_mock.Mocker) -> None:
    cloud, spec = Cloud(connection()), load_spec(lab)
    plan = api.plan(cloud, spec)
    made_again = [replace(each, action=Action.KEEP) for each in plan]
    report = Report(tuple(Result(step=each, status=Status.DONE) for each in made_again))
    asked = len([each for each in services.request_history if "/v2.0/networks" in each.url])
    found = page_of_run(cloud, plan, report, report.data(), lab, 1)
    assert [each.title for each in found.sections] == ["Unchanged"]
    assert found.pictures[0].svg == next(html_content.of_plan(replace(plan, steps=tuple(made_again)))).svg
    assert found.pictures[0].svg != next(html_content.of_plan(plan)).svg
    assert found.pictures[1].note == ""
    assert len([each for each in services.request_history if "/v2.0/networks" in each.url]) > asked


def test_the_file_is_judged_before_the_work(
    lab: Path, services: requests_mock.Mocker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["apply", "--yes", str(lab), "--html", str(lab)]) == 2
    assert "is an input" in capsys.readouterr().err
    assert main(["apply", "--yes", str(lab), "--html", "clouds.yaml"]) == 2
    assert contains(capsys.readouterr().err, "--html", "clouds.yaml", "report", "[config.invalid]")
    assert services.request_history == []
