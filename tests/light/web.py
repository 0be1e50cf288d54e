"""Requests, answers, and the paths that an API knows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, unquote

import orjson

if TYPE_CHECKING:
    from tests.light.state import Cloud, Token

Json = dict[str, Any]
Query = dict[str, list[str]]
Receive = Callable[[], Awaitable[Any]]


class Answer(NamedTuple):
    """What is answered: an object, or bytes of a type."""

    status: int
    body: object = None
    headers: tuple[tuple[bytes, bytes], ...] = ()
    type: bytes = b"application/json"


NOTHING = Answer(204)


class Refused(Exception):
    """A request that is not carried out."""

    def __init__(self, status: int, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.kind = status, message, kind


def missing(what: str, name: str = "") -> Refused:
    return Refused(404, f"{what} {name} could not be found.".replace("  ", " "), f"{what.replace(' ', '')}NotFound")


def parsed(text: str) -> Query:
    """Return a query string's values by name."""
    query: Query = {}
    if text:
        for name, value in parse_qsl(text, keep_blank_values=True):
            query.setdefault(name, []).append(value)
    return query


@dataclass(slots=True)
class Request:
    """One request; ``caller`` is whose token it carries."""

    cloud: Cloud
    method: str
    path: str
    query_text: str
    headers: dict[bytes, bytes]
    query: Query
    url: str
    """Address of the service."""
    body: bytes = b""
    token: Token | None = None

    @property
    def caller(self) -> Token:
        assert self.token is not None
        return self.token

    @property
    def whole_url(self) -> str:
        return f"{self.url}{self.path}" + (f"?{self.query_text}" if self.query_text else "")

    def json(self, envelope: str) -> Any:
        """Return what a body holds in its envelope."""
        try:
            return orjson.loads(self.body)[envelope]
        except (ValueError, KeyError, TypeError):
            raise Refused(400, f"the body is no object with {envelope}") from None

    def first(self, name: str, default: str = "") -> str:
        values = self.query.get(name)
        return values[0] if values else default

    def says(self, name: str) -> bool:
        """Whether a parameter is there and not denied, as Keystone reads include_names."""
        values = self.query.get(name)
        return bool(values) and values[0].lower() not in ("0", "false")  # type: ignore[index]

    def only_admin(self) -> None:
        if not self.caller.is_admin:
            raise Refused(403, "You are not authorized to perform the requested action: administrators only.")


Handler = Callable[..., Answer | Awaitable[Answer]]
H = TypeVar("H", bound=Handler)


@dataclass(frozen=True, slots=True)
class Route:
    """What answers one kind of path; ``label`` names it in counts."""

    label: str
    handler: Handler
    public: bool
    admin: bool
    streams: bool


@dataclass(slots=True)
class _Node:
    names: dict[str, _Node] = field(default_factory=dict)
    variable: _Node | None = None
    routes: dict[str, Route] = field(default_factory=dict)


class Api:
    """The paths of one service, and the form of its errors."""

    def __init__(self, name: str, process: str, error: Callable[[Refused], Answer]) -> None:
        self.name, self.process, self.error = name, process, error
        self._root = _Node()

    def on(
        self, method: str, pattern: str, *, public: bool = False, admin: bool = False, streams: bool = False
    ) -> Callable[[H], H]:
        """Register a handler; ``{}`` in a pattern is any segment, which the handler gets besides the request."""

        def register(handler: H) -> H:
            node = self._root
            for segment in pattern.strip("/").split("/"):
                if segment == "{}":
                    node.variable = node.variable or _Node()
                    node = node.variable
                else:
                    node = node.names.setdefault(segment, _Node())
            node.routes[method] = Route(f"{method} {pattern}", handler, public, admin, streams)
            return handler

        return register

    def find(self, method: str, raw_path: str) -> tuple[Route | None, list[str]]:
        """Return the route of a path, still quoted, and its variable segments."""
        node, ids = self._root, []
        for segment in raw_path.strip("/").split("/"):
            named = node.names.get(segment)
            if named is not None:
                node = named
            elif node.variable is not None:
                node = node.variable
                ids.append(unquote(segment) if "%" in segment else segment)
            else:
                return None, ids
        return node.routes.get(method) or (node.routes.get("GET") if method == "HEAD" else None), ids
