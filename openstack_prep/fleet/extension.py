"""Fleets as an extension: many projects in many clouds."""

from __future__ import annotations

from openstack_prep.extensions import Extension

_OPTIONS = "openstack_prep.fleet.commands.options"

EXTENSION = Extension(
    name="fleet",
    groups={
        "fleet": "many projects in many clouds: specs with variables times targets",
    },
    commands={
        f"{_OPTIONS}:add_validate": {
            "fleet validate": "check a fleet and all of its specs without a cloud; exit code 2 if it is wrong",
        },
        f"{_OPTIONS}:add_verbs": {
            "fleet plan": "show what fleet apply would do to each target, or destroy",
            "fleet apply": "apply the spec of each target, in waves; an interrupted run is continued",
            "fleet destroy": "delete only resources managed by the specs of the targets",
        },
        f"{_OPTIONS}:add_reading": {
            "fleet audit": "report drift of each target that no spec declares; exit code 1 if there is any",
            "fleet export": "write the project of each target as a spec",
        },
    },
    documents="openstack_prep.fleet.commands.documents",
    schemas={"fleet": "openstack_prep.fleet.file.schema:schema"},
    file_keys={"targets": "openstack-prep fleet validate"},
    examples={"fleet": "openstack_prep.fleet.file:example.yaml"},
)
