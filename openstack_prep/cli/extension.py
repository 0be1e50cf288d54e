"""The commands for a project of OpenStack, and those that explain the command itself."""

from __future__ import annotations

from openstack_prep.extensions import Command, Extension

FIRST_HEADING, LAST_HEADING = "Projects", "Reference"
"""In the list of commands; the headings of extensions stand between the two."""
_PROJECT = "openstack_prep.cli.project.options"
_REFERENCE = "openstack_prep.cli.reference.options"

EXTENSION = Extension(
    name="project",
    heading=FIRST_HEADING,
    groups={
        "credential": "application credentials: replace those of a spec",
    },
    commands={
        f"{_PROJECT}:add_verbs": {
            "plan": Command(
                "show what apply or destroy would change",
                {
                    "plan prep.yaml": "show what apply would change",
                    "plan prep.yaml --out my.plan": "save the plan, for a review and for apply --plan",
                    "plan --destroy prep.yaml --out my.plan": "show what destroy would delete, for apply --plan",
                },
            ),
            "apply": Command(
                "apply the spec",
                {
                    "apply prep.yaml": "show the plan, ask, and carry it out",
                    "apply --plan my.plan": "carry out a saved plan, and nothing else",
                    "apply --yes prep.yaml --target network/web": "one network and what it needs, without confirmation",
                },
            ),
            "destroy": Command(
                "delete only resources managed by this spec",
                {
                    "destroy prep.yaml": "show the plan, ask for the name of the spec, and delete",
                    "destroy prep.yaml --target network/web": "delete one network, and what is in it",
                    "destroy --yes prep.yaml --format json": "in a pipeline, with a report in JSON",
                },
            ),
            "show": Command(
                "show which resources of a spec exist, with ids and addresses",
                {
                    "show prep.yaml": "list the resources",
                    "show prep.yaml --reveal floating_ip/api.address": "print one output, also if it is a secret",
                },
            ),
        },
        f"{_PROJECT}:add_approve": {
            "approve": Command(
                "show a saved plan, and allow one apply to carry it out, such as that of an AI assistant",
                {
                    "approve my.plan": "read the plan, type its id, and approve it for an hour",
                    "apply --plan my.plan --approved": "carry it out, once",
                },
            ),
        },
        f"{_PROJECT}:add_validate": {
            "validate": Command(
                "check a spec without a cloud; exit code 2 if it is wrong",
                {
                    "validate prep.yaml": "list all mistakes, each with its line",
                    "validate one.yaml two.yaml --sarif findings.sarif": "check several specs, for a code review",
                },
            ),
        },
        f"{_PROJECT}:add_audit": {
            "audit": Command(
                "report drift that no spec declares: resources, rules, roles, address pairs (exit 1)",
                {
                    "audit prep.yaml": "list what exists in the project and is not declared",
                    "audit prep.yaml --html drift.html": "also write an HTML report",
                },
            ),
        },
        f"{_PROJECT}:add_graph": {
            "graph": Command(
                "print the dependency graph of a spec, as a picture (SVG), or for Mermaid or Graphviz",
                {
                    "graph prep.yaml --format svg > graph.svg": "draw the resources of a spec",
                    "graph prep.yaml --plan": "also show what apply would change, for Mermaid",
                    "graph prep.yaml --target stack/web": "draw one stack and what it needs",
                },
            ),
        },
        f"{_PROJECT}:add_support_bundle": {
            "support-bundle": Command(
                "write versions, a spec and its plan without secrets, and the last run's requests to one file",
                {
                    "support-bundle prep.yaml": "describe a spec, its plan and the last run",
                    "support-bundle --offline prep.yaml --output bundle.yaml": "without a login to the cloud",
                },
                heading=LAST_HEADING,
            ),
        },
        f"{_PROJECT}:add_export": {
            "export": Command(
                "print an existing project as a spec; planning it changes nothing",
                {
                    "export --project shop > shop.yaml": "write the spec of a project",
                    "export --project shop --kind network --kind router": "print only its networks and routers",
                },
            ),
        },
        f"{_PROJECT}:add_unlock": {
            "unlock": Command(
                "end the lease of a dead run, so that other runs can change the spec's resources",
                {
                    "unlock prep.yaml": "show who holds the lease, and end it after confirmation",
                    "unlock --name ocp4-x7k2p": "end the lease on a cluster, by its infraID",
                },
            ),
        },
        f"{_PROJECT}:add_credential": {
            "credential rotate": Command(
                "create new application credentials, and delete the old ones",
                {
                    "credential rotate prep.yaml": "replace all application credentials of a spec",
                    "credential rotate prep.yaml --name ci --keep-old": "replace one, and keep the old one for now",
                },
            ),
        },
        f"{_REFERENCE}:add_explain": {
            "explain": Command(
                "explain the code of a diagnostic, or list all codes",
                {
                    "explain quota.short": "what the code means, why it matters, and how to fix it",
                    "explain --format json": "all codes, for a program",
                },
                heading=LAST_HEADING,
            ),
        },
        f"{_REFERENCE}:add_schema": {
            "schema": Command(
                "print the JSON Schema of a spec, for your editor, or that of the output",
                {
                    "schema > spec.schema.json": "for completion and checks in an editor",
                    "schema --output": "describe what commands print with --format json",
                },
                heading=LAST_HEADING,
            ),
            "example": Command(
                "print a ready-made spec, or list them",
                {
                    "example": "list the examples",
                    "example minimal > prep.yaml": "begin a spec",
                },
                heading=LAST_HEADING,
            ),
        },
        f"{_REFERENCE}:add_completion": {
            "completion": Command(
                "print a completion script for your shell (needs shtab)",
                {
                    "completion bash > /etc/bash_completion.d/openstack-prep": "for all users of this machine",
                    "completion fish > ~/.config/fish/completions/openstack-prep.fish": "for yourself",
                },
                heading=LAST_HEADING,
            ),
        },
        f"{_REFERENCE}:add_help": {
            "help": Command(
                "print the help of a command",
                {
                    "help plan": "the same as plan --help",
                    "help rke check": "a command of a group",
                },
                heading=LAST_HEADING,
            ),
            "version": Command(
                "print the version of openstack-prep",
                {
                    "version": "for a bug report; support-bundle has more",
                    "--version": "the same",
                },
                heading=LAST_HEADING,
            ),
        },
    },
)
