"""Invalid values: what is wrong with one, and what to write instead."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Self

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake
from openstack_prep.base.raw import Raw
from openstack_prep.base.secret_forms import BARE_LOGIN, QUERY

_LIST = ("is not a list", "write [A, B], or one line with '- ' per item")
_MAPPING = ("is not a mapping", "write one line KEY: VALUE per entry")
_WHOLE = ("is not a whole number", "write digits without quotes")
_NUMBER = ("is not a number", "write digits without quotes")
_BOOLEAN = ("is neither true nor false", "write true or false, without quotes")
PLAIN = {
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type"), _LIST),
    **dict.fromkeys(("dict_type", "mapping_type", "dataclass_type", "dataclass_exact_type", "model_type"), _MAPPING),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), _WHOLE),
    **dict.fromkeys(("float_type", "float_parsing"), _NUMBER),
    **dict.fromkeys(("bool_type", "bool_parsing"), _BOOLEAN),
    "string_type": ("is not text", "write text"),
    "none_required": ("is not null", "remove it"),
}
"""What pydantic's errors of types mean in YAML, and the fix; its own texts have the words of JSON."""


class InvalidValue(ValueError):
    """Raised by whoever reads a value: ``what`` is wrong with it, without the value, and ``fix``, what to do."""

    def __init__(self, what: str, fix: str = "", code: str = Code.SPEC_INVALID_VALUE) -> None:
        super().__init__(f"{what}; {fix}" if fix else what)
        self.what, self.fix, self.code = what, fix, code

    @classmethod
    def of(cls, finding: Raw) -> Self:
        """Return what a finding of pydantic says: the error that a field's function has raised, or plain words."""
        raised = finding.get("ctx", {}).get("error")
        if isinstance(raised, cls):
            return raised
        if finding["type"] in PLAIN:
            what, fix = PLAIN[finding["type"]]
            is_number = finding["type"] == "string_type" and isinstance(finding["input"], int | float)
            return cls(what, "put it in quotes" if is_number else fix)
        return cls(re.sub(r"^(Input|String|Value|List|Tuple|Dictionary|Value error,) ", "", finding["msg"]))

    def at(self, where: str, value: object) -> Mistake:
        return Mistake(where, f"{value!r} {self.what}", self.fix, code=self.code)


DOTS = (".", "..")
"""Segments of a path that clients remove from URLs: a request for the tag .. of a port would be one for the port."""
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def one_line(value: object) -> object:
    """Refuse a name with line ends: Keystone creates such a user, and does not find it by its name.

    Tabs, which OpenStack allows, are refused as well: nobody can tell them from spaces. Spaces at the ends are part of
    a name in Neutron, Glance and others, and who refers to such a resource cannot always rename it.
    """
    if isinstance(value, str) and _CONTROL.search(value):
        tab = {*_CONTROL.findall(value)} == {"\t"}
        what, fix = ("a tab", "write a space") if tab else ("a line end or another control character", "write one line")
        raise InvalidValue(f"contains {what}", f"{fix}, and rename what has this name already")
    if value in DOTS:
        raise InvalidValue("means a folder in a URL, so that no request can name it", "choose another name")
    return value


def rare_character(texts: Iterable[str]) -> str:
    """Return the first character beyond U+FFFF, as it is shown; empty if there is none.

    Glance, Nova and Neutron refuse it (Glance 33.0.0, common/utils.py, no_4byte_params; Nova 34.0.0,
    api/validation/parameter_types.py, _get_all_chars; neutron-lib 5.0.1, api/validators, validate_name_string), and
    databases with three bytes per character do not store it. Keystone takes it.
    """
    return next((f"{each} (U+{ord(each):X})" for text in texts for each in text if each > "\uffff"), "")


def no_end_spaces(value: object) -> object:
    """Refuse spaces at the ends of a name that this spec gives, and that a service stores without them.

    Keystone does so with projects, users and tags of projects (Keystone 30.0.0, resource/core.py, create_project and
    create_project_tag; identity/core.py, create_user), so apply would never find what it has created.
    """
    if isinstance(value, str) and value != value.strip():
        raise InvalidValue("begins or ends with a space", "remove it, and rename what has this name already")
    return value


_LOGIN = re.compile(r"(?<=://)(?:[^/?#\s]*@|(?!\[)[^/?#\s@]*:(?!\d*(?:[/?#][^@]*)?$).*)", re.DOTALL)
"""The login in a URL, also of one that ends in its middle: what follows the colon is no port then.

A bracket begins an IPv6 address.
"""


def shown(value: object) -> str:
    """Return a value as written in a file; mappings and lists may hold a secret."""
    if isinstance(value, dict) and list(value) == ["file"]:
        return f"the file {value['file']}"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        value = QUERY.sub("?...", BARE_LOGIN.sub("...", _LOGIN.sub("...", value)))
    text = json.dumps(value, default=str)
    return text if len(text) <= 40 else text[:37] + "..."
