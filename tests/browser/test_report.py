"""What a browser makes of a report: from a file, without the network."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page


@dataclass
class Opened:
    """A page, and what the browser said and asked for meanwhile."""

    page: Page
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    @property
    def shown(self) -> list[str]:
        return self.page.locator(".item:visible .name").all_inner_texts()


def open_page(browser: Browser, path: Path, scheme: str = "light") -> Opened:
    page = browser.new_page(viewport={"width": 1200, "height": 1000}, color_scheme=scheme)
    opened = Opened(page)
    page.on("console", lambda message: opened.said.append(message.text))
    page.on("pageerror", lambda error: opened.said.append(str(error)))
    page.on("request", lambda request: opened.asked.append(request.url))
    page.goto(path.as_uri())
    return opened


@pytest.fixture
def opened(browser: Browser, report: Path) -> Iterator[Opened]:
    found = open_page(browser, report)
    yield found
    assert found.said == []
    assert found.asked == [report.as_uri()]
    found.page.close()


def test_it_opens_from_a_file_and_hostile_names_are_text(opened: Opened) -> None:
    assert opened.page.title() == "</script><script>window.ran = 1</script>"
    assert opened.page.evaluate("window.ran") is None
    assert opened.page.locator("img, script[src], link").count() == 0
    assert "x\\u202egnp.exe" in opened.shown
    assert opened.page.locator(".drawing svg").count() == 2
    assert opened.page.locator(".drawing").first.bounding_box()["height"] > 200


def test_search_and_filters(opened: Opened) -> None:
    whole = opened.shown
    assert len(whole) > 20
    opened.page.fill("#search", "subnet NODES1")
    assert opened.shown == [each for each in whole if "nodes1" in each and "subnet" in each]
    assert re.fullmatch(r"\d+ of \d+", opened.page.inner_text("#found"))
    opened.page.fill("#search", "mesh-node")  # among the unchanged ones, which are folded
    assert any("mesh-node" in each for each in opened.shown)
    opened.page.fill("#search", "")
    opened.page.click(".chip.delete")
    assert opened.page.locator(".item.delete:visible").count() == 0
    opened.page.click(".chip.delete")
    assert opened.shown == whole
    opened.page.click("#open")
    assert opened.page.locator("details:not([open])").count() == 0
    opened.page.click("#close")
    assert opened.page.locator("details[open]").count() == 0
    opened.page.keyboard.press("/")
    assert opened.page.evaluate("document.activeElement.id") == "search"


def test_without_the_script_all_is_there(browser: Browser, report: Path) -> None:
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(report.as_uri())
    assert not page.locator("#tools").is_visible()
    assert page.locator(".item").count() > 20
    page.locator("details.item summary").first.click()
    assert page.locator("details.item[open] table").count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible(browser: Browser, report: Path, scheme: str) -> None:
    """By axe-core, with everything open and a filter off."""
    page = open_page(browser, report, scheme).page
    page.click("#open")
    page.click(".chip.update")
    found = Axe().run(page).response["violations"]
    assert [(each["id"], [node["html"][:200] for node in each["nodes"][:3]]) for each in found] == []


def test_a_picture_is_scrolled_by_keyboard(browser: Browser, report: Path) -> None:
    page = open_page(browser, report).page
    page.set_viewport_size({"width": 400, "height": 800})
    drawing = page.locator(".drawing").first
    drawing.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("each => each.scrollLeft > 0", arg=drawing.element_handle())


def test_dark_and_light(browser: Browser, report: Path) -> None:
    grounds = {}
    for scheme in ("light", "dark"):
        page = open_page(browser, report, scheme).page
        drawn = [page.locator(each).first for each in (".paper", "svg text")]
        colors = [each.evaluate("each => getComputedStyle(each).fill") for each in drawn]
        grounds[scheme] = [page.evaluate("getComputedStyle(document.body).backgroundColor"), *colors]
    assert all(one != other for one, other in zip(*grounds.values(), strict=True))


def test_it_prints(opened: Opened, tmp_path: Path) -> None:
    pdf = opened.page.pdf(prefer_css_page_size=True, print_background=True)
    assert 20_000 < len(pdf) < 1_000_000
    sizes = [tuple(map(float, each)) for each in re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)]
    assert sum(width > height for width, height in sizes) == 2  # the pictures, each on a page of its own
    assert 4 <= len(sizes) <= 8


def test_the_policy_stops_a_script_that_is_not_ours(browser: Browser, report: Path, tmp_path: Path) -> None:
    broken = tmp_path / "report.html"
    added = "<script>window.ran = 1</script><img src='http://127.0.0.1:9/x'><p style='color: red' onclick='1'>"
    broken.write_text(report.read_text().replace("<footer>", f"{added}<footer>"))
    opened = open_page(browser, broken)
    assert opened.page.evaluate("window.ran") is None
    assert len([each for each in opened.said if "Content Security Policy" in each]) >= 3
