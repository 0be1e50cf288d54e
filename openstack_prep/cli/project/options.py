"""The options of the commands in this folder; the work of each is in a module that only its call loads."""

from __future__ import annotations

from pathlib import Path

from openstack_prep.cli import AddCommand
from openstack_prep.cli.of_spec import (
    add_allow_loss,
    add_html,
    add_lock_timeout,
    add_reports,
    add_spec,
    add_variables,
    spec_path,
)
from openstack_prep.cli.parser import new_path

_HERE = "openstack_prep.cli.project"
FORMS = ("mermaid", "dot", "svg")


def add_verbs(command: AddCommand) -> None:
    """Add the four to the parser."""
    plan = command("plan", f"{_HERE}.verbs:plan_spec")
    plan.add_argument("--destroy", action="store_true", help="show what destroy would do instead")
    plan.add_argument("-o", "--out", type=new_path, metavar="FILE", help="save the plan for apply --plan")
    plan.add_argument("--detailed-exitcode", action="store_true", help="0 nothing to do, 1 error, 2 changes pending")
    apply = command("apply", f"{_HERE}.verbs:apply_spec")
    apply.add_argument("--plan", type=Path, metavar="FILE", help="apply a saved plan; refused when it is stale")
    help_text = "with --plan: only if a person has approved the plan; uses up the approval"
    apply.add_argument("--approved", action="store_true", help=help_text)
    destroy = command("destroy", f"{_HERE}.verbs:destroy_spec")
    show = command("show", f"{_HERE}.verbs:show_spec")
    show.add_argument(
        "--reveal",
        metavar="OUTPUT",
        help="print only this output, such as floating_ip/api.address: its value, also if it is a secret",
    )
    for parser in (plan, apply):
        parser.add_argument("--allow-replace", action="store_true", help="allow resources to be deleted and re-created")
    for parser in (plan, apply):
        parser.add_argument(
            "--adopt", action="store_true", help="also change resources that exist and are not managed by this spec"
        )
        parser.add_argument("--prune", action="store_true", help="also delete managed resources no longer in the spec")
    for parser in (plan, apply, destroy):
        ends = "what cannot exist without it"
        what = f"only this resource and {ends if parser is destroy else 'what it needs'}"
        what = f"{what} (with --destroy: {ends})" if parser is plan else what
        help_text = f"{what}; repeatable; never prunes"
        parser.add_argument("--target", action="append", default=[], metavar="KIND/NAME", help=help_text)
        add_allow_loss(parser)
        parser.add_argument("--all", action="store_true", help="also show the resources that stay unchanged")
    for parser in (plan, apply):
        add_html(parser)
    for parser in (apply, destroy):
        parser.add_argument("--yes", "-y", action="store_true", help="do not ask for confirmation")
        add_lock_timeout(parser)
    of_plan = "with --plan the one that the plan was made from, which is found by its path relative to the plan"
    add_spec(apply, f"the spec, a YAML file; {of_plan}", default=True, unless=("plan",))
    add_spec(destroy)  # what is deleted is always named
    for parser in (plan, show):
        add_spec(parser, default=True)


def add_approve(command: AddCommand) -> None:
    parser = command("approve", f"{_HERE}.approve:run")
    parser.add_argument("plan", type=Path, metavar="PLAN", help="a plan that plan --out has saved")
    add_spec(parser, "the spec (default: found by its path relative to the plan)", optional=True)
    help_text = "also run programs that the spec and its folder name, which may be by whoever proposes the plan"
    parser.add_argument("--allow-programs", action="store_true", help=help_text)


def add_validate(command: AddCommand) -> None:
    parser = command("validate", f"{_HERE}.validate:run", cloud=False, data=True)
    text = "the specs, YAML files (default: prep.yaml, or the only spec of the folder)"
    parser.add_argument("specs", type=spec_path, nargs="*", metavar="SPEC", help=text)
    add_variables(parser)
    add_reports(parser, "specs")


def add_audit(command: AddCommand) -> None:
    parser = command("audit", f"{_HERE}.audit:run")
    add_html(parser)
    add_spec(parser, default=True)
    add_reports(parser, "spec")


def add_graph(command: AddCommand) -> None:
    parser = command("graph", f"{_HERE}.graph:run", forms=FORMS)
    parser.add_argument("--plan", action="store_true", help="read the cloud, and colour what apply would do")
    help_text = "only this resource and what it needs; repeatable"
    parser.add_argument("--target", action="append", default=[], metavar="KIND/NAME", help=help_text)
    help_text = "only resources of this kind, such as stack, and what they need of each other; repeatable"
    parser.add_argument("--kind", action="append", default=[], metavar="KIND", help=help_text)
    add_spec(parser, default=True)


def add_support_bundle(command: AddCommand) -> None:
    parser = command("support-bundle", f"{_HERE}.support_bundle:run")
    parser.add_argument(
        "--output",
        type=new_path,
        metavar="FILE",
        help="file to write (openstack-prep-support-TIME.yaml, with mode 0600)",
    )
    parser.add_argument("--offline", action="store_true", help="do not log in to the cloud, so without a plan")
    add_spec(parser, "a spec to describe and to plan", optional=True)


def add_export(command: AddCommand) -> None:
    parser = command("export", f"{_HERE}.export:run")
    parser.add_argument("--project", metavar="NAME", help="the project (default: that of the connection)")
    parser.add_argument("--project-domain", metavar="NAME", default="Default", help="its domain (Default)")
    parser.add_argument("--kind", action="append", default=[], metavar="KIND", help="only this kind, such as network")
    parser.add_argument("--name", default="*", metavar="PATTERN", help="only matching names, such as 'web-*'")
    parser.add_argument("--tag", metavar="SPEC", help="only resources that the spec of this name manages")
    taking = (
        "write a spec that takes over what no spec manages: its apply adds ownership tags, and its destroy deletes it"
    )
    parser.add_argument("--adopt", choices=["permanently"], help=taking)


def add_unlock(command: AddCommand) -> None:
    parser = command("unlock", f"{_HERE}.unlock:run")
    add_spec(parser, default=True, unless=("name", "yes"))
    parser.add_argument("--name", metavar="NAME", help="instead of a spec: an infraID in the connection's own project")
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask for confirmation")


def add_credential(command: AddCommand) -> None:
    rotate = command("credential rotate", f"{_HERE}.credential:run")
    add_spec(rotate)
    rotate.add_argument("--name", metavar="NAME", help="only the application credential of this name")
    rotate.add_argument("--keep-old", action="store_true", help="keep the old ones, as entries CLOUD-old")
    rotate.add_argument("--allow-replace", action="store_true", help="also replace one whose secret is lost")
    rotate.add_argument("--yes", "-y", action="store_true", help="do not ask for confirmation")
    add_lock_timeout(rotate)
