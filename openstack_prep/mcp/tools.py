"""The tools of the server: each is a command of openstack-prep, with options that change nothing by themselves.

Source: mcp 2.3.0, mcp/server/mcpserver/server.py (MCPServer.tool) and mcp_types (CallToolResult, ToolAnnotations).
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator

import anyio
import anyio.to_thread
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, TextContent, ToolAnnotations

from openstack_prep.base.errors import ConfigError
from openstack_prep.base.raw import Values
from openstack_prep.mcp.commands import Commands, Ended, interrupt
from openstack_prep.version import __version__

INSTRUCTIONS = """\
openstack-prep prepares OpenStack projects from a spec, a YAML file. Paths are relative to the folder of this server.
Work in this order: validate, plan, show the user what the plan changes, save_plan, and ask the user to run
`openstack-prep approve FILE` at a terminal, where the user types the plan's id. Then apply carries it out, once.
Nothing else changes the cloud. Each answer has exit_code, result (the JSON of the command) and notes (its messages).
explain describes a code such as quota.short; schema describes the sections of a spec."""

EVERY = 5.0
"""Seconds between two reports of progress."""
READS = ToolAnnotations(read_only_hint=True)
WRITES_A_FILE = ToolAnnotations(read_only_hint=False, destructive_hint=False)
CHANGES = ToolAnnotations(read_only_hint=False, destructive_hint=True)
_REFERENCE = re.compile(r'"\$ref": "#/\$defs/(\w+)"')


def build_server(commands: Commands) -> MCPServer:
    """Return the server; its ``run`` serves standard input and output."""
    server = MCPServer("openstack-prep", version=__version__, instructions=INSTRUCTIONS, log_level="WARNING")
    _add_offline(server, commands)
    _add_reading(server, commands)
    _add_apply(server, commands)
    return server


def _add_offline(server: MCPServer, commands: Commands) -> None:
    """Add the tools that need no cloud."""

    @server.tool(annotations=READS)
    async def validate(spec: str) -> CallToolResult:
        """Check a spec without a cloud: all mistakes, each with its line and a fix."""
        return await _answer(commands, "validate", _path(commands, spec))

    @server.tool(annotations=READS)
    async def explain(code: str) -> CallToolResult:
        """Explain the code of an error or a finding, such as quota.short: what it means, why it matters, the fix."""
        return await _answer(commands, "explain", *_positional(code))

    @server.tool(annotations=READS)
    async def schema(section: str = "") -> CallToolResult:
        """Return the JSON Schema of one section of a spec, such as networks; without one, what the sections declare."""
        ended = await _run(commands, "schema")
        found = _section(ended.document, section) if section else _sections(ended.document)
        return _result(Ended(ended.code, found, ended.notes))


def _add_reading(server: MCPServer, commands: Commands) -> None:
    """Add the tools that read a cloud."""

    @server.tool(annotations=READS)
    async def plan(
        spec: str,
        destroy: bool = False,
        allow_replace: bool = False,
        adopt: bool = False,
        prune: bool = False,
        allow_loss: list[str] = [],  # noqa: B006 - it is not changed
        targets: list[str] = [],  # noqa: B006
        variables: dict[str, str] = {},  # noqa: B006
        vars_files: list[str] = [],  # noqa: B006
    ) -> CallToolResult:
        """Return what apply, or destroy, would change. Nothing is changed.

        allow_replace allows to delete and re-create resources, adopt to change resources that the spec does not manage,
        prune to delete managed resources that are no longer in the spec, allow_loss (KIND/ID) to take what a refusal
        names from others. targets (KIND/NAME) limit the plan.
        """
        flags = {"destroy": destroy, "allow-replace": allow_replace, "adopt": adopt, "prune": prune}
        words = _words(flags, {"allow-loss": allow_loss, "target": targets}, variables, vars_files, commands)
        return await _answer(commands, "plan", *words, _path(commands, spec))

    @server.tool(annotations=READS)
    async def show(spec: str, variables: dict[str, str] = {}) -> CallToolResult:  # noqa: B006
        """Return which resources of a spec exist, with ids and addresses."""
        return await _answer(commands, "show", *_words({}, {}, variables, [], commands), _path(commands, spec))

    @server.tool(annotations=READS)
    async def audit(spec: str, variables: dict[str, str] = {}) -> CallToolResult:  # noqa: B006
        """Return what exists in the projects of a spec and is not declared. exit_code 1: there is something."""
        words = _words({}, {}, variables, [], commands)
        return await _answer(commands, "audit", *words, _path(commands, spec), finds=True)

    @server.tool(annotations=READS)
    async def check(install_config: str, release: str = "", offline: bool = False) -> CallToolResult:
        """Check an install-config.yaml of OpenShift, or its folder, and its cloud. release: such as 4.20.

        exit_code 1: the installation would fail, for the reasons in the result.
        """
        words = _words({"offline": offline}, {"release": [release] if release else []}, {}, [], commands)
        return await _answer(commands, "check", *words, _path(commands, install_config), finds=True)

    @server.tool(annotations=READS)
    async def verify(metadata: str = "", infra_id: str = "", probe: bool = False) -> CallToolResult:
        """Check the paths from outside to the API and the console of an OpenShift cluster, link by link.

        Name the cluster by its metadata.json, or the folder of that, or by its infra_id. probe also connects to both
        from this machine. exit_code 1: a link is broken.
        """
        files = [_path(commands, metadata)] if metadata else []
        named = {"metadata": files, "infra-id": [infra_id] if infra_id else []}
        return await _answer(commands, "verify", *_words({"probe": probe}, named, {}, [], commands), finds=True)


def _add_apply(server: MCPServer, commands: Commands) -> None:
    """Add the tools for changes."""

    @server.tool(annotations=WRITES_A_FILE)
    async def save_plan(
        spec: str,
        file: str,
        destroy: bool = False,
        allow_replace: bool = False,
        adopt: bool = False,
        prune: bool = False,
        allow_loss: list[str] = [],  # noqa: B006
        variables: dict[str, str] = {},  # noqa: B006
        vars_files: list[str] = [],  # noqa: B006
    ) -> CallToolResult:
        """Plan as the tool plan does, and save the plan to a file, for the user to approve. The notes have its id."""
        flags = {"destroy": destroy, "allow-replace": allow_replace, "adopt": adopt, "prune": prune}
        lists = {"allow-loss": allow_loss, "out": [_path(commands, file)]}
        words = _words(flags, lists, variables, vars_files, commands)
        return await _answer(commands, "plan", *words, _path(commands, spec))

    @server.tool(annotations=CHANGES)
    async def apply(plan: str, context: Context) -> CallToolResult:
        """Carry out a saved plan, once, after the user has run `openstack-prep approve FILE` at a terminal."""
        words = "--quiet", "apply", "--approved", "--plan", _path(commands, plan)
        async with anyio.create_task_group() as group:
            group.start_soon(_report_progress, context)
            found = await _answer(commands, *words)
            group.cancel_scope.cancel()
        return found


def _path(commands: Commands, given: str) -> str:
    try:
        return commands.path(given)
    except ConfigError as error:
        raise ToolError(str(error)) from None


def _positional(value: str) -> Iterator[str]:
    """Yield an argument that is no option, however it begins."""
    yield from ("--", value)


def _words(
    flags: dict[str, bool],
    lists: dict[str, list[str]],
    variables: dict[str, str],
    vars_files: list[str],
    commands: Commands,
) -> Iterator[str]:
    """Yield options of a command, each with its value in one word, so that no value is taken for an option."""
    yield from (f"--{name}" for name, value in flags.items() if value)
    yield from (f"--{name}={value}" for name, values in lists.items() for value in values)
    yield from (f"--var={name}={value}" for name, value in variables.items())
    yield from (f"--vars-file={_path(commands, vars_file)}" for vars_file in vars_files)


async def _answer(commands: Commands, *words: str, finds: bool = False) -> CallToolResult:
    """Run a command and return its answer. ``finds``: exit code 1 beside a result is a finding, not a failure."""
    return _result(await _run(commands, "--format", "json", *words), finds=finds)


async def _run(commands: Commands, *words: str) -> Ended:
    """Run a command; if the call is cancelled, or the server ends, interrupt it and wait for what is under way."""
    process = commands.start(words)
    async with anyio.create_task_group() as group:
        group.start_soon(_interrupt_when_cancelled, process)
        ended = await anyio.to_thread.run_sync(commands.finish, process)
        group.cancel_scope.cancel()
    return ended


async def _report_progress(context: Context) -> None:
    """Tell a client that asks for it that work goes on, so that it does not give up."""
    begun = anyio.current_time()
    while True:
        await anyio.sleep(EVERY)
        seconds = anyio.current_time() - begun
        await context.report_progress(seconds, message=f"apply has been running for {seconds:.0f} s")


async def _interrupt_when_cancelled(process: subprocess.Popen[str]) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        interrupt(process)  # does nothing if it has ended


def _result(ended: Ended, *, finds: bool = False) -> CallToolResult:
    data = ended.data()
    failed = ended.code != 0 and not (finds and ended.code == 1 and ended.has_result)
    text = TextContent(type="text", text=json.dumps(data))
    return CallToolResult(content=[text], structured_content=data, is_error=failed)


def _sections(schema: Values) -> Values:
    return {name: each.get("description", "") for name, each in schema["properties"].items()}


def _section(schema: Values, name: str) -> Values:
    """Return the schema of a section with the definitions that it refers to; raises ToolError."""
    if name not in schema["properties"]:
        raise ToolError(f"{name} is not a section of a spec; use one of {', '.join(schema['properties'])}")
    found = schema["properties"][name]
    definitions: Values = {}
    missing = set(_REFERENCE.findall(json.dumps(found)))
    while missing:
        definitions |= {each: schema["$defs"][each] for each in missing}
        missing = set(_REFERENCE.findall(json.dumps(definitions))) - definitions.keys()
    return {**found, "$defs": definitions}
