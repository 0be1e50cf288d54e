"""Answers of services, whose shape is checked: a proxy, or a service that fails, may answer 200 with something else."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Self, cast

from openstack_prep.base.errors import CloudError
from openstack_prep.base.raw import Raw

if TYPE_CHECKING:
    import requests


class Misshapen(CloudError):
    """An answer does not have the documented shape."""


@dataclass(frozen=True)
class Origin:
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

    def __init__(self, members: dict[str, Any], origin: Origin) -> None:
        super().__init__({name: Items(each, origin) if type(each) is list else each for name, each in members.items()})
        self.origin = origin

    def __missing__(self, name: str) -> NoReturn:
        self.origin.refuse(f"has no {name}")


class Items(list[Any]):
    """A list in an answer; who takes it for an object gets an error of the service."""

    __slots__ = ("origin",)

    def __init__(self, items: list[Any], origin: Origin) -> None:
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
    origin = Origin.of(response, asked)
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
    origin = Origin.of(response, asked)
    return objects(_parsed(response, origin), origin)


def objects(found: object, origin: Origin) -> list[Answer]:
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


def _parsed(response: requests.Response, origin: Origin) -> object:
    if not response.content:
        origin.refuse("is empty")
    try:
        found: object = json.loads(response.content, object_hook=lambda members: Answer(members, origin))
    except (ValueError, RecursionError):
        kind = response.headers.get("Content-Type") or "data of an unknown type"
        origin.refuse("is damaged JSON" if "json" in kind else f"is not JSON but {kind}"[:120])
    return found
