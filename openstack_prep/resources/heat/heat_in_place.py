"""Changes that Heat makes in place to the disks of a stack, made visible to a preview; pure functions.

A preview reports "updated" for a server whose image differs, but the update rebuilds the server, which wipes its disk.
So a second preview is requested with a package in which every such change asks for a replacement instead: whatever it
reports as replaced would be wiped. Heat compares the properties, whatever conditions, parameters and nested templates
they come from.

Source: Heat 27.0.1. heat/engine/resources/openstack/nova/server.py, Server.needs_replace_with_prop_diff and
handle_update: a different image rebuilds unless image_update_policy is REPLACE, and even REBUILD_PRESERVE_EPHEMERAL
keeps only the ephemeral disk; different user data rebuild if user_data_update_policy is REBUILD. A different flavor
(RESIZE) keeps the disks: Nova refuses smaller ones. Block devices cannot be changed in place.
heat/engine/resources/openstack/cinder/volume.py, CinderVolume.handle_update: a different backup_id restores the backup
over the volume; a smaller size is refused.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

import yaml

from openstack_prep.base.formats.foreign_text import parse_yaml
from openstack_prep.base.raw import Raw, Values

SERVER, VOLUME = "OS::Nova::Server", "OS::Cinder::Volume"
VERBS = {VOLUME: "restore"}
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
    if isinstance(value, list | tuple):
        return [_revealing(each, kinds) for each in value]
    if not isinstance(value, Mapping):
        return value
    found = {name: _revealing(each, kinds) for name, each in value.items()}
    for kind, properties in (("type", "properties"), ("Type", "Properties")):  # the latter in AWS-compatible templates
        if isinstance(found.get(properties), Mapping) and isinstance(found.get(kind), str):
            if found[kind] in kinds[SERVER]:
                found[properties] = _server(found[properties])
            elif found[kind] in kinds[VOLUME]:
                found[properties] = _volume(found[properties])
    return found


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
