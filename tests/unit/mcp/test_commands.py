from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client

from openstack_prep.base.errors import ConfigError
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.programs import SWITCH, output_of
from openstack_prep.cli.main import main
from openstack_prep.download.installer_program import version_of
from openstack_prep.mcp.commands import Commands, Ended, interrupt
from openstack_prep.mcp.tools import build_server


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    folder = Path(os.path.realpath(tmp_path)) / "specs"
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "spec.yaml").write_text("name: lab\nproject: {name: lab}\n")
    (folder / "-x.yaml").write_text("name: lab\nproject: {name: lab}\n")
    (folder / "out").symlink_to("/etc")
    (folder / "up.yaml").symlink_to("../theirs.yaml")
    return folder


@pytest.mark.parametrize("given", ["in/spec.yaml", "./in/../in/spec.yaml", "-x.yaml", "not/there.yaml", "."])
def test_a_path_below_the_folder(folder: Path, given: str) -> None:
    path = Commands(folder).path(given)
    assert path.startswith(".")
    assert os.path.realpath(folder / path) == os.path.realpath(folder / given)


@pytest.mark.parametrize(
    "given", ["..", "../theirs.yaml", "/etc/passwd", "out/passwd", "up.yaml", "in/../../x", "a\0b"]
)
def test_a_path_outside_of_it(folder: Path, given: str) -> None:
    with pytest.raises(ConfigError):
        Commands(folder).path(given)


def test_no_module_of_the_folder_is_imported(folder: Path) -> None:
    (folder / "yaml.py").write_text("raise SystemExit(99)\n")
    commands = Commands(folder)
    ended = commands.finish(commands.start(["--format", "json", "validate", "./in/spec.yaml"]))
    assert (ended.code, ended.has_result, ended.notes) == (0, True, ())


def test_values_are_no_arguments_of_a_process(folder: Path) -> None:
    """Every user of a machine sees these."""
    commands = Commands(folder)
    process = commands.start(["plan", "--var=token=hunter2", "./spec.yaml"])
    assert "hunter2" not in Path(f"/proc/{process.pid}/cmdline").read_text()
    assert commands.finish(process).code == 2


def test_a_command_is_interrupted(folder: Path) -> None:
    os.mkfifo(folder / "pipe.yaml")
    commands = Commands(folder)
    process = commands.start(["--format", "json", "validate", "./pipe.yaml"])
    with open(folder / "pipe.yaml", "wb"):  # until the command has opened it
        interrupt(process)
        ended = commands.finish(process)
    assert (ended.code, ended.has_result) == (130, False)
    interrupt(process)  # it has ended


def test_an_error_is_no_result() -> None:
    assert not Ended(1, {"version": 1, "errors": [], "exit_code": 1}, ()).has_result
    assert not Ended(1, {}, ()).has_result
    assert Ended(1, {"version": 1, "findings": []}, ()).has_result


def test_programs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "off")
    with pytest.raises(InvalidValue):
        output_of([sys.executable, "-c", ""], "a program", most=10, seconds=10)
    with pytest.raises(ConfigError):
        version_of(Path(sys.executable))


def test_tools_by_a_client(folder: Path) -> None:
    async def work(client: Client) -> None:
        async def call(name: str, **arguments: Any) -> tuple[bool, Any]:
            answer = await client.call_tool(name, arguments)
            return bool(answer.is_error), answer.structured_content

        failed, found = await call("validate", spec="in/spec.yaml")
        assert not failed
        assert found["result"]["resources"] == ["project/lab"]
        assert await call("validate", spec="../theirs.yaml") == (True, None)
        for code, wrong in (("quota.short", False), ("--help", True)):
            assert (await call("explain", code=code))[0] == wrong
        failed, found = await call("schema", section="routers")
        text = json.dumps(found["result"])
        assert not failed
        assert {name for name in found["result"]["$defs"] if f"#/$defs/{name}" in text} == {*found["result"]["$defs"]}
        assert "Route" in found["result"]["$defs"]
        assert "routers" in (await call("schema"))[1]["result"]
        assert await call("schema", section="trunks") == (True, None)

    async def session() -> None:
        async with Client(build_server(Commands(folder))) as client:
            await work(client)

    anyio.run(session)


def test_a_cancelled_call_interrupts_its_command(folder: Path) -> None:
    pipe = folder / "pipe.yaml"
    os.mkfifo(pipe)

    async def session() -> None:
        async with Client(build_server(Commands(folder))) as client, anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "validate", {"spec": "pipe.yaml"})
            writers.append(await anyio.to_thread.run_sync(os.open, pipe, os.O_WRONLY))  # until the command reads it
            group.cancel_scope.cancel()

    writers: list[int] = []
    anyio.run(session)
    with pytest.raises(OSError, match="No such device"):  # nobody reads the pipe any more
        os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    os.close(*writers)


def test_the_server_refuses_to_serve_the_approvals(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    assert main(["mcp", "-C", str(folder)]) == 2
    assert "[config.invalid]" in capsys.readouterr().err
