"""Lists: filters, pages, and some of the fields."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any
from urllib.parse import urlencode

from tests.light.table import BOOLEANS, Row, Table
from tests.light.web import Json, Query, Refused, Request

View = Callable[[Row], Row]


def select(table: Table, filters: Query) -> list[Row]:
    """Return the rows that match all filters, each by one of its values."""
    found = table.narrowed(filters)
    return [row for row in found if all(_matches(row, field, values) for field, values in filters.items())]


def among(rows: Iterable[Row], filters: Query) -> list[Row]:
    return [row for row in rows if all(_matches(row, field, values) for field, values in filters.items())]


def _matches(row: Row, field: str, values: Collection[str]) -> bool:
    if field == "tags":  # all of them
        return all(tag in row["tags"] for value in values for tag in value.split(","))
    if field == "fixed_ips":
        pairs = {f"{name}={value}" for each in row["fixed_ips"] for name, value in each.items()}
        return any(value in pairs for value in values)
    present = row.get(field)
    if present is True or present is False:
        return any(value in BOOLEANS[present] for value in values)
    return ("" if present is None else str(present)) in values


def filters_of(query: Query, known: Collection[str], others: Collection[str] = ()) -> Query:
    """Return the filters of a query; a parameter that is not known is refused, so that no list is longer than asked."""
    wrong = [name for name in query if name not in known and name not in others]
    if wrong:
        raise Refused(400, f"{wrong} is invalid attribute for filtering")
    return {name: values for name, values in query.items() if name in known}


def limit_of(asked: Request, most: int | None = None, default: int | None = None) -> int | None:
    text = asked.first("limit")
    if not text:
        return default if default is not None else most
    if not text.isdigit():
        raise Refused(400, f"limit {text!r} is no number")
    return min(int(text), most) if most is not None else int(text)


def page(rows: list[Row], asked: Request, limit: int | None, key: str = "id") -> tuple[list[Row], Row | None]:
    """Return the rows after the marker, as many as allowed, and the last of them if there are more."""
    marker = asked.first("marker")
    if marker:
        places = [place for place, row in enumerate(rows) if row[key] == marker]
        if not places:
            raise Refused(400, f"marker [{marker}] not found")
        rows = rows[places[0] + 1 :]
    if not limit or len(rows) <= limit:
        return rows, None
    return rows[:limit], rows[limit - 1]


def following(asked: Request, last: Row, key: str = "id") -> str:
    """Return the query of the next page."""
    query: dict[str, Any] = {name: values for name, values in asked.query.items() if name != "marker"}
    return urlencode(query | {"marker": last[key]}, doseq=True)


def linked(name: str, rows: list[Row], asked: Request, last: Row | None, key: str = "id") -> Json:
    """Return a page as Nova, Cinder and Neutron write it."""
    if last is None:
        return {name: rows}
    href = f"{asked.url}{asked.path}?{following(asked, last, key)}"
    return {name: rows, f"{name}_links": [{"rel": "next", "href": href}]}
