from __future__ import annotations

import pytest

from openstack_prep.base.errors import DownloadError
from openstack_prep.openshift.tools.fetching import parse
from tests.unit.texts import expect_error

A, B = "a" * 64, "B" * 64


def test_a_list() -> None:
    text = f"{A}  oc.tar.gz\n\n{B} *release.txt\r\n{A}  oc.tar.gz\n"
    assert parse(text.encode(), "x") == {"oc.tar.gz": A, "release.txt": B.lower()}


@pytest.mark.parametrize(
    "line",
    [f"{A}", f"{A} oc", f"{A[1:]}  oc", f"{A}0  oc", "<!DOCTYPE html>", f"{A}  two words", "\x00\xff" * 500],
)
def test_a_line_that_is_none(line: str) -> None:
    with expect_error(DownloadError, "x:2", "SHA-256"):
        parse(f"{A}  oc\n{line}\n".encode("latin-1"), "x")


def test_a_name_with_two_sums() -> None:
    with expect_error(DownloadError, "x:2", "oc has two different checksums"):
        parse(f"{A}  oc\n{B}  oc\n".encode(), "x")
