"""Why Heat refuses a template, without what functions have made of hidden parameters.

Heat quotes the value of a property that it refuses (27.0.1, engine/properties.py). A whole value is known, and hidden
wherever it occurs; the text that ``str_replace`` or ``digest`` makes of it is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from openstack_prep.resources.heat.flow import Flow
from openstack_prep.resources.heat.package import Package

PROPERTY = re.compile(r"\bproperties(?:\.|\[['\"])(\w+)")
QUOTED = re.compile(r"(?s:([\"']).*\1)")
"""All between the first quote and the last one: a value may contain some."""


def hide_altered(text: str, package: Package) -> str:
    """Return the reason of a refusal, without what it quotes if that may be made of a hidden parameter.

    It may not if the reason names another property than those which functions make of one.
    """
    if not (altered := frozenset(_altered(package))):
        return text
    named = {each[1] for each in PROPERTY.finditer(text)}
    return QUOTED.sub("'...'", text) if not named or named & altered else text


def _altered(package: Package) -> Iterator[str]:
    """Yield the properties that functions make of hidden parameters, and in nested templates of any parameter."""
    hidden = package.hidden
    for number, document in enumerate(package.documents() if hidden else ()):
        if isinstance(document, Mapping) and isinstance(document.get("resources"), Mapping):
            flow = Flow(document)
            for resource, definition in flow.resources.items():
                properties = definition.get("properties") if isinstance(definition, Mapping) else None
                for name in properties if isinstance(properties, Mapping) else ():
                    if flow.alters(flow.parameters if number else hidden, resource, name):
                        yield str(name)
