from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.devcloud import ports, pytest_devcloud, state
from tests.devcloud.layout import FIRST_EPHEMERAL_PORT, HOST, OFFSETS, DevcloudError, Layout
from tests.unit.texts import contains, expect_error


@pytest.fixture
def free(tmp_path: Path) -> Layout:
    """A base that nobody on this machine uses, in a directory of its own."""
    with ports.claimed(Layout(21000, tmp_path / "free"), "unit") as layout:
        return Layout(layout.base, tmp_path / "clouds")


def listening(layout: Layout, service: str) -> socket.socket:
    """Return a program of somebody else's on a port."""
    return socket.create_server((HOST, layout.port(service)))


def test_no_two_of_a_clouds_ports_are_steps_apart() -> None:
    offsets = OFFSETS.values()
    assert not [(one, other) for one in offsets for other in offsets if one < other and (other - one) % ports.STEP == 0]


@pytest.mark.parametrize("first", [pytest_devcloud.DEFAULT_TEST_BASE, pytest_devcloud.OVN_TEST_BASE])
def test_four_workers_have_bases_of_their_own(first: int) -> None:
    highest = FIRST_EPHEMERAL_PORT - 1 - max(OFFSETS.values())
    assert first + 3 * ports.STEP <= highest


def test_the_first_base_is_taken_when_it_is_free(free: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    with ports.claimed(free, "unit") as layout:
        assert layout == free
    assert capsys.readouterr() == ("", "")


def test_a_single_port_in_use_is_enough_for_another_base(free: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    with listening(free, "swift-object"), ports.claimed(free, "unit") as layout:
        assert layout.base != free.base
        assert not ports.taken_by_others(layout)
    assert contains("".join(capsys.readouterr()), free.base, layout.base)


def test_two_at_once_get_two_bases(free: Layout, tmp_path: Path) -> None:
    elsewhere = Layout(free.base, tmp_path / "another-checkout")
    with ports.claimed(free, "unit") as one, ports.claimed(elsewhere, "unit") as two:
        assert one.base == free.base != two.base


def test_a_built_state_is_used_again(free: Layout) -> None:
    with ports.claimed(free, "unit"), ports.claimed(free, "unit") as built, ports.claimed(free, "unit") as last:
        pass
    last.pristine.mkdir(parents=True)
    (last.pristine / "stamp").write_text(state.stamp(last))
    with ports.claimed(free, "unit"):
        with ports.claimed(free, "unit") as again:
            assert again == last
        with ports.claimed(free, "demo") as other:
            assert other == built  # whose purpose is now another, and nothing was built
        built.home.mkdir()
        with ports.claimed(free, "unit") as other:
            assert other == last


def test_a_given_base_is_that_one_or_none(free: Layout) -> None:
    with ports.claimed_exactly(free) as layout:
        assert layout == free
        with expect_error(DevcloudError, free.base), ports.claimed_exactly(free):
            pass
    with listening(free, "keystone"), pytest.raises(DevcloudError, match=r"\(keystone\)"), ports.claimed_exactly(free):
        pass
