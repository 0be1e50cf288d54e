"""What all of Neutron's collections have in common: lists, fields, revisions and tags."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.light.apis import NETWORK
from tests.light.listing import among, filters_of, limit_of, linked, page, select
from tests.light.services.quotas import check_room
from tests.light.state import Cloud, new_id, now
from tests.light.table import Row, Table
from tests.light.web import NOTHING, Answer, Json, Query, Refused, Request

LIST = frozenset({"fields", "limit", "marker", "page_reverse", "sort_key", "sort_dir"})
COMMON: Json = {"description": "", "tags": [], "revision_number": 0, "created_at": "", "updated_at": ""}


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A collection: ``collection`` in paths, ``member`` in bodies, and ``defaults`` of its fields."""

    collection: str
    member: str
    what: str
    """Its name in errors."""
    table: Callable[[Cloud], Table]
    defaults: Json
    make: Callable[[Request, Json], Row]
    change: Callable[[Request, Row, Json], None]
    delete: Callable[[Request, Row], None]
    before_list: Callable[[Request], None] = lambda asked: None
    after_create: Callable[[Request, list[Row]], None] = lambda asked, made: None
    everybodys: tuple[tuple[str, str], ...] = ()
    """Indexed fields and values of what other projects may see."""
    hidden: frozenset[str] = frozenset()
    """Fields that only administrators see."""
    tagged: bool = True
    fields: frozenset[str] = field(init=False, default=frozenset())

    def __post_init__(self) -> None:
        names = {
            "id",
            "project_id",
            "tenant_id",
            *self.defaults,
            *(COMMON if self.tagged else COMMON.keys() - {"tags"}),
        }
        object.__setattr__(self, "fields", frozenset(names))

    @property
    def plural(self) -> str:
        return f"{self.member}s"


# --- rows ---------------------------------------------------------------------------------


def owner(asked: Request, given: Json) -> str:
    """Return the project of a new row; only administrators may name another one than their own."""
    wanted = given.get("project_id", given.get("tenant_id"))
    if wanted in (None, asked.caller.project_id):
        return asked.caller.project_id
    asked.only_admin()
    return str(wanted)


def fresh(kind: Kind, project_id: str, given: Json, **values: Any) -> Row:
    """Return a new row with what is given; raises Refused for a field that the kind does not have."""
    if wrong := sorted(given.keys() - kind.fields):
        raise Refused(400, f"Unrecognized attribute(s) '{', '.join(wrong)}'")
    when = now()
    times = {"created_at": when, "updated_at": when}
    ids = {"id": new_id(), "tenant_id": project_id, "project_id": project_id}
    return {**kind.defaults, **COMMON, **given, **ids, **times, **values}


def bump(table: Table, row: Row, values: Json | None = None, by: int = 1) -> Row:
    """Change a row: its revision says so."""
    changed = {"revision_number": row["revision_number"] + by, "updated_at": now()}
    return table.change(row, {**(values or {}), **changed})


def writable(kind: Kind, given: Json) -> Json:
    fixed = {"id", "project_id", "tenant_id", "tags", "revision_number", "created_at", "updated_at", "status"}
    if wrong := sorted((given.keys() & fixed) | (given.keys() - kind.fields)):
        raise Refused(400, f"Cannot update read-only attribute {', '.join(wrong)}")
    return given


# --- who sees what ------------------------------------------------------------------------


def _is_everybodys(kind: Kind, row: Row) -> bool:
    return any(row[name] is True for name, _ in kind.everybodys)


def find(kind: Kind, asked: Request, row_id: str, *, to_write: bool = False) -> Row:
    row = kind.table(asked.cloud).rows.get(row_id)
    own = row is not None and (asked.caller.is_admin or row["project_id"] == asked.caller.project_id)
    if row is None or not (own or _is_everybodys(kind, row)):
        raise Refused(404, f"{kind.what} {row_id} could not be found.", f"{kind.what}NotFound")
    if to_write and not own:
        raise Refused(403, f"{kind.what} {row_id} belongs to another project.", "PolicyNotAuthorized")
    return row


def _rows(kind: Kind, asked: Request, filters: Query) -> list[Row]:
    table, caller = kind.table(asked.cloud), asked.caller
    if caller.is_admin:
        return select(table, filters)
    mine = dict(table.having("project_id", caller.project_id))
    for name, value in kind.everybodys:
        mine.update(table.having(name, value))
    return among(mine.values(), filters)


def view(kind: Kind, asked: Request) -> Callable[[Row], Row]:
    """Return a function that leaves in a row what the caller may see and wants."""
    wanted = frozenset(asked.query.get("fields", ()))
    hidden = frozenset() if asked.caller.is_admin else kind.hidden
    if not kind.tagged:  # rules of a group show it within the group alone
        hidden |= {"tags"}
    if wanted:
        names = wanted - hidden
        return lambda row: {name: value for name, value in row.items() if name in names}
    if hidden:
        return lambda row: {name: value for name, value in row.items() if name not in hidden}
    return lambda row: row


def check_revision(asked: Request, row: Row) -> None:
    text = asked.headers.get(b"if-match", b"").decode()
    if text and text != f"revision_number={row['revision_number']}":
        message = f"Constrained to {text.partition('=')[2]}, but current revision is {row['revision_number']}"
        raise Refused(412, message, "RevisionNumberConstraintFailed")


# --- requests -----------------------------------------------------------------------------


def register(kind: Kind) -> Kind:
    """Answer the requests to a collection, to one of its rows, and to its tags."""
    whole, one = f"/v2.0/{kind.collection}", f"/v2.0/{kind.collection}/{{}}"

    @NETWORK.on("GET", whole)
    def listed(asked: Request) -> Answer:
        kind.before_list(asked)
        query = {("project_id" if name == "tenant_id" else name): values for name, values in asked.query.items()}
        rows = _rows(kind, asked, filters_of(query, kind.fields, LIST))
        if len(rows) > 1:
            rows.sort(key=lambda row: str(row["id"]), reverse=asked.first("sort_dir") == "desc")
        rows, last = page(rows, asked, limit_of(asked))
        return Answer(200, linked(kind.plural, list(map(view(kind, asked), rows)), asked, last))

    @NETWORK.on("POST", whole)
    def create(asked: Request) -> Answer:
        several = b'"%s"' % kind.plural.encode() in asked.body[: len(kind.plural) + 8]
        given: list[Json] = asked.json(kind.plural) if several else [asked.json(kind.member)]
        _check_quota(kind, asked, given)
        made = [kind.make(asked, each) for each in given]
        kind.after_create(asked, made)
        shown = list(map(view(kind, asked), made))
        return Answer(201, {kind.plural: shown} if several else {kind.member: shown[0]})

    @NETWORK.on("GET", one)
    def show(asked: Request, row_id: str) -> Answer:
        return Answer(200, {kind.member: view(kind, asked)(find(kind, asked, row_id))})

    @NETWORK.on("PUT", one)
    def update(asked: Request, row_id: str) -> Answer:
        row = find(kind, asked, row_id, to_write=True)
        check_revision(asked, row)
        kind.change(asked, row, writable(kind, asked.json(kind.member)))
        return Answer(200, {kind.member: view(kind, asked)(row)})

    @NETWORK.on("DELETE", one)
    def delete(asked: Request, row_id: str) -> Answer:
        row = find(kind, asked, row_id, to_write=True)
        check_revision(asked, row)
        kind.delete(asked, row)
        return NOTHING

    if kind.tagged:
        _register_tags(kind, f"{one}/tags")
    return kind


def _check_quota(kind: Kind, asked: Request, given: Iterable[Json]) -> None:
    numbers: dict[str, int] = {}
    for each in given:
        project_id = owner(asked, each)
        numbers[project_id] = numbers.get(project_id, 0) + 1
    for project_id, number in numbers.items():
        check_room(asked.cloud, kind.member, project_id, number)


def _register_tags(kind: Kind, path: str) -> None:
    def tag(asked: Request, row_id: str, change: Callable[[list[str]], list[str]]) -> Row:
        row = find(kind, asked, row_id, to_write=True)
        tags = change(row["tags"])
        return row if tags == row["tags"] else bump(kind.table(asked.cloud), row, {"tags": tags})

    @NETWORK.on("GET", path)
    def tags_of(asked: Request, row_id: str) -> Answer:
        return Answer(200, {"tags": find(kind, asked, row_id)["tags"]})

    @NETWORK.on("PUT", path)
    def replace_tags(asked: Request, row_id: str) -> Answer:
        given = asked.json("tags")
        return Answer(200, {"tags": tag(asked, row_id, lambda _: sorted(set(given)))["tags"]})

    @NETWORK.on("PUT", f"{path}/{{}}")
    def add_tag(asked: Request, row_id: str, name: str) -> Answer:
        tag(asked, row_id, lambda tags: tags if name in tags else [*tags, name])
        return Answer(201, b"null")

    @NETWORK.on("DELETE", f"{path}/{{}}")
    def remove_tag(asked: Request, row_id: str, name: str) -> Answer:
        if name not in find(kind, asked, row_id, to_write=True)["tags"]:
            raise Refused(404, f"Tag {name} could not be found.", "TagNotFound")
        tag(asked, row_id, lambda tags: [each for each in tags if each != name])
        return NOTHING
