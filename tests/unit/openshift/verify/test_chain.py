from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from openstack_prep.openshift.names.resolver import ResolvedName
from openstack_prep.openshift.verify.chain import Chain, Verification, tree, unknown
from openstack_prep.openshift.verify.links import evaluate
from openstack_prep.openshift.verify.target import wanted
from tests.unit.openshift.verify.view import ID, NAMES, Answers, changed, right


def seen(view: Answers) -> Verification:
    answers = {name: ResolvedName((address,), "the resolver") for name, address in NAMES.items()}
    return evaluate(wanted(infra_id=ID, base_domain="example.com"), view.view, answers)


def test_how_it_is_printed(stored: Callable[[str, str], None]) -> None:
    stored("verify.txt", str(seen(right())))
    broken = replace(changed("worker-0-fghij-0", allowed_address_pairs=[]), servers=None)
    stored("verify_broken.txt", str(seen(broken)))


def test_as_data(stored: Callable[[str, str], None]) -> None:
    found = seen(changed("worker-0-fghij-0", allowed_address_pairs=[]))
    assert not found.ok
    stored("verify.json", json.dumps(found.data(), indent=2))


def test_what_is_unknown_is_not_broken() -> None:
    found = seen(replace(right(), servers=None))
    assert found.ok
    assert [(link.where, link.code) for link in found.unknown] == [("machines", "access.denied")] * 2


def test_a_name_cannot_look_like_a_line_of_its_own() -> None:
    foreign = unknown("access.denied", "ports", "group x\nno problems found\x1b[2m", "look\nhere")
    printed = list(tree(Chain(name="api", target="192.0.2.1", links=(foreign,))))
    assert [line[0] for whole in printed[1:] for line in whole.splitlines()] == ["└", " ", " ", " "]
    assert not any("\x1b" in each for each in printed)
