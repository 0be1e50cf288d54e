from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.devcloud.faults import Fault, Faults, inject
from tests.devcloud.layout import Layout
from tests.unit.texts import Wording, expect_error

CLIENT = "openstacksdk/4.0"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(22000, tmp_path)
    layout.run.mkdir(parents=True)
    return layout


def hits(faults: Faults, *requests: tuple[str, str, str]) -> list[bool]:
    return [faults.hit(*request) is not None for request in requests]


def test_rule_matches_only_where_all_of_it_does() -> None:
    rule = Fault("nova", method="POST", path_regex="/servers$", user_agent_regex="^openstack", status=500)
    assert rule.matches("POST", "/v2.1/servers", CLIENT)
    assert not rule.matches("GET", "/v2.1/servers", CLIENT)
    assert not rule.matches("POST", "/v2.1/servers/1", CLIENT)
    assert not rule.matches("POST", "/v2.1/servers", "curl/8")


def test_requests_between_services_are_never_hit() -> None:
    assert not Fault("nova", status=500).matches("GET", "/", f"{CLIENT} devcloud/heat")


def test_skip_and_times_choose_among_the_matching(layout: Layout) -> None:
    faults = Faults(str(layout.faults_file), "nova")
    with inject(layout, Fault("nova", method="GET", skip=1, times=2, status=500)):
        get, post = ("GET", "/", CLIENT), ("POST", "/", CLIENT)
        assert hits(faults, get, post, get, post, get, get) == [False, False, True, False, True, False]
    assert hits(faults, get) == [False]


def test_other_services_rules_are_not_ours(layout: Layout) -> None:
    with inject(layout, Fault("heat", status=500)):
        assert hits(Faults(str(layout.faults_file), "nova"), ("GET", "/", CLIENT)) == [False]


def test_new_rules_count_anew(layout: Layout) -> None:
    faults = Faults(str(layout.faults_file), "nova")
    for _ in range(2):
        with inject(layout, Fault("nova", status=503, headers={"Retry-After": "1"})):
            rule = faults.hit("GET", "/", CLIENT)
            assert rule
            assert (rule.status, rule.headers) == (503, {"Retry-After": "1"})


@pytest.mark.parametrize("ending", ["removed", "replaced by an equal one"])
def test_a_held_request_goes_on_once_the_rules_change(layout: Layout, ending: str) -> None:
    rule, faults = Fault("nova", delay=100, held=True), Faults(str(layout.faults_file), "nova")
    with ThreadPoolExecutor() as pool:
        with inject(layout, rule):
            hit = faults.hit("GET", "/", CLIENT)
            assert hit == rule
            held = pool.submit(faults.wait, hit)
            with pytest.raises(TimeoutError):
                held.result(0.2)
            if ending != "removed":
                with inject(layout, rule):
                    assert faults.hit("GET", "/", CLIENT) == rule  # by a request of another thread
                    held.result(20)
        held.result(20)


def test_a_held_request_goes_on_after_its_delay(layout: Layout) -> None:
    faults = Faults(str(layout.faults_file), "nova")
    with inject(layout, Fault("nova", delay=0.2, held=True)):
        hit = faults.hit("GET", "/", CLIENT)
        assert hit
        started = time.monotonic()
        faults.wait(hit)
        assert time.monotonic() - started >= 0.2


def test_rule_that_does_nothing_or_means_nobody_is_a_mistake(wording: Wording) -> None:
    with pytest.raises(ValueError, match="needs a delay"):
        Fault("nova")
    with pytest.raises(ValueError, match="no such service"):
        Fault("ironic", status=500)
    with pytest.raises(ValueError, match="no such effect"):
        Fault("nova", effect="explode")
    with expect_error(ValueError) as caught:
        Fault("nova", effect="late")
    wording(caught.value)
    for wrong in ({"status": 500}, {"effect": "drip", "delay": 1.0}):
        with pytest.raises(ValueError, match="held needs a delay"):
            Fault("nova", held=True, **wrong)  # type: ignore[arg-type]
