from __future__ import annotations

import pytest
import yaml

from openstack_prep.base.formats.yaml_text import dump, one_line
from openstack_prep.base.secret import Secret


def test_in_order_without_anchors_and_with_its_secrets() -> None:
    shared = {"b": 1, "a": Secret("hush\n")}
    assert dump({"z": shared, "y": shared, "ü": None}) == (
        "z:\n  b: 1\n  a: |\n    hush\n'y':\n  b: 1\n  a: |\n    hush\nü: null\n"
    )


def test_several_documents() -> None:
    assert dump({"a": 1}, {"b": 2}) == "a: 1\n---\nb: 2\n"


def test_a_list_is_a_document() -> None:
    assert dump([{"op": "add", "path": "/a/-"}, "y"]) == "- op: add\n  path: /a/-\n- 'y'\n"


@pytest.mark.parametrize(
    "text",
    [
        *("y", "N", "1e3", "12345e67", "1.5", ".5", "0o17", "yes", "0x1f", "2026-01-31", "null"),
        *("012345", "09", "0B11", "0X1f", "-0o7", "0O17", "1_0e3", "+.5", "Off", "~", "-.inf", ".NaN"),
    ],
)
def test_texts_that_go_takes_for_something_else_are_quoted(text: str) -> None:
    assert dump({"v": text, "s": Secret(text)}) == f"v: '{text}'\ns: '{text}'\n"


@pytest.mark.parametrize(
    "text", ["v1.31.1-rancher1-1", "10.0.0.1", "abc", "1.2.3", "a\nb", "|", "# no", "e5", "a\x85", "\u2028b\nc"]
)
def test_texts_come_back(text: str) -> None:
    assert yaml.safe_load(dump({"v": text})) == {"v": text}


@pytest.mark.parametrize("text", ["y", "12:34:56:10:20:30", "a\nb", "x, y", "{", "", "2026-01-31"])
def test_a_document_on_one_line_comes_back(text: str) -> None:
    written = one_line({"a": {"v": text, "w": [text]}, text: 1})
    assert "\n" not in written
    assert yaml.safe_load(written) == {"a": {"v": text, "w": [text]}, text: 1}
