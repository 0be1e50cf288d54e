"""JSON and YAML of others: no text ends the process, whatever its depth."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
import yaml

from openstack_prep.base.formats import foreign_text
from openstack_prep.base.formats.foreign_text import MOST_DEPTH, parse_json, parse_yaml, parse_yaml_documents


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


def block(levels: int) -> str:
    return "".join(f"{' ' * level}a:\n" for level in range(levels))


def aliased(levels: int) -> str:
    """Return a text whose parts contain one another although none is written within another."""
    return "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, levels))


def test_what_is_not_deep_is_read() -> None:
    assert parse_json(b'{"a": [1, "x", null, {}]}') == {"a": [1, "x", None, {}]}
    assert parse_json("3") == 3
    assert parse_json(nested(MOST_DEPTH))
    assert parse_yaml("a: [1, x]") == {"a": [1, "x"]}
    assert parse_yaml("") is None
    assert parse_yaml(nested(MOST_DEPTH))
    assert parse_yaml_documents("a: 1\n---\n- b\n") == [{"a": 1}, ["b"]]


@pytest.mark.parametrize("levels", [MOST_DEPTH + 1, 900, 10_000, 100_000])
def test_deep_json_is_refused(levels: int) -> None:
    with pytest.raises(ValueError, match="levels deep"):
        parse_json(nested(levels))


@pytest.mark.parametrize(
    "text",
    [nested(MOST_DEPTH + 1), nested(100_000), "- " * 10_000, block(2_000), aliased(300), "{" + nested(50_000)],
)
def test_deep_yaml_is_refused(text: str) -> None:
    with pytest.raises(yaml.YAMLError, match="levels deep"):
        parse_yaml_documents(text)


def test_libyaml_alone_would_end_the_process() -> None:
    """As long as this is so, no text of others may reach it unmeasured."""
    code = "import yaml; yaml.load('[' * 200_000, yaml.CSafeLoader)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode != 0


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdef", "bcdefg", strict=True)
)


@pytest.mark.parametrize(
    "text",
    ["a: 2026-13-01", "a: [", BOMB, "a: &a [*a]", "a: 1\n---\nb: 2", "\ud800", "a: \x00", "a: *b", "!x y", "!!bool x"],
)
def test_everything_wrong_with_yaml_is_one_kind_of_error(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        parse_yaml(text)


@pytest.mark.parametrize("begin", ["*", "!", "!!int ", "!!float "])
def test_an_error_quotes_no_value(begin: str) -> None:
    with pytest.raises(yaml.YAMLError) as raised:
        parse_yaml(f"password: {begin}se-cret")
    assert "se-cret" not in str(raised.value)


@pytest.mark.parametrize("libyaml", [True, False])
def test_an_error_names_the_line_and_does_not_quote_it(libyaml: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not libyaml:
        monkeypatch.delattr(yaml, "CSafeLoader")
    with pytest.raises(yaml.YAMLError, match=r"^line [23]: ") as raised:
        parse_yaml("a: 1\npassword: [se-cret\nb: 2")
    assert "se-cret" not in str(raised.value)


@pytest.mark.parametrize("read", [parse_yaml, parse_yaml_documents])
def test_it_is_the_same_without_libyaml(read: Callable[[str], object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(yaml, "CSafeLoader")
    assert read("a: 1")
    with pytest.raises(yaml.YAMLError, match="levels deep"):
        read(nested(50_000))


def test_files_of_the_package_are_read() -> None:
    assert "quota.short" in foreign_text.shipped_yaml("openstack_prep.base", "codes.yaml")
