"""Rows by id, and by the values of some of their fields, so that no list of a project reads those of all others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

Row = dict[str, Any]
Keys = Callable[[Row], Iterable[str]]
NONE: Mapping[str, Row] = {}


def _values_of(field: str) -> Keys:
    def keys(row: Row) -> Iterable[str]:
        value = row.get(field)
        if value is None:
            return ()
        if value is True or value is False:
            return BOOLEANS[value]
        return value if isinstance(value, list) else (str(value),)

    return keys


BOOLEANS = {True: ("True", "true", "1"), False: ("False", "false", "0")}
"""How clients write them in a query."""


class Table:
    """Rows by id; ``fields`` and the further ``keys`` are indexed."""

    def __init__(self, *fields: str, **keys: Keys) -> None:
        self.rows: dict[str, Row] = {}
        self.version = 0
        """Counts changes."""
        self._keys: dict[str, Keys] = {field: _values_of(field) for field in fields} | keys
        self._index: dict[str, dict[str, dict[str, Row]]] = {field: {} for field in self._keys}

    def add(self, row: Row) -> Row:
        self.version += 1
        self.rows[row["id"]] = row
        for field in self._keys:
            self._enter(field, row)
        return row

    def remove(self, row: Row) -> None:
        self.version += 1
        del self.rows[row["id"]]
        for field in self._keys:
            self._leave(field, row)

    def change(self, row: Row, values: Mapping[str, Any]) -> Row:
        """Set some fields; a field that is a list must be given as another list."""
        self.version += 1
        touched = [field for field in self._keys if field in values or field not in row]
        for field in touched:
            self._leave(field, row)
        row.update(values)
        for field in touched:
            self._enter(field, row)
        return row

    def having(self, field: str, value: str) -> Mapping[str, Row]:
        """Return the rows, by id, of which an indexed field has a value."""
        return self._index[field].get(value, NONE)

    def narrowed(self, filters: Mapping[str, Collection[str]]) -> Collection[Row]:
        """Return the rows among which are all that match: those of the indexed filter with the fewest."""
        best: list[Mapping[str, Row]] | None = None
        fewest = 0
        for field, values in filters.items():
            if field in self._index:
                found = [self.having(field, value) for value in dict.fromkeys(values)]
                number = sum(map(len, found))
                if best is None or number < fewest:
                    best, fewest = found, number
        if best is None:
            return self.rows.values()
        if len(best) == 1:
            return best[0].values()
        return list({row["id"]: row for rows in best for row in rows.values()}.values())

    def _enter(self, field: str, row: Row) -> None:
        index = self._index[field]
        for key in self._keys[field](row):
            index.setdefault(key, {})[row["id"]] = row

    def _leave(self, field: str, row: Row) -> None:
        index = self._index[field]
        for key in self._keys[field](row):
            rows = index.get(key)
            if rows is not None:
                rows.pop(row["id"], None)
                if not rows:
                    del index[key]
