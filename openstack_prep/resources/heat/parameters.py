"""Errors in the parameters of a stack: all of them at once, where Heat reports only the first.

Source: Heat Orchestration Template specification, "Parameters section" and "Parameter Constraints".
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from openstack_prep.base.raw import Raw, walk_steps
from openstack_prep.base.secret import Secret
from openstack_prep.base.suggestion import suggest
from openstack_prep.core.text import show
from openstack_prep.resources.heat.flow import TRUTH
from openstack_prep.resources.heat.package import is_hidden

Kind = Literal["flavor", "image", "keypair", "network", "subnet", "router", "security_group", "stack", "volume_type"]
"""What a parameter may refer to."""


class Found(NamedTuple):
    """What is wrong with a parameter."""

    parameter: str
    what: str
    fix: str


KINDS: dict[str, Kind] = {
    "glance.image": "image",
    "neutron.network": "network",
    "neutron.router": "router",
    "neutron.security_group": "security_group",
    "neutron.subnet": "subnet",
    "cinder.vtype": "volume_type",
    "nova.flavor": "flavor",
    "nova.keypair": "keypair",
}
"""The resource that a custom constraint requires."""
PROPERTIES: dict[Kind, str] = {"security_group": "security_groups", "volume_type": "volume_type", "flavor": "flavor"}
"""The property that refers to a resource by name or id, whatever its parameter's constraints are."""


def parameter_mistakes(declared: Mapping[str, Raw], given: Raw, *, fetch: bool = True) -> Iterator[Found]:
    """Yield what is wrong with the given values; hidden values are never shown.

    Without ``fetch`` only secrets are judged whose values are known already.
    """
    for name in sorted(given.keys() - declared.keys()):
        hint = f"the template has {', '.join(sorted(declared)) or 'none'}"
        fix = suggest(name, declared, hint)
        yield Found(name, f"parameters: the template has no parameter {name}", fix)
    for name, schema in declared.items():
        if name in given:
            hidden = is_hidden(schema)
            shown = "the value" if hidden else show(given[name])
            value = given[name]
            if isinstance(value, Secret):
                if not value.ready or not (fetch or value.fetched):  # the secret is not generated yet, or not asked for
                    continue
                value = value.reveal()
            if kind := _misread(schema, value):
                what = f"parameters: {name}: {shown} is {kind} in YAML, and the template's type is {schema['type']}"
                known = isinstance(value, bool) and not hidden  # a number may have lost digits
                yield Found(name, what, f"write {json.dumps(shown) if known else 'it'} in quotes")
                continue
            for what in list_violations(schema, value):
                yield Found(name, f"parameters: {name}: {shown} {what}", "correct the value")
        elif "default" not in schema:
            yield Found(
                name, f"parameters: {name} is missing", str(schema.get("description") or "").strip() or "add it"
            )


def _misread(schema: Raw, value: object) -> str:
    """Return what YAML has made of a text: Heat would take 1.2 for the version 1.20, and True for true; or nothing.

    An integer is the text that it looks like; one with leading zeros is refused where its file is read.
    """
    if schema["type"] == "comma_delimited_list" and isinstance(value, list | tuple):
        return next(filter(None, (_misread({"type": "string"}, each) for each in value)), "")
    if schema["type"] != "string":
        return ""
    return "a boolean" if isinstance(value, bool) else "a number" if isinstance(value, float) else ""


def named_resources(template: Raw, given: Raw) -> Iterator[tuple[Kind, str]]:
    """Yield the kind and the name or id of the resources that the values refer to.

    The template's custom constraints show it. Heat has no constraint for a list of security groups, and none for a
    volume type or flavor that may be empty, so these are the parameters that the template passes to such properties.
    """
    passed = {kind: set(_passed(template.get("resources"), to)) for kind, to in PROPERTIES.items()}
    for name, schema in (template.get("parameters") or {}).items():
        value = given.get(name, schema.get("default"))
        customs = {str(constraint.get("custom_constraint")) for constraint in schema.get("constraints") or ()}
        kinds = {KINDS[each] for each in customs & KINDS.keys()}
        kinds |= {kind for kind, names in passed.items() if name in names}
        for kind in kinds if value not in (None, "") else ():
            many = schema["type"] == "comma_delimited_list" or isinstance(value, list | tuple)
            for item in items(value) if many else [str(value)]:
                if (kind, item) != ("security_group", "default"):  # every project has this group
                    yield kind, item


def _passed(value: object, to: str) -> Iterator[str]:
    """Yield the parameters that a part of a template passes to properties with a name."""
    for steps, part in walk_steps(value):
        if to in steps and isinstance(part, Mapping) and isinstance(part.get("get_param"), str):
            yield part["get_param"]


def list_violations(schema: Raw, value: object) -> Iterator[str]:
    """Yield how a value violates its type and constraints."""
    if schema["type"] == "number" and _number(value) is None:
        yield "is not a number"
        return
    if schema["type"] == "boolean" and str(value).lower() not in TRUTH:
        yield "is not true or false"
    if schema["type"] == "json" and not _is_json(value):
        yield "is not a mapping, a list or JSON"
    for constraint in schema.get("constraints") or ():
        rule = {key: each for key, each in constraint.items() if key != "description"}
        try:
            meets = _meets(constraint, value, schema["type"])
        except (TypeError, ValueError, AttributeError, re.error) as error:  # ranges that are no mappings, and the like
            yield f"cannot be checked: the template's constraint {_in_quotes(rule)} is malformed ({error})"
            continue
        if not meets:
            yield f"violates the constraint {constraint.get('description') or _in_quotes(rule)}"


def _in_quotes(rule: object) -> str:
    """Return a constraint as a template has it: texts in quotes, because "true" and true differ."""
    if isinstance(rule, Mapping):
        return "{" + ", ".join(f"{key}: {_in_quotes(each)}" for key, each in rule.items()) + "}"
    if isinstance(rule, list | tuple):
        return "[" + ", ".join(map(_in_quotes, rule)) + "]"
    return json.dumps(rule, ensure_ascii=False) if isinstance(rule, str) else show(rule)


def _meets(constraint: Raw, value: object, kind: str) -> bool:
    if "range" in constraint:
        return _within(constraint["range"], _number(value) or 0)
    if "length" in constraint:
        return _within(constraint["length"], len(items(value) if kind == "comma_delimited_list" else str(value)))
    if "allowed_values" in constraint:
        allowed = [str(allowed_value) for allowed_value in constraint["allowed_values"]]
        values = items(value) if kind == "comma_delimited_list" else [_plain(value)]
        return all(each in allowed for each in values)
    if "allowed_pattern" in constraint:
        with warnings.catch_warnings():  # of Python about the template's pattern, such as "Possible nested set"
            warnings.simplefilter("ignore", FutureWarning)
            return re.match(f"(?:{constraint['allowed_pattern']})$", str(value)) is not None
    return True  # modulo and custom constraints are Heat's to check


def _within(limits: Raw, number: float) -> bool:
    return float(limits.get("min", "-inf")) <= number <= float(limits.get("max", "inf"))


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _plain(value: object) -> str:
    number = _number(value)
    return str(int(number)) if number is not None and number == int(number) and "." not in str(value) else str(value)


def items(value: object) -> list[str]:
    """Return the members of a comma_delimited_list, given as a list or as a text."""
    return (
        [str(each) for each in value]
        if isinstance(value, list | tuple)
        else [each.strip() for each in str(value).split(",") if each.strip()]
    )


def mapping_of(value: object) -> Raw | None:
    """Return the mapping of a parameter of type json, given as such or as a text; None for anything else."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    return value if isinstance(value, Mapping) else None


def with_additions(given: object, more: Raw | Sequence[str]) -> object:
    """Return the value of a parameter with further keys or items; keys that it has already stay."""
    if isinstance(more, Mapping):
        own = {} if given is None else mapping_of(given)
        return given if own is None else {**more, **own}
    return list(dict.fromkeys([*items(given or ()), *more]))


def _is_json(value: object) -> bool:
    if isinstance(value, Mapping | list | tuple):
        return True
    try:
        json.loads(str(value))
    except ValueError:
        return False
    return True
