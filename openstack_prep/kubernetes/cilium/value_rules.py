"""Checks of Helm values: by the schema of a chart, else by a table of the names at the top level.

Helm ignores unknown names in silence, and up to 1.15 also values of a wrong type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from openstack_prep.base.codes import Code
from openstack_prep.base.formats.foreign_text import shipped_yaml
from openstack_prep.base.secret import Secret
from openstack_prep.base.suggestion import suggest
from openstack_prep.kubernetes.cilium import releases
from openstack_prep.kubernetes.cilium.chart import Chart
from openstack_prep.kubernetes.keys.hiding import hide
from openstack_prep.kubernetes.keys.schema import Fault, Steps, validator_class

KINDS = {
    "boolean": "true or false",
    "text": "a string",
    "string": "a string",
    "number": "a number",
    "integer": "an integer",
    "list": "a list",
    "array": "a list",
    "mapping": "a mapping",
    "object": "a mapping",
    "null": "null",
}
LONGEST = 40
"""Maximum length of a shown value."""


class Names(NamedTuple):
    """The names at the top level, with the kinds of their values and the releases 1.N that read them."""

    kinds: Mapping[str, str]
    since: Mapping[str, int]
    until: Mapping[str, int]
    unlisted: frozenset[str]
    """Dotted names that charts read although their schemas do not have them."""


@cache
def names() -> Names:
    """Return the table."""
    found = shipped_yaml(__package__, "names.yaml")
    kinds = {name: kind for kind, listed in found["types"].items() for name in listed}
    return Names(kinds, found["since"], found["until"], frozenset(found["unlisted"]))


def by_table(values: Mapping[str, object], release: str) -> Iterator[Fault]:
    """Yield unknown names at the top level, names of other releases, and values of a wrong type."""
    table = names()
    number = releases.minor(release)[1] if releases.is_known(release) else None
    for name, value in values.items():
        if name not in table.kinds:
            yield _unknown((name,), table.kinds)
            continue
        first, last = table.since.get(name, 0), table.until.get(name, 99)
        if number is not None and not first <= number <= last:
            what = f"Cilium {release} does not read it; 1.{first} and later do" if number < first else None
            what = what or f"Cilium {release} does not read it; 1.{last} was the last release that did"
            yield Fault((name,), what, "remove it, or correct version", Code.SPEC_UNKNOWN_KEY)
        elif value is not None and not _is_of(value, table.kinds[name]):
            wanted = KINDS[table.kinds[name]]
            yield Fault((name,), f"{_shown(value, name)} is not {wanted}", f"write {wanted}")


def _is_of(value: object, kind: str) -> bool:
    """Whether a value is of a kind; templates write numbers and strings alike."""
    scalar = isinstance(value, str | int | float)
    checks = {
        "boolean": isinstance(value, bool),
        "text": scalar,
        "number": scalar and not isinstance(value, bool) and str(value).lstrip("-").isdecimal(),
        "list": isinstance(value, list | tuple),
        "mapping": isinstance(value, Mapping),
    }
    return checks.get(kind, True)


def by_chart(values: Mapping[str, object], chart: Chart) -> Iterator[Fault]:
    """Yield everything in values that the schema of a chart does not allow."""
    unlisted = names().unlisted
    for error in validator_class()(chart.schema).iter_errors(values):
        steps: Steps = tuple(error.absolute_path)
        if error.validator != "additionalProperties":
            yield _wrong(error, steps)
            continue
        known = error.schema["properties"]
        for name in (str(each) for each in error.instance if each not in known):
            if ".".join(map(str, (*steps, name))) not in unlisted:
                yield _unknown((*steps, name), known)


def _wrong(error: Any, steps: Steps) -> Fault:
    shown = _shown(error.instance, str(steps[-1]) if steps else "")
    if error.validator == "type":
        types = error.validator_value if isinstance(error.validator_value, list) else [error.validator_value]
        wanted = " or ".join(dict.fromkeys(KINDS.get(str(each), str(each)) for each in types if each != "null"))
        return Fault(steps, f"{shown} is not {wanted}", f"write {wanted}")
    if error.validator == "enum":
        choices = ", ".join(map(str, error.validator_value))
        return Fault(steps, f"{shown} is not supported", f"write one of {choices}")
    return Fault(steps, f"the chart does not allow {shown}", "see values.yaml of the chart")


def _unknown(steps: Steps, known: Mapping[str, object]) -> Fault:
    return Fault(steps, "unknown key", suggest(str(steps[-1]), known) or "remove it", Code.SPEC_UNKNOWN_KEY)


def _shown(value: object, name: str) -> str:
    """Return a value for a message, unless it may be a secret by its name or form; a long string may be a key."""
    if isinstance(value, Mapping | list | tuple):
        return "a mapping" if isinstance(value, Mapping) else "a list"
    return "the value" if len(str(value)) > LONGEST or isinstance(hide(value, name), Secret) else repr(value)
