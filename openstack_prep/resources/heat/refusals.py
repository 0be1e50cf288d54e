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
QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
WITHHELD = "the reason is not shown, because a function makes the value of a hidden parameter"


def without_altered(text: str, package: Package) -> str:
    """Return the reason of a refusal up to a property that a function makes of a hidden parameter.

    If the reason names no property, what it quotes is left out.
    """
    if not (altered := frozenset(_altered(package))):
        return text
    named = [*PROPERTY.finditer(text)]
    for each in named:
        if each[1] in altered:
            return f"{text[: each.end()]}: {WITHHELD}"
    return text if named else QUOTED.sub("'...'", text)


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
