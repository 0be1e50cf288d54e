"""Invalid values: what is wrong with one, and what to write instead."""

from __future__ import annotations

import json
import re
from typing import Self

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake
from openstack_prep.base.raw import Raw


class InvalidValue(ValueError):
    """Raised by whoever reads a value: ``what`` is wrong with it, without the value, and ``fix``, what to do."""

    def __init__(self, what: str, fix: str = "", code: str = Code.SPEC_INVALID_VALUE) -> None:
        super().__init__(f"{what}; {fix}" if fix else what)
        self.what, self.fix, self.code = what, fix, code

    @classmethod
    def of(cls, finding: Raw) -> Self:
        """Return what a finding of pydantic says: the error that a field's function has raised, or pydantic's text."""
        raised = finding.get("ctx", {}).get("error")
        if isinstance(raised, cls):
            return raised
        return cls(re.sub(r"^(Input|String|Value|List|Tuple|Dictionary|Value error,) ", "", finding["msg"]))

    def at(self, where: str, value: object) -> Mistake:
        return Mistake(where, f"{value!r} {self.what}", self.fix, code=self.code)


_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def one_line(value: object) -> object:
    """Refuse a name with line ends: Keystone creates such a user, and does not find it by its name."""
    if isinstance(value, str) and _CONTROL.search(value):
        raise InvalidValue("contains a line end or another control character", "write a name on one line")
    return value


def shown(value: object) -> str:
    """Return a value as written in a file; mappings and lists may hold a secret."""
    if isinstance(value, dict) and list(value) == ["file"]:
        return f"the file {value['file']}"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = json.dumps(value, default=str)
    return text if len(text) <= 40 else text[:37] + "..."
