"""The JSON Schema of a spec, with the docstrings of its fields."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from functools import cache
from itertools import pairwise
from types import ModuleType
from typing import Any

from openstack_prep.base.raw import Raw, Values
from openstack_prep.spec import sections, variables
from openstack_prep.spec.references import with_variables


@cache
def _bare_schema() -> Any:
    return sections.adapter().json_schema()


def schema(*, included: bool = False) -> Values:
    """Return the JSON Schema (2020-12) of a spec, or of a file that specs include, for editors: with variables."""
    whole = with_variables(filled_schema())
    if included:
        del whole["properties"]["name"]
        whole["required"].remove("name")
        whole["title"] += ", included file"
    return whole


def filled_schema() -> Values:
    """Return the JSON Schema of a spec whose variables have been replaced."""
    from openstack_prep.kinds import KINDS
    from openstack_prep.kubernetes.cilium import CiliumPool
    from openstack_prep.kubernetes.kube_vip import KubeVipPool
    from openstack_prep.kubernetes.metallb import MetalLBPool
    from openstack_prep.openshift.install_config import Pool

    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", **deepcopy(_bare_schema())}
    docstrings = _docstrings()
    derived = (Pool, CiliumPool, KubeVipPool, MetalLBPool)
    kinds: dict[str, type[object]] = {kind.__name__: kind for kind in (*KINDS.values(), *derived)}
    for name, part in [(sections.Sections.__name__, whole), *whole["$defs"].items()]:
        bases = [(each.__module__, each.__name__) for each in kinds[name].__mro__] if name in kinds else []
        for owner in bases or [each for each in docstrings if each[1] == name]:
            for field_name, text in docstrings.get(owner, {}).items():
                part.get("properties", {}).get(field_name, {}).setdefault("description", text)
    return whole


def _docstrings() -> dict[tuple[str, str], dict[str, str]]:
    rooms = ("resources", "openshift", "kubernetes", "exposures")
    places = tuple(f"openstack_prep.{room}." for room in rooms)
    modules = {
        name: module
        for name, module in sys.modules.items()
        if name.startswith(places) or name == "openstack_prep.core.adoptable"
    }
    return docstrings_of(modules | {each.__name__: each for each in (sections, variables)})


def docstrings_of(modules: Mapping[str, ModuleType]) -> dict[tuple[str, str], dict[str, str]]:
    """Return the docstrings of fields by module and class.

    pydantic can read them too, but parses a module again for each class, and ignores base classes.
    """
    parsed = [(name, ast.parse(inspect.getsource(module))) for name, module in modules.items()]
    return {
        (name, node.name): {
            field.target.id: str(text.value.value)
            for field, text in pairwise(node.body)
            if isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
        }
        for name, module in parsed
        for node in module.body
        if isinstance(node, ast.ClassDef)
    }


def known_keys(where: Sequence[str | int], whole: Any = None) -> Iterable[str]:
    """Return the keys that a schema, by default that of a spec, allows at a place."""
    whole = part = whole or _bare_schema()
    for step in where:
        options = [part, *part.get("anyOf", ())]
        for option in options:
            option = _resolved(whole, option)
            if isinstance(step, int) and "items" in option:
                part = option["items"]
            elif step in option.get("properties", {}):
                part = option["properties"][step]
            elif isinstance(option.get("additionalProperties"), dict):
                part = option["additionalProperties"]
    options = [_resolved(whole, option) for option in (part, *part.get("anyOf", ()))]
    return {key for option in options for key in option.get("properties", {})}


def _resolved(whole: Raw, part: Raw) -> Any:
    return whole["$defs"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part
