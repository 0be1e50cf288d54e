"""Secrets in values that no schema marks: variables, flags, Helm values, texts and URLs of a cluster.yml."""

from __future__ import annotations

import re
from collections.abc import Mapping

from openstack_prep.base.secret import HIDDEN, Secret

WORDS = r"passw(or)?d|passphrase|secret|token|credentials?|authorization|[-_]key|(api|access|private|client|secret)key"
NAME = re.compile(rf".*({WORDS}|key[-_]data)", re.IGNORECASE)
"""Keys whose value is a secret; secretName and tokenFile are not."""
VARIABLE = re.compile(r"[^=]*(pass|secret|token|credential|private|key)", re.IGNORECASE)
"""Environment variables whose value is a secret by their name."""
URL_USER = re.compile(r"(?<=://)[^/\s@]+(?=@)")
URL_QUERY = re.compile(r"(?<=\?)\S+")
TEXT = re.compile(
    rf"({WORDS})[\"']?\s*[:=]\s*[\"']?(?!/)\S"  # password: x, --client-secret=x, but not a path
    r"|(authorization|x-[\w-]*(key|token|secret))[\"']?\s+[\"']?\S"  # a header in nginx's configuration
    r"|\b(bearer|basic)\s+[\w+/=.~-]{8,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|://[^/\s@]+@"
    r"|\?[^\s=]*(token|sig|key|pass|secret|credential|auth|code)[^\s=&]*=",
    re.IGNORECASE,
)
"""Texts that contain a secret, in whatever form."""


def hide(value: object, name: str = "") -> object:
    """Return data with each text that is or contains a secret as ``Secret``; ``name`` is the key of the value."""
    if isinstance(value, Mapping):
        variable = "value" in value and VARIABLE.match(str(value.get("name", "")))
        names = {each: f"{each}_secret" if variable and each == "value" else str(each) for each in value}
        return {each: hide(inner, names[each]) for each, inner in value.items()}
    if isinstance(value, list | tuple):
        return [hide(each, name) for each in value]
    if isinstance(value, str) and value and (NAME.fullmatch(name) or TEXT.search(value)):
        return Secret(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and NAME.fullmatch(name):
        return Secret(str(value))
    return value


def hide_variable(text: str) -> str | Secret:
    """Return a variable as NAME=VALUE, as ``Secret`` if its value is one by its name or form."""
    name, equals, _ = text.partition("=")
    return Secret(text) if equals and (VARIABLE.match(name) or TEXT.search(text)) else text


def hide_in_url(text: str) -> str:
    """Return a URL with asterisks for its login and its query, which may contain a token."""
    return URL_QUERY.sub(HIDDEN, URL_USER.sub(HIDDEN, text)) if "://" in text else text
