"""The text of a resource made in Python, as a debugger or a log shows it, has no secret."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from dataclasses import Field, fields, is_dataclass
from typing import Any

import pytest

import openstack_prep as prep
from openstack_prep.base.secret import Secret
from openstack_prep.core.model import Resource
from openstack_prep.kubernetes.model import ReadsSecrets
from openstack_prep.openshift.install_config.model import Proxy
from tests.kinds import KINDS

WORD = "corr-ect-horse"


def parts(annotation: Any) -> Iterator[Any]:
    yield annotation
    yield from getattr(annotation, "__metadata__", ())
    for each in typing.get_args(annotation):
        yield from parts(each) if not isinstance(each, str | int | list) else ()


def declared(kinds: Iterator[Any], seen: set[type]) -> Iterator[tuple[Field[Any], list[Any]]]:
    """Yield the fields of dataclasses, and of those within them, with the parts of their types."""
    for kind in kinds:
        if isinstance(kind, type) and is_dataclass(kind) and kind not in seen:
            seen.add(kind)
            hints = typing.get_type_hints(kind, include_extras=True)
            for field in fields(kind):
                within = list(parts(hints[field.name]))
                yield field, within
                yield from declared(iter(within), seen)


BASES = {base for kind in KINDS.values() for base in kind.__mro__}


def holds_secret(within: list[Any], seen: frozenset[type] = frozenset()) -> bool:
    """Whether a field has a secret within it, which Python may give in a plain mapping, if not another resource."""
    kinds = [each for each in within if isinstance(each, type) and is_dataclass(each) and each not in seen]
    kinds = [each for each in kinds if not issubclass(each, Resource) and each not in BASES]
    hints = [hint for kind in kinds for hint in typing.get_type_hints(kind, include_extras=True).values()]
    return Secret in within or any(holds_secret(list(parts(hint)), seen | {*kinds}) for hint in hints)


def test_no_field_of_secrets_or_of_anything_is_shown() -> None:
    found = list(declared(iter(KINDS.values()), set()))
    open_ones = [
        field
        for field, within in found
        if holds_secret(within) or any(each in (object, Any) or isinstance(each, ReadsSecrets) for each in within)
    ]
    assert {"password", "parameters", "config", "secret_parameters"} <= {field.name for field in open_ones}
    assert [field.name for field in open_ones if field.repr] == []


@pytest.mark.parametrize(
    "resource",
    [
        prep.User(name="u", password=WORD),  # type: ignore[arg-type]
        prep.Stack(name="s", template="t", parameters={"db": {"password": WORD}}),
        prep.Stack(name="s", template=f"https://me:{WORD}@h/t.yaml", secret_parameters={"db": WORD}),  # type: ignore[dict-item]
        prep.Stack(name="s", template="t", environments=(f"https://me:{WORD}@h/e.yaml",)),
        prep.RkeCluster(  # its sections as Python may give them
            name="c",
            stack="s",
            directory="o",
            private_registries=[{"url": "r", "user": "u", "password": WORD}],  # type: ignore[arg-type]
            metallb={"peers": [{"password": WORD}]},  # type: ignore[arg-type]
        ),
        prep.Image(name="i", source=f"https://me:{WORD}@h/i.qcow2"),
        prep.CloudsEntry(cloud="c", user="u", path="p", auth_url=f"https://me:{WORD}@h/v3"),
        prep.InstallConfig(
            path="i",
            release="4.20",
            cloud="c",
            pull_secret_file="p",
            cluster_name="c",
            base_domain="b",
            external_network="e",
            cluster_os_image=f"https://h/i?sig={WORD}",
            proxy={"http": f"http://me:{WORD}@h"},  # type: ignore[arg-type]
            image_mirrors=[{"source": "s", "mirrors": [f"https://me:{WORD}@h"]}],  # type: ignore[arg-type]
        ),
        Proxy(http=f"http://me:{WORD}@h", https=f"http://me:{WORD}@h"),
    ],
)
def test_what_python_gives_is_not_shown(resource: Any) -> None:
    assert WORD not in repr([resource])
