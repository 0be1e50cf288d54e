"""The tools for AI assistants, called by the SDK's own client over standard input and output, on the real services."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import secrets
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import StdioServerParameters
from mcp.client import Client

from tests.functional.conftest import COMMAND, Prep

PASSWORD = "a-password-of-nobody-else"


@pytest.fixture(name="spec")
def _spec(prep: Prep, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A spec with a password of its own and one that is generated."""
    name = f"agent{secrets.token_hex(3)}"
    spec: dict[str, Any] = {
        "name": name,
        "project": {"name": name},
        "users": [
            {"name": name, "password": {"file": "user.password"}},
            {"name": f"{name}-2", "password": {"generate": "other.password"}},
        ],
        "role_assignments": [{"user": name, "role": "member"}],
        "networks": [{"name": "net"}],
        "clouds_yaml": [{"path": "clouds.yaml", "cloud": name, "user": name}],
    }
    (prep.folder / "user.password").write_text(f"{PASSWORD}\n")
    (prep.folder / "user.password").chmod(0o600)
    prep.environment["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
    prep.write(spec)
    return spec


class Agent:
    """A client of a server in the folder of a Prep, which remembers all answers."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.answers: list[str] = []

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool, insist that it did its work, and return its result."""
        answer = await self.client.call_tool(tool, arguments)
        self.answers.append(answer.model_dump_json())
        assert not answer.is_error, answer
        assert isinstance(answer.structured_content, dict)
        return answer.structured_content

    async def refused(self, tool: str, **arguments: Any) -> str:
        """Call a tool, insist that it failed, and return the code of the error, or the text of one that has none."""
        answer = await self.client.call_tool(tool, arguments)
        self.answers.append(answer.model_dump_json())
        assert answer.is_error
        if answer.structured_content is None:
            return str(answer.content[0].text)  # type: ignore[union-attr]
        return str(answer.structured_content["result"]["errors"][0]["code"])


@asynccontextmanager
async def connected(prep: Prep, *words: str) -> AsyncIterator[Agent]:
    environment = {**os.environ, **prep.environment}
    server = StdioServerParameters(command=COMMAND, args=["mcp", *words], cwd=prep.folder, env=environment)
    async with Client(server) as client:
        yield Agent(client)


def session(prep: Prep, do: Callable[[Agent], Awaitable[None]], *words: str) -> list[str]:
    """Do something as an agent, and return all answers."""

    async def run() -> list[str]:
        async with connected(prep, *words) as agent:
            await do(agent)
            return agent.answers

    return asyncio.run(run())


async def approve(prep: Prep, plan: str, *, typed: str | None = None) -> int:
    return await asyncio.to_thread(approve_at_terminal, prep, plan, typed)


def approve_at_terminal(prep: Prep, plan: str, typed: str | None, *words: str) -> int:
    """Approve a plan as a person does, by its id or by what is typed instead, and return the exit code."""
    ours, its = pty.openpty()
    process = prep.start("approve", *words, plan, stdin=its, stdout=subprocess.DEVNULL, stderr=its)
    os.close(its)
    shown = b""
    try:
        while not shown.endswith(b": "):
            try:
                shown += os.read(ours, 4096)
            except OSError:  # the command has ended without a question
                return process.wait(120)
        plan_id = shown.split()[-1].rstrip(b":").decode()
        os.write(ours, f"{plan_id if typed is None else typed}\n".encode())
        return process.wait(120)
    finally:
        os.close(ours)


def approvals(prep: Prep) -> list[Path]:
    return list(Path(prep.environment["XDG_STATE_HOME"]).glob("openstack-prep/approvals/*"))


def test_only_an_approved_plan_is_applied_and_only_once(prep: Prep, spec: dict[str, Any]) -> None:
    async def work(agent: Agent) -> None:
        tools = {each.name: each for each in (await agent.client.list_tools()).tools}
        reading = {name for name, each in tools.items() if each.annotations and each.annotations.read_only_hint}
        assert tools.keys() - reading == {"save_plan", "apply"}
        assert (await agent.call("validate", spec="spec.yaml"))["result"]["valid"]
        plan = (await agent.call("plan", spec="spec.yaml"))["result"]
        assert plan == json.loads(prep.run("plan", "--format", "json", "spec.yaml").stdout)
        saved = await agent.call("save_plan", spec="spec.yaml", file="my.plan")
        assert saved["result"] == plan
        assert await agent.refused("apply", plan="my.plan") == "plan.unapproved"
        assert await approve(prep, "my.plan", typed="yes") == 2
        assert await agent.refused("apply", plan="my.plan") == "plan.unapproved"
        assert set(prep.plan().values()) == {"create"}
        assert await approve(prep, "my.plan") == 0
        assert [each.stat().st_mode & 0o777 for each in approvals(prep)] == [0o600]
        done = (await agent.call("apply", plan="my.plan"))["result"]
        assert {each["status"] for each in done["steps"]} == {"done"}
        assert await agent.refused("apply", plan="my.plan") == "plan.unapproved"
        assert (await agent.call("show", spec="spec.yaml"))["result"]["network/net"]["id"]
        assert (await agent.call("audit", spec="spec.yaml"))["exit_code"] in (0, 1)

    answers = session(prep, work)
    generated = (prep.folder / "other.password").read_text().strip()
    found = [each for each in answers for word in (PASSWORD, generated) if word in each]
    assert found == []
    assert prep.changes() == set()
    prep.destroy()


def test_an_approval_counts_for_nothing_else(prep: Prep, spec: dict[str, Any]) -> None:
    async def work(agent: Agent) -> None:
        await agent.call("save_plan", spec="spec.yaml", file="my.plan")
        assert await approve(prep, "my.plan") == 0
        approved = (prep.folder / "my.plan").read_text()
        await agent.call("save_plan", spec="spec.yaml", file="my.plan")  # the same changes, with another salt
        assert await agent.refused("apply", plan="my.plan") == "plan.unapproved"
        content = json.loads(approved) | {"made_by": "openstack-prep 0"}
        (prep.folder / "edited.plan").write_text(json.dumps(content))
        assert await agent.refused("apply", plan="edited.plan") == "spec.invalid"
        (prep.folder / "my.plan").write_text(approved)
        prep.write(spec | {"networks": [{"name": "net"}, {"name": "more"}]})
        assert await agent.refused("apply", plan="my.plan") == "plan.refused"  # the spec has changed since
        prep.write(spec)
        assert len(approvals(prep)) == 1
        prep.run("apply", "--yes", "spec.yaml", "--target", "project/" + spec["name"])
        assert await agent.refused("apply", plan="my.plan") == "plan.refused"  # the cloud has
        assert len(approvals(prep)) == 1

    session(prep, work)
    prep.destroy()


@pytest.mark.more
def test_two_agents_share_one_approval(prep: Prep, spec: dict[str, Any]) -> None:
    async def work() -> None:
        async with connected(prep) as one, connected(prep) as other:
            plans = [one.call("plan", spec="spec.yaml"), other.call("plan", spec="spec.yaml")]
            assert await together(*plans) == [(await one.call("plan", spec="spec.yaml"))] * 2
            await one.call("save_plan", spec="spec.yaml", file="my.plan")
            assert await approve(prep, "my.plan") == 0
            answers = await together(*(each.client.call_tool("apply", {"plan": "my.plan"}) for each in (one, other)))
            assert sorted(each.is_error for each in answers) == [False, True]

    asyncio.run(work())
    assert prep.changes() == set()
    prep.destroy()


async def together(*calls: Coroutine[Any, Any, Any]) -> list[Any]:
    return list(await asyncio.gather(*calls))


def test_files_and_programs_that_a_spec_names(prep: Prep, spec: dict[str, Any], tmp_path: Path) -> None:
    outside = Path(prep.environment["XDG_STATE_HOME"]) / "outside.yaml"
    outside.write_text(prep.spec.read_text())
    (tmp_path / "link.yaml").symlink_to(outside)
    users = [{"name": spec["name"], "password": {"command": ["./password.sh"]}}]
    (tmp_path / "password.sh").write_text(f"#!/bin/sh\ntouch ran\necho {PASSWORD}\n")
    (tmp_path / "password.sh").chmod(0o755)
    prep.write(spec | {"users": users})

    async def work(agent: Agent) -> None:
        for path in (str(outside), "link.yaml", "../x.yaml", "/etc/hostname"):
            assert "outside of the folder" in await agent.refused("validate", spec=path)
            assert "outside of the folder" in await agent.refused("save_plan", spec="spec.yaml", file=path)
        assert await agent.refused("plan", spec="--help") == "spec.unreadable"

    async def without_programs(agent: Agent) -> None:
        await work(agent)
        await agent.client.call_tool("plan", {"spec": "spec.yaml"})

    async def with_programs(agent: Agent) -> None:
        await agent.call("save_plan", spec="spec.yaml", file="my.plan")

    prep.run("apply", "--yes", "spec.yaml")  # so that a plan logs in by the password
    (tmp_path / "ran").unlink()
    session(prep, without_programs)
    assert not (tmp_path / "ran").exists()
    answers = session(prep, with_programs, "--allow-programs")
    assert (tmp_path / "ran").exists()
    assert PASSWORD not in "".join(answers)
    for words in ((), ("--allow-programs",)):  # nothing is left to do, but the plan is read again
        (tmp_path / "ran").unlink(missing_ok=True)
        assert approve_at_terminal(prep, "my.plan", None, *words) == 2
        assert (tmp_path / "ran").exists() == bool(words)
    prep.destroy()
