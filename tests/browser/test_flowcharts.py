"""The flowcharts of the guides, as the site draws them."""

from __future__ import annotations

import importlib.util
import re
import sys
from itertools import combinations
from pathlib import Path
from types import ModuleType

import pytest
from playwright.sync_api import Browser

DOCS = Path(__file__).parents[2] / "docs"
CHARTS = [
    pytest.param(text, id=f"{page.stem}-{number}")
    for page in sorted(DOCS.glob("*.md"))
    for number, text in enumerate(re.findall(r"^```mermaid\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE))
]
PLACES = """
all => [...all].map(one => [...one.querySelectorAll('rect, text')].map(each => {
    const found = each.getBoundingClientRect()
    return [each.tagName, found.left, found.top, found.right, found.bottom]
}))
"""
Edges = tuple[float, float, float, float]


@pytest.fixture(scope="module", name="flowchart")
def _flowchart() -> ModuleType:
    found = importlib.util.spec_from_file_location("flowchart", DOCS / "flowchart.py")
    assert found is not None
    assert found.loader is not None
    module = sys.modules[found.name] = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def inside(inner: Edges, outer: Edges) -> bool:
    return all(a >= b - 0.5 for a, b in zip(inner[:2], outer[:2], strict=True)) and all(
        a <= b + 0.5 for a, b in zip(inner[2:], outer[2:], strict=True)
    )


def apart(one: Edges, other: Edges) -> bool:
    return one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def test_the_guides_have_some() -> None:
    begun = sum(page.read_text().count("\n```mermaid\n") for page in DOCS.glob("*.md"))
    assert len(CHARTS) == begun > 0


@pytest.mark.parametrize("text", CHARTS)
def test_boxes_hold_their_texts_and_lie_apart(browser: Browser, flowchart: ModuleType, text: str) -> None:
    asked: list[str] = []
    page = browser.new_page(viewport={"width": 3000, "height": 1000})
    page.on("request", lambda request: asked.append(request.url))
    page.set_content(f"<body>{flowchart.draw(flowchart.read(text))}</body>")
    places = page.locator("svg .box").evaluate_all(PLACES)
    whole = page.locator("svg").bounding_box()
    assert whole is not None
    paper = (whole["x"], whole["y"], whole["x"] + whole["width"], whole["y"] + whole["height"])
    boxes: list[Edges] = []
    for (kind, *box), *texts in places:
        assert kind == "rect"
        assert texts
        assert all(inside(tuple(each[1:]), tuple(box)) for each in texts)
        assert inside(tuple(box), paper)
        boxes.append(tuple(box))
    assert len(boxes) == len(flowchart.read(text).ids)
    assert all(apart(one, other) for one, other in combinations(boxes, 2))
    assert asked == []
    page.close()


@pytest.mark.parametrize(
    "text",
    ["graph TD\n  a --> b", "flowchart LR\n  a{choice} --> b", "flowchart LR\n  a ==> b", "flowchart LR\n  a -->"],
)
def test_what_is_not_read_is_an_error(flowchart: ModuleType, text: str) -> None:
    with pytest.raises(ValueError, match="write "):
        flowchart.read(text)
