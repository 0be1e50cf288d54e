from __future__ import annotations

import pytest

from openstack_prep.cloud.lease import BARE, LIMIT, PROCESS, WHOLE, Description, Entry, digest, keep, plain, strip

ANN = Entry(
    spec=digest("lab"),
    run="aaaa",
    beat=3,
    since=1700000000,
    place="plac",
    pid=12,
    start="abc",
    who="ann@laptop",
)
BOB = Entry(spec=digest("other"), run="bbbb")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Default security group",
        "theirs [openstack-prep:lab/x]",
        "[openstack-prep none]",
        "a [openstack-prep 1",
        "é",
    ],
)
def test_foreign_text_is_read_and_written_to_the_letter(text: str) -> None:
    assert Description.read(text).write() == text
    held = Description.read(text).holding(ANN)
    assert Description.read(held.write()).without(ANN).write() == text


def test_entries_come_back_whole() -> None:
    text = Description(before="x", after=" y").holding(ANN, counted=True).holding(BOB).write()
    assert text is not None
    assert text.startswith("x [openstack-prep 1 ")
    assert text.endswith("] y")
    assert Description.read(text).entries == (ANN, BOB)
    assert strip(text) == "x y"


def test_what_another_version_wrote_stays() -> None:
    read = Description.read(f"x [openstack-prep 4 v2!new {BOB.text(0)}]")
    assert read.entries == (BOB,)
    assert read.unknown == ("v2!new",)
    assert "v2!new" in (read.holding(ANN).write() or "")


def test_the_count_outlives_leases_and_only_the_count() -> None:
    held = Description(before="x").holding(ANN, counted=True).without(ANN)
    assert held.write() == "x [openstack-prep 1]"


def test_twenty_specs_fit_beside_neutrons_own_text_and_then_no_more() -> None:
    text = Description.read("Default security group")
    for number in range(40):
        entry = Entry(**vars(ANN) | {"spec": digest(str(number))})
        more = text.holding(entry)
        if (written := more.write()) is None:
            break
        assert len(written) <= LIMIT
        text = Description.read(written)
    assert len(text.entries) == 21
    assert {each.run for each in text.entries} == {"aaaa"}


def test_shorter_forms_leave_out_what_only_people_read() -> None:
    bare = f"{ANN.spec}aaaaD"
    assert [ANN.text(level) for level in (BARE, PROCESS, WHOLE)] == [
        bare,
        f"{bare}.1700000000.plac.12.abc",
        f"{bare}.1700000000.plac.12.abc.ann@laptop",
    ]


def test_a_new_description_keeps_the_leases_of_the_old_one() -> None:
    old = Description(before="x", after=" y").holding(ANN, counted=True).write()
    assert keep(old, "new") == Description(before="new").holding(ANN, counted=True).write()
    assert keep(old, "n" * LIMIT) == "n" * LIMIT
    assert keep(None, "new") == "new"


def test_people_are_told_who_and_since_when() -> None:
    assert str(ANN).startswith("ann@laptop (pid 12) since 20")
    assert str(BOB) == "another run"


def test_names_do_not_end_an_entry() -> None:
    assert plain("ann bob]@höst") == "ann_bob_@h_st"


def test_beats_begin_anew() -> None:
    entry = BOB
    for _ in range(64):
        entry = entry.renewed()
    assert entry == BOB
