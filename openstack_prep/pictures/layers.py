"""Places for the boxes of a graph in columns, each right of what it needs, and paths for its edges: pure.

Sources: Sugiyama, Tagawa, Toda, "Methods for Visual Understanding of Hierarchical System Structures" (1981): columns,
then orders with few crossings; edges over several columns pass them as boxes without a height.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

SWEEPS = 24
PULLS = 12
VISITS = 200_000
"""Of links in all sweeps, and in all pulls: deep graphs, whose edges pass many columns, get fewer of both."""
GAP, PASSAGE = 14.0, 10.0
"""Between boxes of a column, and around an edge that passes them."""
BETWEEN, PER_EDGE, MOST_BETWEEN = 48.0, 3.0, 140.0
"""Between columns: the more edges, the wider."""


@dataclass(frozen=True)
class BoxPosition:
    """The upper left corner of a box, and its size."""

    x: float
    y: float
    w: float
    h: float

    @property
    def middle(self) -> float:
        return self.y + self.h / 2


@dataclass(frozen=True)
class Layout:
    """Where boxes are, and over which points edges go, from who needs to what is needed."""

    spots: tuple[BoxPosition, ...]
    paths: Mapping[tuple[int, int], tuple[tuple[float, float], ...]]
    width: float
    height: float


def lay_out(sizes: Sequence[tuple[float, float]], needs: Sequence[tuple[int, int]]) -> Layout:
    """Return the layout of boxes with these sizes; each pair says that the first needs the second, without a cycle."""
    ranks = _ranks(len(sizes), needs)
    boxes = [*sizes]
    passages: dict[tuple[int, int], int] = {}  # edges to the same box share their way through the columns
    chains: dict[tuple[int, int], list[int]] = {}
    for one, other in needs:
        chain = [one]
        for rank in range(ranks[one] - 1, ranks[other], -1):
            if (other, rank) not in passages:
                passages[other, rank] = len(boxes)
                boxes.append((0.0, 0.0))
                ranks.append(rank)
            chain.append(passages[other, rank])
        chains[one, other] = [*chain, other]
    links = [*dict.fromkeys(link for chain in chains.values() for link in pairwise(chain))]
    columns = _ordered(ranks, links)
    tops = _tops(columns, boxes, links, passing=len(sizes))
    return _placed(columns, boxes, tops, chains, len(sizes))


def _ranks(count: int, needs: Iterable[tuple[int, int]]) -> list[int]:
    """Return the column of each box: right of all that it needs, and as near to those that need it as is better."""
    above, below = defaultdict(set), defaultdict(set)
    for one, other in needs:
        above[one].add(other)
        below[other].add(one)
    ranks = [0] * count
    order = _from_the_left(count, above, below)
    for each in order:
        ranks[each] = max((ranks[other] + 1 for other in above[each]), default=0)
    for each in reversed(order):
        if len(below[each]) > len(above[each]):
            ranks[each] = min(ranks[other] for other in below[each]) - 1
    return ranks


def _from_the_left(count: int, above: Mapping[int, set[int]], below: Mapping[int, set[int]]) -> list[int]:
    """Return all boxes, each after those that it needs."""
    open_needs = {each: len(above[each]) for each in range(count)}
    order = [each for each in range(count) if not open_needs[each]]
    for each in order:  # grows meanwhile
        for other in sorted(below[each]):
            open_needs[other] -= 1
            if not open_needs[other]:
                order.append(other)
    return order


def _ordered(ranks: Sequence[int], links: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Return the boxes of each column, from top to bottom, with few crossings."""
    left, right = defaultdict(list), defaultdict(list)
    for one, other in links:
        left[one].append(other)
        right[other].append(one)
    columns: list[list[int]] = [[] for _ in range(max(ranks, default=-1) + 1)]
    for each, rank in enumerate(ranks):
        columns[rank].append(each)
    best, fewest = [*columns], _crossings(columns, left)
    for sweep in range(_rounds(SWEEPS, links)):
        forward = sweep % 2 == 0
        near = left if forward else right
        for index in range(1, len(columns)) if forward else range(len(columns) - 2, -1, -1):
            fixed = {each: place for place, each in enumerate(columns[index - 1 if forward else index + 1])}
            columns[index] = _by_neighbours(columns[index], near, fixed)
        if (now := _crossings(columns, left)) < fewest:
            best, fewest = [*columns], now
    return best


def _rounds(most: int, links: Sequence[tuple[int, int]]) -> int:
    """Return how often all links are visited: at least once in each direction."""
    return max(2, min(most, VISITS // max(1, len(links))))


def _by_neighbours(column: list[int], near: Mapping[int, list[int]], fixed: Mapping[int, int]) -> list[int]:
    """Return a column by the mean place of the neighbours in a fixed one; a box without any keeps its place."""
    means = {each: sum(fixed[other] for other in near[each]) / len(near[each]) for each in column if near.get(each)}
    moving = iter(sorted(means, key=lambda each: means[each]))
    return [next(moving) if each in means else each for each in column]


def _crossings(columns: Sequence[Sequence[int]], left: Mapping[int, list[int]]) -> int:
    """Return how many pairs of links cross."""
    total = 0
    for before, column in pairwise(columns):
        place = {each: index for index, each in enumerate(before)}
        ends: list[int] = []
        for each in column:
            own = sorted(place[other] for other in left.get(each, ()))
            total += sum(len(ends) - bisect_left(ends, end + 1) for end in own)
            for end in own:
                insort(ends, end)
    return total


def _tops(
    columns: Sequence[Sequence[int]],
    boxes: Sequence[tuple[float, float]],
    links: Sequence[tuple[int, int]],
    *,
    passing: int,
) -> list[float]:
    """Return the upper edge of each box, pulled towards its neighbours as far as the order of its column allows."""
    near: dict[int, list[int]] = defaultdict(list)
    for one, other in links:
        near[one].append(other)
        near[other].append(one)
    middles = [0.0] * len(boxes)

    def apart(one: int, other: int) -> float:
        gap = PASSAGE if one >= passing or other >= passing else GAP
        return (boxes[one][1] + boxes[other][1]) / 2 + gap

    for column in columns:
        for one, other in pairwise(column):
            middles[other] = middles[one] + apart(one, other)
    for pull in range(_rounds(PULLS, links)):
        for column in columns if pull % 2 else reversed(columns):
            wanted = [_mean([middles[other] for other in near[each]], middles[each]) for each in column]
            weights = [4.0 if each >= passing else 1.0 for each in column]
            for each, found in zip(column, keep_apart(column, wanted, weights, apart), strict=True):
                middles[each] = found
    return [middle - box[1] / 2 for middle, box in zip(middles, boxes, strict=True)]


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def keep_apart(
    column: Sequence[int], wanted: Sequence[float], weights: Sequence[float], apart: Callable[[int, int], float]
) -> list[float]:
    """Return the places nearest to the wanted ones (least squares) in this order, with a distance between each two."""
    offsets = [0.0][: len(column)]
    for one, other in pairwise(column):
        offsets.append(offsets[-1] + apart(one, other))
    blocks: list[tuple[float, float, int]] = []  # mean, weight, members
    for place, offset, weight in zip(wanted, offsets, weights, strict=True):
        blocks.append((place - offset, weight, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (mean, w1, n1), (below, w2, n2) = blocks[-2:]
            blocks[-2:] = [((mean * w1 + below * w2) / (w1 + w2), w1 + w2, n1 + n2)]
    found = [mean for mean, _, members in blocks for _ in range(members)]
    return [mean + offset for mean, offset in zip(found, offsets, strict=True)]


def _placed(
    columns: Sequence[Sequence[int]],
    boxes: Sequence[tuple[float, float]],
    tops: Sequence[float],
    chains: Mapping[tuple[int, int], Sequence[int]],
    count: int,
) -> Layout:
    """Return the layout, in which all boxes of a column are as wide as its widest."""
    lowest = min(tops, default=0.0)
    arriving = Counter(box for chain in chains.values() for box in chain[1:])
    spots: dict[int, BoxPosition] = {}
    x = 0.0
    for column in columns:
        widest = max((boxes[each][0] for each in column), default=0.0)
        for each in column:
            spots[each] = BoxPosition(x, tops[each] - lowest, widest, boxes[each][1])
        edges = sum(arriving[each] for each in column)
        x += widest + min(BETWEEN + PER_EDGE * edges, MOST_BETWEEN)
    paths = {ends: tuple(_path([spots[each] for each in chain])) for ends, chain in chains.items()}
    width = max((spot.x + spot.w for spot in spots.values()), default=0.0)
    height = max((spot.y + spot.h for spot in spots.values()), default=0.0)
    return Layout(tuple(spots[each] for each in range(count)), paths, width, height)


def _path(spots: Sequence[BoxPosition]) -> Iterable[tuple[float, float]]:
    """Yield the points of an edge: it leaves a box on the left, and enters the next one on the right."""
    yield spots[0].x, spots[0].middle
    for spot in spots[1:-1]:
        yield spot.x + spot.w, spot.middle
        yield spot.x, spot.middle
    yield spots[-1].x + spots[-1].w, spots[-1].middle
