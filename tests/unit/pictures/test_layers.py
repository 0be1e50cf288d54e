from __future__ import annotations

import time
from itertools import combinations

import pytest

from openstack_prep.pictures.layers import GAP, lay_out

BOX = (100.0, 40.0)


@pytest.mark.parametrize(
    ("count", "needs"),
    [
        (0, []),
        (1, []),
        (4, [(1, 0), (2, 0), (3, 1), (3, 2)]),
        (5, [(4, 0), (4, 1), (4, 2), (4, 3), (1, 0), (2, 1), (3, 2)]),
        (41, [(0, each) for each in range(1, 41)]),
        (40, [(each, (each - 1) // 2) for each in range(1, 40)]),
    ],
)
def test_boxes_are_right_of_what_they_need_and_apart(count: int, needs: list[tuple[int, int]]) -> None:
    found = lay_out([BOX] * count, needs)
    assert len(found.spots) == count
    for one, other in needs:
        assert found.spots[one].x > found.spots[other].x + BOX[0]
        (x, y), *_, (end, at) = found.paths[one, other]
        assert (x, y) == (found.spots[one].x, found.spots[one].middle)
        assert (end, at) == (found.spots[other].x + found.spots[other].w, found.spots[other].middle)
    for one, other in combinations(found.spots, 2):
        assert one.x != other.x or abs(one.y - other.y) >= BOX[1] + GAP - 0.01
    assert all(0 <= each.x <= found.width - each.w and 0 <= each.y <= found.height - each.h for each in found.spots)


def test_edges_that_need_not_cross_do_not() -> None:
    needs = [(4, 0), (5, 1), (6, 2), (7, 3), (4, 1), (5, 2)]
    spots = lay_out([BOX] * 8, [(one, 3 - other if other < 4 else other) for one, other in needs]).spots
    links = [(spots[one], spots[3 - other]) for one, other in needs]
    for (one, other), (third, fourth) in combinations(links, 2):
        assert (one.y - third.y) * (other.y - fourth.y) >= 0


def test_one_that_several_need_is_beside_them() -> None:
    spots = lay_out([BOX] * 6, [(1, 0), (2, 1), (3, 2), (3, 4), (5, 2), (5, 4)]).spots
    assert spots[4].x == spots[2].x


def test_a_deep_graph_takes_no_longer_than_a_person_waits() -> None:
    chain = [(each, each - 1) for each in range(1, 150)]
    over_many = [(each, each % 149) for each in range(150, 300)] + [(149, each) for each in range(150, 300)]
    far = [(each, other) for each in range(4, 150) for other in {each // 2, each // 3, 0}]
    start = time.process_time()
    lay_out([BOX] * 300, [*chain, *over_many, *far])
    assert time.process_time() - start < 5  # less than a second; it was eight when each column asked all edges
