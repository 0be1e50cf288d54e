"""Answers of services, whose shape is checked, and services that do not answer; no request is sent here.

Kinds import this module where a spec is only read: it loads neither openstacksdk nor requests.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, Self, cast

from openstack_prep.base.errors import CloudError, Unreachable
from openstack_prep.base.raw import Raw

if TYPE_CHECKING:
    import requests

# --- services that do not answer: while many lists are read, each of these services is waited for once ---

DOWN = (502, 503, 504)
"""Answers of a service that cannot work, and of what stands in front of it."""


@dataclass
class Outages:
    """Services that did not answer while this was in use: by type, the path that was asked, and the error."""

    found: dict[str, tuple[str, CloudError]] = field(default_factory=dict)
    retries: int | None = None
    """How often a request is sent again; None: as often as usual."""

    @contextlib.contextmanager
    def in_use(self, retries: int | None) -> Iterator[None]:
        """Let the requests of this thread fail at once if their service did not answer an earlier one."""
        self.retries = retries
        token = _IN_USE.set(self)
        try:
            yield
        finally:
            _IN_USE.reset(token)

    def check(self, service: str, path: str) -> None:
        """Raise the error of a service that did not answer, as if this had been asked.

        Plans are compared, and which of several threads asks first differs from plan to plan.
        """
        if service in self.found:
            before, error = self.found[service]
            message = error.reason.replace(before, path)
            raise type(error)(message, retryable=error.retryable, status=error.status) from error

    def note(self, service: str, path: str, error: BaseException) -> None:
        if isinstance(error, Unreachable) or (isinstance(error, CloudError) and error.status in DOWN):
            self.found.setdefault(service, (path, error))


_IN_USE: ContextVar[Outages | None] = ContextVar("outages", default=None)


def in_use() -> Outages | None:
    return _IN_USE.get()


# --- answers, whose shape is checked: a proxy or a failing service may answer 200 with something else ---


class Misshapen(CloudError):
    """An answer does not have the documented shape."""


@dataclass(frozen=True)
class AnswerOrigin:
    """Where an answer comes from, for errors: method, service and path. Nothing of the answer is repeated."""

    asked: str
    status: int
    request_id: str | None

    @classmethod
    def of(cls, response: requests.Response, asked: str) -> Self:
        return cls(asked, response.status_code, response.headers.get("X-Openstack-Request-Id"))

    def refuse(self, what: str) -> NoReturn:
        """Raise Misshapen: the same request may be answered as documented a moment later."""
        raise Misshapen(
            f"{self.asked}: {self.status}, but the answer {what}; if this persists, "
            "check whether a proxy or another program answers in place of the service",
            retryable=True,
            status=self.status,
            request_id=self.request_id,
        )


class Answer(dict[str, Any]):
    """An object in an answer; a member that is missing is an error of the service."""

    __slots__ = ("origin",)

    def __init__(self, members: dict[str, Any], origin: AnswerOrigin) -> None:
        # lists of objects only get here as plain lists: json calls its hook for objects alone
        super().__init__({name: Items(each, origin) if type(each) is list else each for name, each in members.items()})
        self.origin = origin

    def __missing__(self, name: str) -> NoReturn:
        self.origin.refuse(f"has no {name}")


class Items(list[Any]):
    """A list in an answer; who takes it for an object gets an error of the service."""

    __slots__ = ("origin",)

    def __init__(self, items: list[Any], origin: AnswerOrigin) -> None:
        super().__init__(items)
        self.origin = origin

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, str):
            self.origin.refuse("has a list in the place of an object")
        return super().__getitem__(index)

    def get(self, name: str, default: object = None) -> NoReturn:
        self.origin.refuse("has a list in the place of an object")


def read_object(response: requests.Response, asked: str, *, may_be_empty: bool = False) -> Answer:
    """Return the object that an answer consists of; raises CloudError. A request that writes may get nothing."""
    origin = AnswerOrigin.of(response, asked)
    if may_be_empty and response.content.strip() in (b"", b"null"):
        return Answer({}, origin)
    found = _parsed(response, origin)
    if not isinstance(found, Answer):
        origin.refuse("is not an object")
    if len(found) == 1:  # an envelope, such as {"stack": {...}} or {"stacks": [...]}
        ((name, content),) = found.items()
        if content is None:
            origin.refuse(f"has nothing in {name}")
    return found


def page_reader(name: str) -> Callable[[requests.Response, str], Answer]:
    """Return a parser for pages of a list, whose member ``name`` is a list of objects if it is there."""

    def read_page(response: requests.Response, asked: str) -> Answer:
        page = read_object(response, asked)
        if name in page:
            objects(page[name], page.origin)
        return page

    return read_page


def read_list(response: requests.Response, asked: str) -> list[Answer]:
    """Return the list of objects that an answer consists of; raises CloudError."""
    origin = AnswerOrigin.of(response, asked)
    return objects(_parsed(response, origin), origin)


def objects(found: object, origin: AnswerOrigin) -> list[Answer]:
    """Return a part of an answer that must be a list of objects; raises CloudError."""
    if not isinstance(found, list) or not all(isinstance(each, Answer) for each in found):
        origin.refuse("has no list of objects")
    return found


def next_page(page: Raw, name: str) -> str | None:
    """Return the URL of the next page, in the form of any service."""
    if isinstance(page.get("next"), str):  # glance
        return cast(str, page["next"])
    links = page.get(f"{name}_links") or page.get("links") or ()  # nova, cinder, neutron; keystone
    if isinstance(links, Mapping):
        following = links.get("next")
    else:
        listed = (link for link in links if isinstance(link, Mapping)) if isinstance(links, Sequence) else ()
        following = next((link["href"] for link in listed if link.get("rel") == "next"), None)
    return following if isinstance(following, str) else None


def _parsed(response: requests.Response, origin: AnswerOrigin) -> object:
    if not response.content:
        origin.refuse("is empty")
    try:
        found: object = json.loads(response.content, object_hook=lambda members: Answer(members, origin))
    except (ValueError, RecursionError):
        kind = response.headers.get("Content-Type") or "data of an unknown type"
        origin.refuse("is damaged JSON" if "json" in kind else f"is not JSON but {kind}"[:120])
    return found
