"""Values in texts, and stored texts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from openstack_prep.base.errors import Mistake, SpecError
from tests.unit import texts
from tests.unit.texts import HERE, STORED, StoredTexts, contains, expect_error


def test_each_stored_text_belongs_to_a_test() -> None:
    for path in STORED.rglob("*.yaml"):
        source = HERE.joinpath(path.relative_to(STORED)).with_suffix(".py").read_text()
        tests = set(re.findall(r"^def (test_\w+)\([^)]*\bwording\b", source, re.MULTILINE))
        assert {re.sub(r"\[.*", "", name, flags=re.DOTALL) for name in texts.read(path)} <= tests, path


@pytest.mark.parametrize(
    ("values", "whole"),
    [(("1",), False), (("10",), True), (("/a/b",), True), (("b", "10"), True), (("b-",), True), (("c",), False)],
)
def test_a_value_is_a_word_of_its_own(values: tuple[str, ...], whole: bool) -> None:
    assert contains("10 of /a/b-cd", *values) == whole


def test_an_error_has_its_class_its_values_and_its_code() -> None:
    error = SpecError([Mistake("x.yaml:3", "is 10", code="spec.invalid-value")])
    with expect_error(SpecError, "x.yaml:3", 10, code="spec.invalid-value") as caught:
        raise error
    assert caught.value is error
    for values, code in ((("1",), ""), ((), "spec.invalid")):
        with pytest.raises(AssertionError), expect_error(SpecError, *values, code=code):
            raise error


def test_a_text_that_differs_from_the_stored_one_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "STORED", tmp_path)

    def compare(*values: object) -> StoredTexts:
        compared = StoredTexts(HERE / "x" / "test_y.py", "test_a", tmp_path)
        for value in values:
            compared(value)
        return compared

    monkeypatch.setenv("OPENSTACK_PREP_STORE", "1")
    compare(f"{tmp_path}/a", ["b", {"c": 1}]).end()
    assert (tmp_path / "x" / "test_y.yaml").read_text() == "test_a:\n- FOLDER/a\n- - b\n  - c: 1\n"
    monkeypatch.delenv("OPENSTACK_PREP_STORE")
    compare(f"{tmp_path}/a", ["b", {"c": 1}]).end()
    for values in (("a",), (f"{tmp_path}/a", ["b", {"c": 2}]), (f"{tmp_path}/a", ["b", {"c": 1}], "more")):
        with pytest.raises(AssertionError):
            compare(*values)
    with pytest.raises(AssertionError):
        compare(f"{tmp_path}/a").end()
