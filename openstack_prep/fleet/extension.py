"""Fleets as an extension: many projects in many clouds."""

from __future__ import annotations

from openstack_prep.extensions import Command, Extension, FileForm

_OPTIONS = "openstack_prep.fleet.commands.options"

EXTENSION = Extension(
    name="fleet",
    heading="Many projects",
    groups={
        "fleet": "many projects in many clouds: specs with variables times targets",
    },
    commands={
        f"{_OPTIONS}:add_validate": {
            "fleet validate": Command(
                "check a fleet and all of its specs without a cloud; exit code 2 if it is wrong",
                {
                    "fleet validate fleet.yaml": "check the fleet, and the spec of each target",
                    "example fleet > fleet.yaml": "begin a fleet",
                },
            ),
        },
        f"{_OPTIONS}:add_verbs": {
            "fleet plan": Command(
                "show what apply or destroy would change in each target",
                {
                    "fleet plan fleet.yaml": "show what would change, target by target",
                    "fleet plan fleet.yaml --only test --show shop": "plan one group, and show the plan of one target",
                },
            ),
            "fleet apply": Command(
                "apply the spec of each target, in waves; an interrupted run is continued",
                {
                    "fleet apply fleet.yaml": "show the plans, ask, and carry them out in waves",
                    "fleet apply --plan fleet.plan fleet.yaml": "carry out saved plans",
                },
            ),
            "fleet destroy": Command(
                "delete only resources managed by the specs of the targets",
                {
                    "fleet destroy fleet.yaml --only test": "destroy the targets of one group",
                    "fleet plan --destroy fleet.yaml": "show what destroy would delete",
                },
            ),
        },
        f"{_OPTIONS}:add_reading": {
            "fleet audit": Command(
                "report drift of each target that no spec declares; exit code 1 if there is any",
                {
                    "fleet audit fleet.yaml": "count what no spec declares, target by target",
                    "fleet audit fleet.yaml --all": "list each finding",
                },
            ),
            "fleet export": Command(
                "write the project of each target as a spec",
                {
                    "fleet export fleet.yaml --output specs": "write a spec per target",
                    "fleet export fleet.yaml --output specs --kind network": "write only the networks",
                },
            ),
        },
    },
    documents="openstack_prep.fleet.commands.documents",
    schemas={"fleet": "openstack_prep.fleet.file.schema:schema"},
    forms=(FileForm("a fleet", "fleet validate {}", keys=("targets",)),),
    examples={"fleet": "openstack_prep.fleet.file:example.yaml"},
)
