"""What Heat would create, and what an update would do.

Heat compares properties, so it may report an update that has no effect. A second preview shows what an update does to
disks in place, and the effect on the members of groups is computed. What nobody can predict is called "maybe replace".

Source: Orchestration API v1, "Preview stack", "Preview stack update" (show_nested).
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from functools import cache, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import yaml

from openstack_prep.base.errors import CloudError, NotAllowed, NotFound
from openstack_prep.base.formats.foreign_text import parse_yaml
from openstack_prep.base.raw import Raw, Values, rewrite
from openstack_prep.base.secret import Secret
from openstack_prep.resources.heat.changes import (
    WHOLE,
    TemplateChanges,
    TemplateVersion,
    changed_parameters,
    plain,
    references,
)
from openstack_prep.resources.heat.package import Package, hidden_in
from openstack_prep.resources.heat.parameters import items
from openstack_prep.resources.heat.stacks import HeatResource, HeatStack

if TYPE_CHECKING:
    from openstack_prep.cloud.service import Service


# The effect of an update on the members of groups, as far as Heat's preview does not show it; pure functions.
#
# A preview works with the names that a ResourceGroup has skipped so far. Names in new removal_policies are only skipped
# by the update itself, which deletes these members and creates others; this module computes that for groups of the main
# template. For a scaling group, a preview shows members that do not exist.
#
# Source: Heat 27.0.1, heat/engine/resources/openstack/heat/resource_group.py (_name_skiplist, _update_name_skiplist,
# _resource_names, handle_update); autoscaling_group.py (_try_rolling_update); aws/autoscaling/autoscaling_group.py
# (handle_update, resize: the oldest members go); instance_group.py (_create_template, which reads the members of a
# group that a preview does not know).

GROUP, SCALING = "OS::Heat::ResourceGroup", "OS::Heat::AutoScalingGroup"
ROLLED = (SCALING, "OS::Heat::InstanceGroup", "AWS::AutoScaling::AutoScalingGroup")
"""Groups that give each member the new definition one after the other, where a preview shows other members."""
SIZED_BY = {WHOLE, "removal_policies", "removal_policies_mode", "count"}
MAYBE = "maybe replace"


@dataclass(frozen=True, order=True)
class Effect:
    """One resource that an update would affect: the action, its place, and its type.

    ``changed`` are the properties that an update changes, as far as the templates show it; WHOLE stands for any.
    """

    verb: str
    place: str
    type: str
    changed: frozenset[str] = field(default=frozenset(), compare=False)

    def __str__(self) -> str:
        return f"{self.verb} {self.place}"


class Unknown(Exception):
    """Only Heat can compute the value."""


@dataclass(frozen=True)
class Parameters:
    """The parameters of an update: their values, and their declarations in the template."""

    given: Raw
    declared: Raw

    def of(self, value: object) -> Any:
        """Return a property's value; raises Unknown for functions other than get_param."""
        if isinstance(value, list | tuple):
            return [self.of(each) for each in value]
        if not isinstance(value, Mapping):
            return value
        name = value.get("get_param")
        if value.keys() != {"get_param"} or not isinstance(name, str):
            raise Unknown(name)
        if name in self.given:
            return self.given[name]
        return (self.declared.get(name) or {}).get("default")

    def number(self, value: object, default: int) -> int:
        """Return a number; raises Unknown."""
        found = self.of(value)
        try:
            return default if found is None else int(found)
        except (TypeError, ValueError):
            raise Unknown(found) from None


def not_growing(stack: HeatStack, template: Raw, values: Parameters) -> Values:
    """Return a template whose groups do not grow, because Heat cannot preview growth; groups that shrink do shrink.

    A new group of nested templates is previewed without members (27.0.1, engine/api.py, format_stack_resource: a member
    that exists nowhere has no id).
    """
    members = Counter(place.rpartition(".")[0] for place in stack.made)
    resources = dict(template.get("resources") or {})
    for name, each in resources.items():
        if each.get("type") == GROUP:
            count, properties = members[name], each.get("properties") or {}  # without any, Heat says what is missing
            with contextlib.suppress(Unknown):  # ``_with_members`` handles this
                count = min(count, values.number(properties.get("count"), 1))
            resources[name] = {**each, "properties": {**properties, "count": count}}
    return {**template, "resources": resources}


def with_group_effects(
    found: list[Effect], stack: HeatStack, template: Raw, values: Parameters, changes: TemplateChanges
) -> list[Effect]:
    """Return the preview, completed with the effect on the members of groups."""
    for name, each in (template.get("resources") or {}).items():
        comes = Effect("add", name, GROUP) in found
        if each.get("type") == GROUP and (comes or f"{name}." in stack.places.values()):
            found = _with_members(found, stack, name, each.get("properties") or {}, values, changes)
    found = [_with_rolling_updates(effect, stack, template, values, changes) for effect in found]
    return sorted({one for effect in found for one in _leaves(effect, stack)})


def _with_members(
    found: list[Effect], stack: HeatStack, name: str, properties: Raw, values: Parameters, changes: TemplateChanges
) -> list[Effect]:
    """Return the preview with the members of a group that come, and those that its removal_policies remove."""
    made = {place: each for place, each in stack.made.items() if place.rpartition(".")[0] == name}
    not_sized = any(effect.place == name for effect in found)  # Heat could not preview the whole update
    members = {place.rpartition(".")[2]: each for place, each in made.items()}
    try:
        removed, overwrites = _removed_members(members, properties, values)
        if removed or overwrites or not_sized:
            count = values.number(properties.get("count"), 1)
    except Unknown:
        is_doubtful = made and changes.changed(name) & SIZED_BY  # a group without members has none to replace
        return [*found, Effect(MAYBE, name, GROUP)] if is_doubtful else found
    if not (removed or overwrites or not_sized):  # the preview shows all of it
        return found
    names = _members_after(members.keys(), removed, count, overwrites=overwrites)
    kind = str((properties.get("resource_def") or {}).get("type"))
    coming = [Effect("add", f"{name}.{one}", kind) for one in names if one not in members]
    found = [*found, *(effect for effect in coming if effect not in found)]
    if not removed and not overwrites:
        return found
    going = {f"{name}.{one}" for one in members.keys() - set(names)}
    kept = [
        effect
        for effect in found
        if not (effect.verb == "delete" and effect.place in made)
        and ".".join(effect.place.split(".")[: name.count(".") + 2]) not in going
    ]
    return [*kept, *(Effect("delete", place, made[place].type) for place in going)]


def _removed_members(members: Mapping[str, HeatResource], properties: Raw, values: Parameters) -> tuple[Set[str], bool]:
    """Return the members that removal_policies remove, and whether earlier ones may come back. Raises Unknown."""
    wanted = set(_listed(properties.get("removal_policies"), values))
    removed = {each for each, resource in members.items() if {each, resource.id} & wanted}
    known = removed | {members[each].id for each in removed}
    if any(not each.isdecimal() for each in wanted - known):
        raise Unknown("an id that a nested template gives its member")
    return removed, values.of(properties.get("removal_policies_mode")) == "update"


def _members_after(members: Set[str], removed: Set[str], count: int, *, overwrites: bool) -> list[str]:
    """Return the names of the members that a group will have: Heat does not use those again that were removed."""
    numbers = [int(member) for member in members if member.isdecimal()]
    skipped = removed if overwrites else removed | {str(n) for n in range(max(numbers, default=0))} - members
    names = (each for each in map(str, itertools.count()) if each not in skipped)
    return list(itertools.islice(names, count))


def _listed(policies: object, values: Parameters) -> Iterator[str]:
    """Yield the members that removal_policies name; raises Unknown."""
    policies = policies if isinstance(policies, list | tuple) else values.of(policies) or ()
    if not isinstance(policies, list | tuple):
        raise Unknown(policies)
    for each in policies:
        policy = each if isinstance(each, Mapping) and not each.keys() - {"resource_list"} else values.of(each)
        if policy is not None and not isinstance(policy, Mapping):
            raise Unknown(policy)
        yield from items(values.of((policy or {}).get("resource_list")) or ())


def _with_rolling_updates(
    foreseen: Effect, stack: HeatStack, template: Raw, values: Parameters, changes: TemplateChanges
) -> Effect:
    """Return the effect on a scaling group, as "maybe replace" if members may be removed or changed."""
    if foreseen.type not in ROLLED or foreseen.verb != "update":
        return foreseen
    group = (template.get("resources") or {}).get(foreseen.place) or {}
    properties = group.get("properties") or {}
    if foreseen.type != SCALING or changes.changed(foreseen.place) & {WHOLE, "resource"}:
        return replace(foreseen, verb=MAYBE)
    standing = sum(place.rpartition(".")[0] == foreseen.place for place in stack.made)
    try:
        size = values.number(properties.get("desired_capacity"), standing)
        size = max(values.number(properties.get("min_size"), 0), size)
        size = min(values.number(properties.get("max_size"), size), size)
    except Unknown:
        return replace(foreseen, verb=MAYBE)
    return replace(foreseen, verb=MAYBE) if size < standing else foreseen


def _leaves(foreseen: Effect, stack: HeatStack) -> list[Effect]:
    """Return the resources of a nested stack that is deleted, in place of the stack."""
    containers = set(stack.places.values())
    if foreseen.verb != "delete" or f"{foreseen.place}." not in containers:
        return [foreseen]
    return [
        Effect("delete", place, each.type)
        for place, each in stack.made.items()
        if place.startswith(f"{foreseen.place}.") and f"{place}." not in containers
    ]


# --- Changes that Heat makes in place to the disks of a stack, made visible to a preview; pure functions ---
# A preview reports "updated" for a server whose image differs, but the update rebuilds the server, which wipes its
# disk. So a second preview is requested with a package in which every such change asks for a replacement instead:
# whatever it reports as replaced would be wiped. Heat compares the properties, whatever conditions, parameters and
# nested templates they come from.
#
# Source: Heat 27.0.1. heat/engine/resources/openstack/nova/server.py, Server.needs_replace_with_prop_diff and
# handle_update: a different image rebuilds unless image_update_policy is REPLACE, and even REBUILD_PRESERVE_EPHEMERAL
# keeps only the ephemeral disk; different user data rebuild if user_data_update_policy is REBUILD. A different flavor
# (RESIZE) keeps the disks: Nova refuses smaller ones. Block devices cannot be changed in place.
# heat/engine/resources/openstack/cinder/volume.py, CinderVolume.handle_update: a different backup_id restores the
# backup over the volume; a smaller size is refused.

SERVER, VOLUME = "OS::Nova::Server", "OS::Cinder::Volume"
IN_PLACE = {VOLUME: "restore"}
"""The action on a disk, if it is not "rebuild"."""


def revealing(body: Raw) -> Values:
    """Return a copy of this package in which a change that wipes a disk is a replacement."""
    environment = body.get("environment") or {}
    registry = environment.get("resource_registry") or {}
    kinds = {each: {each, *(name for name, of in registry.items() if of == each)} for each in (SERVER, VOLUME)}
    files = {name: _in_file(text, kinds) for name, text in (body.get("files") or {}).items()}
    template, environment = _revealing(body["template"], kinds), _revealing(environment, kinds)
    return {**body, "template": template, "files": files, "environment": environment}


def _in_file(text: object, kinds: Mapping[str, Collection[str]]) -> object:
    """Return a file's text; only files that declare servers or volumes are changed."""
    if not isinstance(text, str) or not any(name in text for names in kinds.values() for name in names):
        return text
    try:
        content = parse_yaml(text)
    except yaml.YAMLError:
        return text
    changed = _revealing(content, kinds)
    return text if changed == content else json.dumps(changed, default=str)


def _revealing(value: Any, kinds: Mapping[str, Collection[str]]) -> Any:
    def change(part: Any) -> object:
        found = part if isinstance(part, dict) else {}
        for kind, properties in (("type", "properties"), ("Type", "Properties")):  # as in AWS-compatible templates
            if isinstance(found.get(properties), Mapping) and isinstance(found.get(kind), str):
                if found[kind] in kinds[SERVER]:
                    found[properties] = _server(found[properties])
                elif found[kind] in kinds[VOLUME]:
                    found[properties] = _volume(found[properties])
        return part

    return rewrite(value, change)


def _server(properties: Raw) -> Values:
    found = {**properties, "image_update_policy": "REPLACE"}
    policy = found.get("user_data_update_policy")
    if isinstance(policy, Mapping):  # a function: Heat resolves it
        found["user_data_update_policy"] = {"str_replace": {"template": policy, "params": {"REBUILD": "REPLACE"}}}
    elif policy == "REBUILD":
        found["user_data_update_policy"] = "REPLACE"
    return found


def _volume(properties: Raw) -> Values:
    """Return properties that nothing can be changed to in place, if the volume has a backup.

    The API does not report from which backup it was restored before.
    """
    if properties.get("backup_id") is None:
        return dict(properties)
    return {**properties, "scheduler_hints": {"openstack-prep": "restored"}}


VERBS = {"replaced": "replace", "deleted": "delete", "added": "add", "updated": "update"}
STATELESS = (
    *("OS::Heat::CloudConfig", "OS::Heat::MultipartMime", "OS::Heat::SoftwareConfig", "OS::Heat::Value"),
    *("OS::Heat::WaitCondition", "OS::Heat::WaitConditionHandle"),
)
"""Types whose replacement loses nothing."""


ANY: Mapping[str, object] = {"number": 0, "boolean": False, "json": {}, "comma_delimited_list": []}
"""Values for parameters whose values nobody knows yet, by type; others are texts."""


class Refused(Exception):
    """Heat refuses the inputs; the text is Heat's."""


def preview(heat: Service, name: str, body: Raw, secrets: Sequence[Secret]) -> list[Values]:
    """Return the resources that a new stack would have, including nested ones; raises Refused."""
    try:
        answer = heat.post("/stacks/preview", {"stack_name": name, **body}, secrets=secrets)
    except CloudError as error:
        if error.status not in (400, 403):
            raise
        raise Refused(str(error)) from None
    return list(_flat(answer["stack"]["resources"]))


def unknown_types(heat: Service, package: Package) -> list[str]:
    """Return the types that Heat does not have, each with the file of the nested template that names it.

    The list of types lacks those that Heat keeps for old stacks (27.0.0, engine/environment.py, get_types).
    """
    listed = {str(resource_type) for resource_type in heat.get("/resource_types")["resource_types"]}
    registry = package.environment.get("resource_registry") or {}
    own = {*package.files, *registry}
    unlisted = [each for each in package.types() if each[1] not in listed | own]
    unlisted = [each for each in unlisted if not any(fnmatch(each[1], name) for name in registry)]
    missing = {kind for kind in {kind for _, kind in unlisted} if not _has_type(heat, kind)}
    return sorted(kind + (f" of {file}" if file else "") for file, kind in unlisted if kind in missing)


def _has_type(heat: Service, kind: str) -> bool:
    try:
        heat.get(f"/resource_types/{quote(kind, safe='')}")
    except NotFound:
        return False
    except NotAllowed:  # it exists
        return True
    except CloudError as error:
        if error.status != 400:  # "is not supported": a retired one (27.0.1, engine/service.py, resource_schema)
            raise
    return True


def validate(heat: Service, package: Package, given: Raw) -> None:
    """Let Heat judge a template without looking at what exists; raises Refused.

    It needs a value for each parameter, and takes any. Source: Orchestration API v1, "Validate template"; Heat 27.0.0,
    engine/service.py, validate_template.
    """
    values = {
        name: given.get(name, ANY.get(str(schema["type"]), ""))
        for name, schema in package.parameters.items()
        if "default" not in schema or name in given
    }
    environment = {**package.environment, "parameters": values}
    body = {"template": package.template, "files": dict(package.files), "environment": environment}
    try:
        heat.post("/validate", body, log=False)
    except CloudError as error:
        if error.status != 400:
            raise
        raise Refused(str(error)) from None


def _flat(resources: Iterable[Any]) -> Iterator[Values]:
    """Yield the resources of a preview: those of a nested stack are a list within the list."""
    for resource in resources:
        if isinstance(resource, list):
            yield from _flat(resource)
        else:
            yield resource


@dataclass(frozen=True)
class Update:
    """An update to ask Heat about; ``names`` are the parameters whose former values ``before`` contains."""

    stack: HeatStack
    body: Raw
    secrets: Sequence[Secret]
    before: Raw
    names: Sequence[str]

    @property
    def parameters(self) -> Parameters:
        given = (self.body.get("environment") or {}).get("parameters") or {}
        return Parameters(given, self.body["template"].get("parameters") or {})


def preview_update(
    stack: HeatStack,
    body: Raw,
    secrets: Sequence[Secret],
    before: Raw,
    names: Sequence[str],
    missing: Collection[str] = (),
    *,
    is_settled: bool = True,
) -> list[Effect]:
    """Return what an update would do; raises Refused. ``is_settled``: all resources are as Heat's inputs say.

    A preview treats every reference to a resource as a change, even if the resource is kept, and so would replace the
    resources that contain one. Hence references are replaced by the ids that they stand for, unless their resource is
    ``missing`` or would be replaced, too; and ``_judged`` takes out what attributes alone make a preview report.
    """
    changes = _changes(stack, body, secrets, missing, is_settled=is_settled)
    pinned = {name: each for name, each in stack.ids.items() if name not in missing}
    while True:
        template = {**body["template"], "resources": _pinned(body["template"].get("resources"), pinned)}
        update = Update(stack, {**body, "template": template}, secrets, before, names)
        found = _judged(_ask_heat(update), stack, changes)
        moved = pinned.keys() & {effect.place for effect in found if effect.verb in ("replace", "delete")}
        if not moved:
            found = _with_wiped(found, update, changes)
            return with_group_effects(found, stack, template, update.parameters, changes)
        pinned = {name: each for name, each in pinned.items() if name not in moved}


def _changes(
    stack: HeatStack, body: Raw, secrets: Sequence[Secret], missing: Collection[str], *, is_settled: bool
) -> TemplateChanges:
    """Return what the update changes by the templates; everything, if resources differ from the one that Heat has."""
    template, files, environment = stack.inputs()
    given = _values(body.get("environment") or {})
    hidden = (hidden_in(template) | hidden_in(body["template"])) & (given.keys() | stack.hidden)
    old = _version(template, files, environment, hidden) if is_settled else TemplateVersion({})
    new = _version(body["template"], body.get("files") or {}, body.get("environment") or {}, hidden)
    asked = {name: given[name] for name in hidden & given.keys()} if is_settled else {}
    unknown = hidden - _same(stack, body["template"], asked, secrets)
    failed = (place for place, each in stack.by_place.items() if each.status.endswith("_FAILED"))
    schema_of = cache(partial(_property_schemas, stack.cloud.orchestration))

    def is_updatable(kind: str, name: str) -> bool:
        return bool((schema_of(kind).get(name) or {}).get("update_allowed"))

    return TemplateChanges(old, new, changed_parameters(old, new, unknown), {*failed, *missing}, is_updatable)


def _same(stack: HeatStack, template: Raw, given: Raw, secrets: Sequence[Secret]) -> frozenset[str]:
    """Return those of the given parameters whose values Heat has already, though it shows only stars.

    Heat compares them: a resource of this preview has a condition that a value equals the given one. Without a value
    of its own, a parameter keeps the present one (27.0.0, engine/service.py, _prepare_stack_updates).
    """
    declared = template.get("parameters") or {}
    names = sorted(given.keys() & declared.keys() & stack.hidden)
    if not names:
        return frozenset()
    asked = {f"same-{number}": name for number, name in enumerate(names)}
    values = {name: plain(declared[name], given[name]) for name in names}
    conditions = {at: {"equals": [{"get_param": name}, values[name]]} for at, name in asked.items()}
    probe = {
        "heat_template_version": "2016-10-14",
        "parameters": {name: {"type": declared[name]["type"], "hidden": True} for name in names},
        "conditions": conditions,
        "resources": {at: {"type": "OS::Heat::Value", "condition": at, "properties": {"value": ""}} for at in asked},
    }
    try:
        path = f"{stack.path}/preview"
        answer = stack.cloud.orchestration.ask("PATCH", path, json={"template": probe}, secrets=secrets, log=False)
    except CloudError:  # then nobody knows
        return frozenset()
    return frozenset(asked[each["resource_name"]] for each in answer["resource_changes"]["added"])


def _version(template: Raw, files: Raw, environment: Raw, hidden: Collection[str]) -> TemplateVersion:
    defaults, registry = environment.get("parameter_defaults") or {}, environment.get("resource_registry") or {}
    values = _values(environment) | dict.fromkeys(hidden)
    return TemplateVersion(template, files, registry, defaults, values)


def _values(environment: Raw) -> Values:
    """Return the parameters of an environment, with the defaults that it sets."""
    return {**(environment.get("parameter_defaults") or {}), **(environment.get("parameters") or {})}


def _property_schemas(heat: Service, kind: str) -> Raw:
    """Return the schemas of a type's properties, which say what Heat changes in place; none if Heat hides the type."""
    try:
        return dict(heat.get(f"/resource_types/{quote(kind, safe='')}")["properties"])
    except CloudError:
        return {}


def _judged(found: list[Effect], stack: HeatStack, changes: TemplateChanges, *, wiping: bool = False) -> list[Effect]:
    """Return the effects without those that a preview reports only because it cannot resolve attributes."""
    judged = []
    for effect in found:
        at = (
            changes.at(effect.place)
            if effect.verb in ("replace", "update", MAYBE) and effect.place in stack.made
            else None
        )
        if at is None:
            judged.append(replace(effect, changed=frozenset({WHOLE})))
            continue
        level, definition, changed = at
        if not changed and effect.place not in changes.unsettled:
            continue
        blind = effect.verb == "replace" and any(references(definition))
        in_place = blind and not level.replaces(definition, changed, wiping=wiping)
        effect = replace(effect, verb="update") if in_place else effect
        judged.append(replace(effect, changed=changed or frozenset({WHOLE})))
    return judged


def _with_wiped(found: list[Effect], update: Update, changes: TemplateChanges) -> list[Effect]:
    """Return the preview with updates that wipe a disk in place called "rebuild" or "restore"."""
    revealed = revealing(update.body)
    if revealed == update.body or not any(effect.verb == "update" for effect in found):
        return found
    asked = _judged(_ask_heat(replace(update, body=revealed)), update.stack, changes, wiping=True)
    wiped = {effect.place for effect in asked if effect.verb == "replace"}
    return [
        replace(effect, verb=IN_PLACE.get(effect.type, "rebuild"))
        if effect.verb == "update" and effect.place in wiped
        else effect
        for effect in found
    ]


def _pinned(value: object, ids: Mapping[str, str]) -> object:
    """Return a part of a template with ids in the place of references."""

    def change(part: Any) -> object:
        is_reference = isinstance(part, Mapping) and part.keys() == {"get_resource"}
        return ids.get(str(part["get_resource"]), part) if is_reference else part

    return rewrite(value, change)


def _ask_heat(update: Update) -> list[Effect]:
    """Ask Heat for all effects of the update.

    Heat does not report what happens in nested stacks if a group of them grows (it answers 400). Then it is asked with
    the present sizes of growing groups; and if a group within a group grows, about the template alone, and about each
    parameter of ``names`` whose value differs from ``before``, alone.
    """
    stack, body, before, names = update.stack, update.body, update.before, update.names
    try:
        return _preview(update, nested=True)
    except Refused:
        found = set(_preview(update, nested=False))
    body = {**body, "template": not_growing(stack, body["template"], update.parameters)}
    after = body["environment"]["parameters"]
    unchanged = {**before, **{name: value for name, value in after.items() if name not in names}}
    alone = [unchanged | {name: after[name]} for name in names if before.get(name) != after[name]]
    try:
        return sorted(found.union(_preview(replace(update, body=body), nested=True)))
    except Refused:
        refused = []
    for parameters in (unchanged, *alone):
        asked = {**body, "environment": body["environment"] | {"parameters": parameters}}
        try:
            found.update(_preview(replace(update, body=asked), nested=True))
        except Refused:
            refused.append(parameters)
    if unchanged in refused or len(refused) > 1:  # other changes are hidden as well as the growth of the group
        found = {
            replace(effect, verb=MAYBE) if f"{effect.place}." in stack.places.values() else effect for effect in found
        }
    return sorted(found)


def _preview(update: Update, *, nested: bool) -> list[Effect]:
    stack = update.stack
    path = f"{stack.path}/preview" + ("?show_nested=true" if nested else "")
    heat = stack.cloud.orchestration
    try:
        answer = heat.ask("PUT", path, json=update.body, secrets=update.secrets)
    except CloudError as error:
        if error.status != 400:
            raise
        raise Refused(str(error)) from None
    found: dict[str, Effect] = {}
    for past, verb in VERBS.items():
        for each in answer["resource_changes"][past]:
            place = _place(stack, each["stack_name"]) + each["resource_name"]
            container = nested and verb == "update" and f"{place}." in stack.places.values()
            if not container or each["resource_type"] in ROLLED:
                found.setdefault(place, Effect(verb, place, each["resource_type"]))
    rolled = tuple(f"{effect.place}." for effect in found.values() if effect.verb == "update" and effect.type in ROLLED)
    return sorted(effect for effect in found.values() if not effect.place.startswith(rolled))


def _place(stack: HeatStack, name: str) -> str:
    """Return the position of a stack in the tree; a preview gives new stacks random suffixes, which are removed."""
    plain = {f"{stack.name}-{place}".replace(".", "-").rstrip("-"): place for place in stack.places.values()}
    return stack.places.get(name, plain.get(name, name.removeprefix(f"{stack.name}-") + "."))
