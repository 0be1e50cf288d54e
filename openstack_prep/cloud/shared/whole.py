"""A list of all projects, and what single reads select from it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from openstack_prep.base.errors import PrepError
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.answers import Answer, next_page
from openstack_prep.cloud.service import Service
from openstack_prep.cloud.shared.shapes import PAGE, Whole, wanted

MOST, PER_SPEC = 50_000, 250
"""Rows of a list that is kept, in all and per spec; of a larger one, each spec reads its part."""
PAGED = ("identity", "network")
"""Services whose lists are read in pages, so that one that is too large is given up early."""


class Rows:
    """The rows of a list, by the values of its parameters."""

    def __init__(self, whole: Whole, path: str, rows: Sequence[Answer]) -> None:
        self._whole, self._path, self._rows = whole, path, rows
        self._index: dict[str, Mapping[str, Sequence[Answer]]] = {}
        self._lock = threading.Lock()

    def matching(self, params: Raw) -> list[Answer]:
        """Return the rows that have these values, letter by letter."""
        filters = {name: wanted(self._path, name, params[name]) for name in self._whole.by if name in params}
        first, *others = filters
        by = self._by(first)
        found = [row for value in dict.fromkeys(filters[first]) for row in by.get(value, ())]
        for name in others:
            values, accepted = self._whole.by[name], set(filters[name])
            found = [row for row in found if not accepted.isdisjoint(map(str, values(row)))]
        return found

    def select(self, params: Raw) -> list[Answer] | None:
        """Return the rows that a read with these parameters is answered; None if only the service can tell."""
        found = self.matching(params)
        if not self._whole.sure(params, found):
            return None
        return [_limited(row, params["fields"]) for row in found] if "fields" in params else found

    def _by(self, name: str) -> Mapping[str, Sequence[Answer]]:
        with self._lock:
            if name not in self._index:
                index: dict[str, list[Answer]] = {}
                for row in self._rows:
                    for value in self._whole.by[name](row):
                        index.setdefault(str(value), []).append(row)
                self._index[name] = index
            return self._index[name]


def _limited(row: Answer, fields: object) -> Answer:
    names = map(str, fields if isinstance(fields, list | tuple) else [fields])
    return Answer({name: row[name] for name in names if name in row}, row.origin)


def answers(whole: Whole, params: Raw) -> bool:
    """Whether a list of all projects answers a read with these parameters."""
    selecting = params.keys() & whole.by.keys()
    others = {name: value for name, value in params.items() if name not in selecting and name != "fields"}
    own = {name for name in others if name in whole.per}
    return (
        bool(selecting) and own == set(whole.per) and whole.fixed == {n: v for n, v in others.items() if n not in own}
    )


def read(service: Service, path: str, whole: Whole, params: Raw, most: int) -> Rows | None:
    """Return the list of all projects; None if the service refuses it or fails, or if it has over ``most`` rows."""
    asked: Values = {**whole.fixed, **{name: params[name] for name in whole.per}}
    if service.type in PAGED:
        asked["limit"] = PAGE
    found: list[Answer] = []
    try:
        for page in service.pages(path, whole.member, asked, once=True):
            found += page[whole.member]
            follows = next_page(page, whole.member) is not None
            if (page.get("truncated") and not follows) or len(found) + follows > most:
                return None
    except PrepError:  # each spec reads its part then, and has its own error
        return None
    return Rows(whole, path, found)
