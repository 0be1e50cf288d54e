"""The commands for a project of OpenStack, and those that explain the command itself."""

from __future__ import annotations

from openstack_prep.extensions import Extension

EXTENSION = Extension(
    name="project",
    groups={
        "credential": "application credentials: replace those of a spec",
    },
    commands={
        "openstack_prep.cli.project.options:add_verbs": {
            "plan": "show what apply would do, or destroy",
            "apply": "apply the spec",
            "destroy": "delete only resources managed by this spec",
            "show": "show which resources of a spec exist, with ids and addresses",
        },
        "openstack_prep.cli.project.options:add_validate": {
            "validate": "check a spec without a cloud; exit code 2 if it is wrong",
        },
        "openstack_prep.cli.project.options:add_audit": {
            "audit": "report drift that no spec declares: resources, rules, roles, address pairs (exit 1)",
        },
        "openstack_prep.cli.project.options:add_graph": {
            "graph": "print what needs what in a spec, as a picture (SVG), or for Mermaid or Graphviz",
        },
        "openstack_prep.cli.project.options:add_support_bundle": {
            "support-bundle": (
                "write versions, a spec and its plan without secrets, and the last run's requests to one file"
            ),
        },
        "openstack_prep.cli.project.options:add_export": {
            "export": "print an existing project as a spec; planning it changes nothing",
        },
        "openstack_prep.cli.project.options:add_unlock": {
            "unlock": "end the lease of a dead run, so that other runs can change the spec's resources",
        },
        "openstack_prep.cli.project.options:add_credential": {
            "credential rotate": "create new application credentials, and delete the old ones",
        },
        "openstack_prep.cli.reference.options:add_explain": {
            "explain": "explain the code of a diagnostic, or list all codes",
        },
        "openstack_prep.cli.reference.options:add_schema": {
            "schema": "print the JSON Schema of a spec, for your editor, or that of the output",
            "example": "print a ready-made spec, or list them",
        },
        "openstack_prep.cli.reference.options:add_completion": {
            "completion": "print a completion script for your shell (needs shtab)",
        },
    },
)
