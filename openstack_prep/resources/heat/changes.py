"""Which resources of a stack an update changes, judged by the templates before and after; no requests.

A preview of Heat cannot tell: it resolves an attribute of a resource in a stack that does not exist, as null, so that
each property with get_attr differs from the stored one (27.0.0, engine/service.py, preview_update_stack;
engine/hot/functions.py, GetAttThenSelect.result). In nested stacks it does so with get_resource as well. The update
itself takes the values of the existing resources, which Heat has stored (engine/resource.py, node_data). So a property
whose text is the same, and which takes nothing that changes, is the same.

Source of what replaces a resource: engine/resource.py, _needs_update and update_template_diff_properties;
engine/resources/openstack/nova/server.py, needs_replace_with_prop_diff; neutron/port.py, needs_replace.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from openstack_prep.base.raw import Raw, walk
from openstack_prep.resources.heat.flow import (
    ATTRIBUTES,
    GROUPS,
    PARAMETERS,
    RESOURCES,
    Conditions,
    nested_template,
    typed,
)
from openstack_prep.resources.heat.parameters import items

WHOLE = "*"
"""In place of a property: the resource as a whole changes."""
METADATA = "(metadata)"
"""The metadata of a resource, beside its properties; a server has a property of that name."""
SERVER, PORT = "OS::Nova::Server", "OS::Neutron::Port"
RESOURCE_GROUP = "OS::Heat::ResourceGroup"
POLICIES = {
    "image": ("image_update_policy", "REBUILD"),
    "flavor": ("flavor_update_policy", "RESIZE"),
    "user_data": ("user_data_update_policy", "REPLACE"),
}
"""The policy that decides how a property of a server is updated, and its default."""
MADE_OF: Mapping[tuple[str, str], frozenset[str]] = {
    **{(SERVER, name): frozenset({"networks"}) for name in ("addresses", "first_address", "networks")},
    **{(SERVER, name): frozenset({name}) for name in ("name", "instance_name")},
    **{(PORT, name): frozenset({"fixed_ips"}) for name in ("fixed_ips", "subnets")},
    **{(PORT, name): frozenset({name}) for name in ("mac_address", "name", "network", "network_id", "device_id")},
}
"""Attributes of a resource that is updated in place, and the properties that they change with; others may change."""
REPLACING = frozenset({("OS::Heat::Stack", "context"), ("AWS::AutoScaling::LaunchConfiguration", METADATA)})
"""Changes that replace a resource although its schema allows an update (27.0.0, engine/resources/openstack/heat/
remote_stack.py, needs_replace_with_prop_diff; aws/autoscaling/launch_config.py, needs_replace_with_tmpl_diff)."""
OF_GROUP = ("current_size", "removed_rsrc_list")
"""Attributes of a group as a whole, not of its members."""
_OF_MEMBER = re.compile(r"resource\.([^.]+)(?:\.(.+))?")
_FACADES = ("resource_facade", "Fn::ResourceFacade")


@dataclass(frozen=True)
class TemplateVersion:
    """A template before or after an update, and what it uses."""

    template: Raw
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    registry: Raw = field(default_factory=dict)
    defaults: Raw = field(default_factory=dict)
    """Defaults of parameters that the environment sets, also for nested templates."""
    values: Raw | None = None
    """Values of the parameters; None in a nested template, where they are not known."""

    @property
    def resources(self) -> Raw:
        return self.template.get("resources") or self.template.get("Resources") or {}

    @cached_property
    def conditions(self) -> Conditions:
        return Conditions(self.template if self.values is not None else {}, self.values)

    def properties(self, definition: Raw) -> Raw:
        return definition.get("properties") or definition.get("Properties") or {}

    def type_of(self, definition: Raw) -> str:
        """Return the type, or the file of a nested template."""
        kind = str(definition.get("type") or definition.get("Type"))
        return str(self.registry.get(kind, kind))

    def nested(self, definition: Raw) -> TemplateVersion | None:
        """Return the template of a resource that is a nested stack."""
        template = nested_template(self.files, self.type_of(definition))
        return None if template is None else TemplateVersion(template, self.files, self.registry, self.defaults)


def changed_parameters(old: TemplateVersion, new: TemplateVersion, unknown: Set[str]) -> frozenset[str]:
    """Return the parameters whose values differ; ``unknown``: those whose former values nobody knows."""
    before, after = (version.template.get("parameters") or {} for version in (old, new))
    return frozenset(
        name
        for name, schema in after.items()
        if name in unknown
        or name not in before
        or plain(schema, _effective(old, name)) != plain(schema, _effective(new, name))
    )


def _changed_defaults(old: TemplateVersion, new: TemplateVersion) -> frozenset[str]:
    """Return the parameters whose defaults differ."""
    before, after = (version.template.get("parameters") or {} for version in (old, new))
    return frozenset(
        name
        for name, schema in after.items()
        if (before.get(name) or {}).get("default") != schema.get("default")
        or old.defaults.get(name) != new.defaults.get(name)
    )


def _effective(version: TemplateVersion, name: str) -> object:
    declared: Raw = (version.template.get("parameters") or {}).get(name) or {}
    return (version.values or {}).get(name, declared.get("default"))


def plain(schema: Raw, value: object) -> object:
    """Return the value of a parameter in the form in which Heat compares it: 2 and "2" are one number."""
    if schema.get("type") == "comma_delimited_list" and value is not None:
        return items(value)
    if schema.get("type") == "json" and isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return typed(value, schema)


class TemplateChanges:
    """What differs between two versions of a template, and in the stacks nested in it."""

    def __init__(
        self,
        old: TemplateVersion,
        new: TemplateVersion,
        parameters: Set[str],
        unsettled: Set[str],
        is_updatable: Callable[[str, str], bool],
        prefix: str = "",
    ) -> None:
        self.old, self.new, self.parameters, self.prefix = old, new, parameters, prefix
        self.unsettled = unsettled
        """Places of the resources that an update creates again, whatever their definition is."""
        self.is_updatable = is_updatable
        """Whether Heat changes a property of a type in place."""
        self._changed: dict[str, frozenset[str]] = {}
        self._conditions: dict[str, bool] = {}
        same_version = old.template.get("heat_template_version") == new.template.get("heat_template_version")
        same_mappings = old.template.get("Mappings") == new.template.get("Mappings")
        self._comparable = same_version and same_mappings

    # --- resources --------------------------------------------------------------------------

    def changed(self, name: str) -> frozenset[str]:
        """Return the properties of a resource that change; WHOLE if more than properties does."""
        if name not in self._changed:
            self._changed[name] = frozenset({WHOLE})  # what depends on itself
            before, after = self.old.resources.get(name), self.new.resources.get(name)
            if before and after and self._comparable and self.prefix + name not in self.unsettled:
                self._changed[name] = self.compared(before, after)
        return self._changed[name]

    def compared(self, before: Raw, after: Raw) -> frozenset[str]:
        """Return the properties that differ between two definitions of a resource."""
        conditions = before.get("condition"), after.get("condition")
        if self.old.type_of(before) != self.new.type_of(after) or self._condition_differs(*conditions):
            return frozenset({WHOLE})
        old, new = self.old.properties(before), self.new.properties(after)
        if self.new.type_of(after) == PORT and new.get("replacement_policy") not in (None, "AUTO"):
            return frozenset({WHOLE})
        names = {name for name in old.keys() | new.keys() if self.differs(old.get(name), new.get(name))}
        if before.get("metadata") != after.get("metadata") or self.takes_change(after.get("metadata")):
            names.add(METADATA)  # its attributes may contain it
        return frozenset(names)

    def replaces(self, definition: Raw, changed: Set[str], *, wiping: bool = False) -> bool:
        """Whether Heat replaces a resource because of changed properties; ``wiping``: or wipes its disk in place."""
        if WHOLE in changed:
            return True
        kind = self.new.type_of(definition)
        if kind in GROUPS or self.new.nested(definition) is not None:
            return False  # the nested stack is updated
        properties = self.new.properties(definition)
        for name in changed:
            if (kind, name) in REPLACING:
                return True
            if kind == SERVER and name in POLICIES:
                policy, default = POLICIES[name]
                chosen = properties.get(policy, default)
                kept = ("RESIZE", "REBUILD", "REBUILD_PRESERVE_EPHEMERAL", "IGNORE")
                if chosen not in kept or (wiping and str(chosen).startswith("REBUILD")):
                    return True
            elif name != METADATA and not self.is_updatable(kind, name):
                return True
        return False

    def at(self, place: str) -> tuple[TemplateChanges, Raw, frozenset[str]] | None:
        """Return template, definition and changes of a place such as nodes.0.server; None if unknown."""
        name, _, rest = place.partition(".")
        definition = self.new.resources.get(name)
        if definition is None or name not in self.old.resources:
            return None
        return self._within(self.old.resources[name], definition, self.changed(name), name, rest)

    def _within(
        self, before: Raw, after: Raw, changed: frozenset[str], place: str, rest: str
    ) -> tuple[TemplateChanges, Raw, frozenset[str]] | None:
        if not rest:
            return self, after, changed
        kind = self.new.type_of(after)
        if kind in GROUPS:
            old, new = self._member(self.old, before), self._member(self.new, after)
            if old is None or new is None:
                return None
            member, _, rest = rest.partition(".")
            at = f"{place}.{member}"
            settled = self.prefix + at not in self.unsettled
            differing = self._member_changes(before, after) if settled else frozenset({WHOLE})
            return self._within(old, new, differing, at, rest)
        level = self._nested(before, after, changed, place)
        return level.at(rest) if level is not None else None

    def _member(self, version: TemplateVersion, group: Raw) -> Raw | None:
        """Return the definition of the members of a group."""
        inner = version.properties(group).get(GROUPS.get(version.type_of(group), ""))
        return inner if isinstance(inner, Mapping) else None

    def _member_changes(self, before: Raw, after: Raw) -> frozenset[str]:
        """Return the properties that change of all members of a group."""
        index_vars = self.old.properties(before).get("index_var"), self.new.properties(after).get("index_var")
        old, new = self._member(self.old, before), self._member(self.new, after)
        if index_vars[0] != index_vars[1] or old is None or new is None:
            return frozenset({WHOLE})
        return self.compared(old, new)

    def _nested(self, before: Raw, after: Raw, changed: frozenset[str], place: str) -> TemplateChanges | None:
        old, new = self.old.nested(before), self.new.nested(after)
        if old is None or new is None or WHOLE in changed:
            return None
        parameters = changed | _changed_defaults(old, new)
        return TemplateChanges(old, new, parameters, self.unsettled, self.is_updatable, f"{self.prefix}{place}.")

    # --- values -----------------------------------------------------------------------------

    def differs(self, before: object, after: object) -> bool:
        return before != after or self.takes_change(after)

    def takes_change(self, value: object) -> bool:
        """Whether a part of the new template takes a value that changes: a parameter, an attribute, a file."""
        if isinstance(value, list | tuple):
            return any(map(self.takes_change, value))
        if not isinstance(value, Mapping):
            return False
        if len(value) == 1:
            ((function, operand),) = value.items()
            if function in ("if", "Fn::If") and isinstance(operand, list) and operand:
                return self._choice_changes(operand)
            if self._is_changed_by(function, operand):
                return True
        return any(map(self.takes_change, value.values()))

    def _is_changed_by(self, function: str, operand: Any) -> bool:
        named = operand.split(".", 1) if function == "Fn::GetAtt" and isinstance(operand, str) else operand
        first, *path = named if isinstance(named, list) and named else [named]
        if function in _FACADES:
            return True  # it is made of the resource around the nested template
        if function == "get_file":
            return self.old.files.get(str(operand)) != self.new.files.get(str(operand))
        if function in (*PARAMETERS, *RESOURCES, *ATTRIBUTES) and not isinstance(first, str):
            return True  # a name that is computed
        if function in PARAMETERS and first in self.parameters:
            return True
        if function in (*RESOURCES, "Ref") and first in self.new.resources:
            return self._reference_changes(first)
        return function in ATTRIBUTES and self._attribute_changes(first, path)

    def _reference_changes(self, name: str) -> bool:
        definition = self.new.resources[name]
        if self.replaces(definition, self.changed(name)):
            return True
        level = self._nested(self.old.resources[name], definition, self.changed(name), name)
        return level is not None and level.output_changes("OS::stack_id")

    def _attribute_changes(self, name: str, path: list[Any]) -> bool:
        changed, definition = self.changed(name), self.new.resources.get(name)
        attribute = path[0] if path else ""
        if definition is None or not isinstance(attribute, str) or self.replaces(definition, changed):
            return True
        kind = self.new.type_of(definition)
        if kind in GROUPS:
            return self._attribute_of_group_changes(name, kind, path)
        level = self._nested(self.old.resources[name], definition, changed, name)
        if level is not None:
            return level.output_changes(attribute)
        return bool(changed & MADE_OF.get((kind, attribute), changed))

    def output_changes(self, name: str) -> bool:
        """Whether an output changes; for one that the template does not have, whether any resource does."""
        outputs = [each.template.get("outputs") or {} for each in (self.old, self.new)]
        if name not in outputs[0] and name not in outputs[1]:
            return name != "OS::stack_id" and any(map(self.changed, self.new.resources))
        return self.differs(*(output.get(name) for output in outputs))

    def _attribute_of_group_changes(self, name: str, kind: str, path: list[Any]) -> bool:
        """Whether an attribute of a group changes: its size, the member that is named, or an attribute of members."""
        attribute, changed = str(path[0]), self.changed(name)
        of_one = _OF_MEMBER.fullmatch(attribute)
        sized = changed - {GROUPS[kind]}
        if of_one is not None and kind == RESOURCE_GROUP:
            sized &= {"removal_policies", "removal_policies_mode"}  # the size alone keeps the member
        if sized or attribute in OF_GROUP:
            return bool(changed)
        before, after = self.old.resources[name], self.new.resources[name]
        if of_one is not None:
            member, inner = of_one.groups()
            return self._member_attribute_changes(before, after, f"{name}.{member}", inner)
        if any(each.startswith(f"{self.prefix}{name}.") for each in self.unsettled):
            return True
        of_each = path[1] if attribute in ("attributes", "outputs", "outputs_list") and path[1:] else attribute
        inner = None if attribute in ("refs", "refs_map") else str(of_each)
        return self._member_attribute_changes(before, after, f"{name}.*", inner)

    def _member_attribute_changes(self, before: Raw, after: Raw, place: str, attribute: str | None) -> bool:
        """Whether an attribute of a group's member changes; None stands for its id."""
        if self.prefix + place in self.unsettled:
            return True
        changed = self._member_changes(before, after)
        old, new = self._member(self.old, before), self._member(self.new, after)
        if old is None or new is None or self.replaces(new, changed):
            return True
        first = (attribute or "OS::stack_id").split(".")[0]
        level = self._nested(old, new, changed, place)
        if level is not None:
            return level.output_changes(first)
        made_of = MADE_OF.get((self.new.type_of(new), first), changed)
        return attribute is not None and bool(changed & made_of)

    # --- conditions -------------------------------------------------------------------------

    def _choice_changes(self, choice: list[Any]) -> bool:
        """Whether the value of an ``if`` changes: its condition, or the branch that is taken."""
        if self._condition_differs(choice[0], choice[0]):
            return True
        return any(map(self.takes_change, self.new.conditions.branches(choice)))

    def _condition_differs(self, before: object, after: object) -> bool:
        if before is None and after is None:
            return False
        decided = self.old.conditions.decide(before), self.new.conditions.decide(after)
        if None not in decided:
            return decided[0] != decided[1]
        return before != after or self._condition_takes_change(after)

    def _condition_takes_change(self, condition: object) -> bool:
        if isinstance(condition, str):
            named = [each.template.get("conditions") or {} for each in (self.old, self.new)]
            if condition not in self._conditions and any(condition in each for each in named):
                before, after = (each.get(condition) for each in named)
                self._conditions[condition] = False  # what depends on itself, which Heat refuses
                self._conditions[condition] = before != after or self._condition_takes_change(after)
            return self._conditions.get(condition, False)
        if isinstance(condition, Mapping):
            inner = any(map(self._condition_takes_change, condition.values()))
            return inner or self.takes_change(condition)
        return isinstance(condition, list | tuple) and any(map(self._condition_takes_change, condition))


def references(value: object) -> Iterator[str]:
    """Yield the functions of a part of a template that a preview cannot resolve."""
    functions = (*ATTRIBUTES, *RESOURCES, "Ref")
    return (key for part in walk(value) if isinstance(part, Mapping) for key in part if key in functions)
