"""Reads fields of Kubernetes objects that others wrote: types and values are checked, all mistakes are collected."""

from __future__ import annotations

import ipaddress
import re
from typing import Any, TypeVar, cast

from openstack_prep.base.errors import Mistake
from openstack_prep.base.raw import Raw
from openstack_prep.kubernetes.model import LABEL

TYPES = {dict: "an object", list: "a list", str: "a text", bool: "a boolean", int: "a number", type(None): "null"}

T = TypeVar("T")


class Fields:
    """One object and its place; a wrong field becomes a mistake and counts as absent."""

    def __init__(self, data: Raw, where: str, mistakes: list[Mistake]) -> None:
        self.data = data
        self.where = where
        self.mistakes = mistakes

    def get(self, path: str, kind: type[T]) -> T | None:
        """Return the value at a dotted path; None if there is none or its type is wrong."""
        found: Any = self.data
        names = path.split(".")
        for number, name in enumerate(names, 1):
            found = found.get(name)
            if found is None:
                return None
            expected = kind if number == len(names) else dict
            if not isinstance(found, expected) or (kind is int and isinstance(found, bool)):
                what = f"is {type_name(found)}, not {TYPES[expected]}"
                self.wrong(".".join(names[:number]), what, "pass the output of kubectl unchanged")
                return None
        return cast("T", found)

    def text(self, path: str) -> str:
        return self.get(path, str) or ""

    def items(self, path: str, kind: type[T]) -> list[T]:
        """Return the members of a list that have the right type."""
        found = []
        for index, each in enumerate(self.get(path, list) or []):
            if isinstance(each, kind) and not isinstance(each, bool):
                found.append(each)
            else:
                fix = "pass the output of kubectl unchanged"
                self.wrong(f"{path}[{index}]", f"is {type_name(each)}, not {TYPES[kind]}", fix)
        return found

    def texts(self, path: str) -> dict[str, str]:
        """Return a mapping of texts, such as labels."""
        found = {}
        for key, value in (self.get(path, dict) or {}).items():
            if isinstance(key, str) and isinstance(value, str):
                found[key] = value
            else:
                what = f"has a key or value that is not a text: {key!r}"
                self.wrong(path, what, "pass the output of kubectl unchanged")
        return found

    def name(self, path: str, pattern: str = LABEL, default: str = "") -> str:
        """Return a name, which must be one that Kubernetes accepts: it becomes part of commands and files."""
        found = self.text(path) or default
        if not re.fullmatch(pattern, found):
            self.wrong(path, f"{found!r} is not a name of Kubernetes", "use lower-case letters, digits and hyphens")
            return ""
        return found

    def addresses(self, path: str) -> tuple[str, ...]:
        """Return addresses in their usual form, each once."""
        found = []
        for index, each in enumerate(self.get(path, list) or []):
            address = usual(each) if isinstance(each, str) else None
            if address is None:
                fix = "write an address that a Service can have, such as 192.0.2.10"
                self.wrong(f"{path}[{index}]", f"{each!r:.80} is not an address that a Service can have", fix)
            else:
                found.append(address)
        return tuple(dict.fromkeys(found))

    def wrong(self, path: str, what: str, fix: str) -> None:
        self.mistakes.append(Mistake(f"{self.where}: {path}", what, fix))


def type_name(value: object) -> str:
    return TYPES.get(type(value), "a number")


def usual(text: str) -> str | None:
    """Return the usual form of an address; None for what Kubernetes does not accept as an external IP."""
    # Source: kubernetes/kubernetes, pkg/apis/core/validation (ValidateNonSpecialIP)
    try:
        found = ipaddress.ip_address(text.strip())
    except ValueError:
        return None
    if isinstance(found, ipaddress.IPv6Address):
        if found.scope_id:
            return None
        found = found.ipv4_mapped or found
    special = found.is_unspecified or found.is_loopback or found.is_link_local or found.is_multicast
    return None if special else str(found)
