from __future__ import annotations

from pathlib import Path

import pytest

from openstack_prep.openshift.installer import infra_id_in, to_destroy


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"infraID": "dev-x7k2p"}', "dev-x7k2p"),
        ('{"infraID": "../dev-x7k2p"}', "dev-x7k2p"),
        ('{"infraID": ""}', None),
        ("{}", None),
        ("[]", None),
        ("7", None),
        ("not JSON", None),
    ],
)
def test_the_infra_id_of_a_metadata_json(text: str, expected: str | None) -> None:
    assert infra_id_in(text) == expected


def test_a_folder_with_a_blank_is_quoted() -> None:
    assert to_destroy(Path("my cluster")) == "openshift-install destroy cluster --dir 'my cluster'"
