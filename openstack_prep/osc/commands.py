"""The commands ``openstack prep ...``: options and work are those of ``openstack_prep.cli``.

Source: cliff 4.17.0, display.py, and osc-lib 4.7.0, shell.py.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from cliff.columns import FormattableColumn
from cliff.display import DisplayCommandBase
from osc_lib.command import command

from openstack_prep import extensions, tracing
from openstack_prep.base.errors import NotAllowed
from openstack_prep.base.raw import Raw
from openstack_prep.base.style import printable, visible
from openstack_prep.cli import Run
from openstack_prep.cli.main import add_global, forbid_core_dumps
from openstack_prep.cli.output import explained, fail
from openstack_prep.cli.parser import DEFAULTS, exit_code, respell
from openstack_prep.cli.work import give_default_spec, log_warnings, work_of
from openstack_prep.cloud.translation import translate
from openstack_prep.core import interrupts
from openstack_prep.core.text import show
from openstack_prep.reports.last_run import recorded

if TYPE_CHECKING:
    from openstack.connection import Connection
    from osc_lib.shell import OpenStackShell


# Results of commands as columns and rows, for cliff's formatters.

Table = tuple[Sequence[str], list[tuple[Any, ...]]]
FINDING = ("Status", "Code", "Where", "What", "Why", "Fix")


class Changes(FormattableColumn[list[Any]]):
    """Changes of fields: a list for programs, and "cores 7 -> 40" for people."""

    def human_readable(self) -> str:
        return printable(", ".join(map(self._text, self._value)))

    @staticmethod
    def _text(change: Raw) -> str:
        before = "" if change["before"] is None else f"{show(change['before'])} -> "
        return f"{change['field']} {before}{show(change['after'])}"


class OutputsColumn(FormattableColumn[dict[str, Any]]):
    """Outputs of a resource by name."""

    def human_readable(self) -> str:
        return printable(", ".join(f"{name} {show(value)}" for name, value in self._value.items()))


def plan(data: Raw, *, everything: bool) -> Table:
    """Return the steps of a plan, and what is managed and no longer declared."""
    shown = [step for step in data["steps"] if everything or data["purpose"] == "destroy" or step["action"] != "keep"]
    rows = [_step(each, each["action"], _note(each)) for each in shown]
    rows += [_step(each, "undeclared", each["reason"]) for each in data["undeclared"]]
    return ("Action", "Resource", "ID", "Changes", "Note"), rows


def _step(step: Raw, action: str, note: str) -> tuple[Any, ...]:
    return action, *_texts(step["resource"], step["id"] or ""), Changes(list(step["changes"])), *_texts(note)


def _note(step: Raw) -> str:
    notes = {
        "address": step.get("address"),
        "follows": ", ".join(step.get("follows", ())),
        "duplicate of": step.get("duplicate_of"),
    }
    return "; ".join(f"{name} {value}" for name, value in notes.items() if value)


def report(data: Raw, *, everything: bool) -> Table:
    """Return the outcome of each step."""
    shown = [step for step in data["steps"] if everything or step["action"] != "keep" or step["status"] != "done"]
    rows = [
        (
            each["action"],
            *_texts(each["resource"], each.get("id") or ""),
            each["status"],
            each["seconds"],
            *_texts(each["error"] or (f"skipped because of {each['because_of']}" if each["because_of"] else "")),
        )
        for each in shown
    ]
    return ("Action", "Resource", "ID", "Status", "Seconds", "Error"), rows


def resources(data: Raw) -> Table:
    """Return which resources of a spec exist."""
    rows = []
    for name, found in data.items():
        seen = found or {"id": "", "ours": False, "outputs": {}}
        rows.append(
            (*_texts(name), found is not None, *_texts(seen["id"]), seen["ours"], OutputsColumn(seen["outputs"]))
        )
    return ("Resource", "Exists", "ID", "Managed", "Outputs"), rows


def findings(data: Raw) -> Table:
    """Return the findings of a check."""
    return FINDING, [_finding(finding) for finding in data["findings"]]


def chains(data: Raw) -> Table:
    """Return the links of each path that was verified."""
    rows = [(*_texts(chain["name"]), *_finding(each)) for chain in data["chains"] for each in chain["links"]]
    return ("Path", *FINDING), rows


def _finding(found: Raw) -> tuple[str, ...]:
    return tuple(_texts(*(found[name.lower()] for name in FINDING)))


def sections(data: Mapping[str, Any]) -> tuple[Sequence[str], Sequence[Any]]:
    """Return the sections of an exported spec, which as YAML or JSON are a spec again."""
    return tuple(data["spec"]), tuple(data["spec"].values())


def _texts(*values: str) -> Iterable[str]:
    """Return texts, some from the cloud, without characters that a terminal would obey."""
    return map(printable, values)


FORMAT = "cliff"
"""Of the result, in the place of --format: what ``deliver`` takes; progress goes to standard error."""
TLS = ("--insecure", "--verify")


class _NothingToPrint(Exception):
    """A command has ended without a result."""


class Prep(DisplayCommandBase[Any]):
    """One of our commands: its options, its work and its exit code."""

    app: OpenStackShell
    module: ClassVar[str]
    """The module whose ``add`` adds it, or the function that does."""
    name: ClassVar[str]
    auth_required = False  # the spec may name the cloud: see ``_connection``

    code = 1
    error: Exception | KeyboardInterrupt | None = None
    of_client: Exception | None = None
    """An error of the client's own, which the client reports."""

    def get_description(self) -> str:
        return extensions.commands()[self.name].text

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)

        def add(name: str, run: Run, *_: object, **__: object) -> Any:
            if name != self.name:
                return argparse.ArgumentParser(add_help=False)
            parser.set_defaults(perform=run)
            return parser

        extensions.load(self.module if ":" in self.module else f"{self.module}:add")(add)
        add_global(parser, ("jobs",), title="requests")
        parse = parser.parse_known_args

        def parse_respelled(args: Sequence[str] | None = None, namespace: Any = None) -> Any:
            return parse(respell(parser, args or ()), namespace)

        setattr(parser, "parse_known_args", parse_respelled)  # noqa: B010 - the class is cliff's, and its own
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Return the exit code of our command; its errors are printed as our command prints them."""
        forbid_core_dumps()
        log_warnings(debug=bool(self.app.options.debug))
        with interrupts.raised():
            try:
                with recorded(self.name, lambda error: exit_code(parsed_args, explained(error))) as ended:
                    code = tracing.of_command(self.name, lambda: self._perform(parsed_args))
                    ended(code)
                return code
            except (Exception, KeyboardInterrupt) as error:
                if error is not self.error or self.of_client is not None:
                    raise
                return fail(parsed_args, error)

    def _perform(self, parsed_args: argparse.Namespace) -> int:
        """Do the work, and have the client print the result."""
        with contextlib.suppress(_NothingToPrint):
            super().run(parsed_args)
        if error := self.of_client or self.error:
            raise error
        return self.code

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Any]]:
        found: list[Mapping[str, Any]] = []

        def deliver(for_people: str, data: Mapping[str, Any]) -> None:
            found.append(data)
            if text := self.below(parsed_args, for_people):
                print(visible(text), file=sys.stderr)

        chosen = self._chosen()
        given = {
            **DEFAULTS,
            "jobs": getattr(parsed_args, "jobs", DEFAULTS["jobs"]),
            "debug": bool(self.app.options.debug),
            "format": FORMAT,
            "called": self.name,
            "os_cloud": (self.app.options.cloud or None) if any("--os-cl" in each for each in chosen) else None,
        }
        vars(parsed_args).update(given, deliver=deliver, connection=self._connection)
        try:
            give_default_spec(parsed_args)
            self.code = work_of(parsed_args.perform)(parsed_args)
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - raised again below the result
            self.error = error
        if not found:
            raise _NothingToPrint
        return self.table(parsed_args, found[0])

    def table(self, options: argparse.Namespace, data: Mapping[str, Any]) -> tuple[Sequence[str], Iterable[Any]]:
        """Return the columns and rows of a result."""
        raise NotImplementedError

    def below(self, options: argparse.Namespace, for_people: str) -> str:
        """Return what a person reads below the table, from our command's text."""
        return for_people.rpartition("\n")[2]

    def _chosen(self) -> list[str]:
        """Return the options of the command line that choose a cloud, or a login to it."""
        return [
            command_option
            for command_option in self.app.command_options
            if command_option.startswith("--os-") or command_option in TLS
        ]

    def _connection(self, entry: str | None) -> Connection | None:
        """Return the client's connection; None for an entry that a file names, unless the command line chooses a cloud.

        The client logs in as for its own commands.  Raises CloudError, and errors of the client.
        """
        if entry is not None and not self._chosen():
            return None
        self.auth_required = True
        try:
            self.app.prepare_to_run_command(self)
        except Exception as error:  # noqa: BLE001 - translate returns what is not a cloud's error as it is
            found = translate(error, "log in as the command `openstack` does", refused=NotAllowed)
            self.of_client = error if found is error else None
            raise found from (error if found is error else None)  # its text may repeat the password
        connection: Connection = self.app.client_manager.sdk_connection
        return connection


class PrepLister(Prep, command.Lister):
    """A command whose result is a table."""


class PlanCommand(PrepLister):
    module, name = "openstack_prep.cli.project.options:add_verbs", "plan"

    def table(self, options: argparse.Namespace, data: Mapping[str, Any]) -> Table:
        return plan(data, everything=options.all)


class Apply(PrepLister):
    module, name = "openstack_prep.cli.project.options:add_verbs", "apply"

    def table(self, options: argparse.Namespace, data: Mapping[str, Any]) -> Table:
        return report(data, everything=options.all)

    def below(self, options: argparse.Namespace, for_people: str) -> str:
        return for_people


class Destroy(Apply):
    name = "destroy"


class Show(PrepLister):
    module, name = "openstack_prep.cli.project.options:add_verbs", "show"

    def table(self, options: argparse.Namespace, data: Mapping[str, Any]) -> Table:
        return resources(data)

    def below(self, options: argparse.Namespace, for_people: str) -> str:
        return ""


class Check(PrepLister):
    module, name = "openstack_prep.openshift.commands.options:add_check", "check"

    def table(self, options: argparse.Namespace, data: Mapping[str, Any]) -> Table:
        return findings(data)


class Verify(PrepLister):
    module, name = "openstack_prep.openshift.commands.options:add_verify", "verify"

    def table(self, options: argparse.Namespace, data: Mapping[str, Any]) -> Table:
        return chains(data)


class ExportCommand(Prep, command.ShowOne):
    module, name = "openstack_prep.cli.project.options:add_export", "export"

    @property
    def formatter_default(self) -> str:
        return "yaml"

    def table(self, options: argparse.Namespace, data: Mapping[str, Any]) -> tuple[Sequence[str], Sequence[Any]]:
        return sections(data)

    def below(self, options: argparse.Namespace, for_people: str) -> str:
        return "\n".join(line for line in for_people.splitlines() if line.startswith("#"))


Plan, Export = PlanCommand, ExportCommand  # as the entry points of this distribution call them
