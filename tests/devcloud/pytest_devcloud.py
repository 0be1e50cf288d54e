"""Fixtures for tests against the devcloud.

``devcloud`` is the running cloud, in its first state when the session starts.  ``tenant`` is a
project of the test's own, ``module_tenant`` one for all tests of a module.  Load them in the
conftest.py beside the tests::

    from tests.devcloud.pytest_devcloud import devcloud, module_tenant, pytest_runtest_teardown, tenant

or, in the topmost one, by ``pytest_plugins = ["tests.devcloud.pytest_devcloud"]``.  Environment:

OPENSTACK_PREP_TEST_PORT_BASE  where the cloud listens (default: 21000, or another base whose ports are free);
                               under pytest-xdist each worker has a cloud of its own, 500 above the last one's
OPENSTACK_PREP_KEEP_DEVCLOUD   1: leave it running at the end, so that the next session starts fast
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from tests.devcloud import access, cloud, faults, ports, processes
from tests.devcloud import tenant as tenants
from tests.devcloud.clouds_file import ADMIN
from tests.devcloud.layout import PASSWORD, SERVICES, DevcloudError, Layout, ovn_root

if TYPE_CHECKING:
    from openstack.connection import Connection

DEFAULT_TEST_BASE = 21000
OVN_TEST_BASE = 18000
PATIENCE = 120.0
"""Seconds to wait for what a client or a service does, on a machine that is busy."""
NO_CLOUD = 3  # exit code of a run whose cloud does not start, or lost a service


@dataclass(frozen=True)
class Devcloud:
    """A running devcloud, as tests see it."""

    layout: Layout

    @property
    def base(self) -> int:
        return self.layout.base

    @property
    def clouds_file(self) -> Path:
        """A clouds.yaml whose entry ``devcloud-admin`` is the administrator."""
        return self.layout.clouds_file

    @property
    def auth_url(self) -> str:
        return self.layout.auth_url

    @property
    def admin_password(self) -> str:
        return PASSWORD

    @cached_property
    def admin(self) -> Connection:
        """The administrator's connection, shared by all tests."""
        return tenants.connect(self.clouds_file, ADMIN)

    def log_tail(self, service: str, lines: int = 30) -> str:
        return processes.tail(self.layout, service, lines)

    def mark(self) -> access.LogPosition:
        """This moment, for ``requests_since``."""
        return access.mark(self.layout)

    def requests_since(self, mark: access.LogPosition, *, internal: bool = False) -> list[access.Request]:
        """Requests that clients made since then; with ``internal`` those between services, too."""
        return access.read(self.layout, mark, internal=internal)

    def unanswered(self, mark: access.LogPosition) -> list[tuple[str, str, str]]:
        """Service, method and path of the requests that clients began since then and that are under way."""
        return access.unanswered(self.layout, mark)

    def wait_for_request(self, mark: access.LogPosition, method: str, path: str) -> None:
        """Wait until a client's request with a path that contains ``path`` is under way."""
        deadline = time.monotonic() + PATIENCE
        while not any(path in asked and verb == method for _, verb, asked in self.unanswered(mark)):
            assert time.monotonic() < deadline, f"no {method} {path}"
            time.sleep(0.05)

    def wait_until_idle(self, mark: access.LogPosition) -> None:
        """Wait until no request of a client is under way, also none that a dead client had just sent."""
        deadline, quiet = time.monotonic() + PATIENCE, time.monotonic()
        while time.monotonic() - quiet < 1:
            assert time.monotonic() < deadline, self.unanswered(mark)
            if self.unanswered(mark):
                quiet = time.monotonic()
            time.sleep(0.1)

    def faults(self, *rules: faults.Fault) -> contextlib.AbstractContextManager[None]:
        """Let the cloud misbehave by these rules inside a ``with`` block."""
        return faults.inject(self.layout, *rules)

    def reset(self) -> None:
        """Back to the cloud's first state, in about three seconds; tenants are gone after it."""
        cloud.reset(self.layout)

    def dead(self) -> list[str]:
        """Services that have ended."""
        alive = processes.running(self.layout)
        return [service for service in SERVICES if service not in alive]


def _claimed() -> contextlib.AbstractContextManager[Layout]:
    """Choose the ports, for as long as the session lasts."""
    given = os.environ.get("OPENSTACK_PREP_TEST_PORT_BASE")
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    beside = worker * ports.STEP
    first, purpose = (OVN_TEST_BASE, "tests with OVN") if ovn_root() else (DEFAULT_TEST_BASE, "tests")
    return ports.choose(int(given) + beside if given else None, first + beside, purpose)


@pytest.fixture(scope="session")
def devcloud(request: pytest.FixtureRequest) -> Iterator[Devcloud]:
    """The cloud, in its first state; brought up (and installed, and built) as far as needed."""
    with contextlib.ExitStack() as claims:
        try:
            layout = claims.enter_context(_claimed())
            cloud.reset(layout)
        except DevcloudError as error:
            end_run(request.session, f"devcloud: {error}")
        except Exception as error:  # noqa: BLE001 - each test would repeat it
            end_run(request.session, f"devcloud: {type(error).__name__}: {error}")
        yield Devcloud(layout)
        if os.environ.get("OPENSTACK_PREP_KEEP_DEVCLOUD") != "1":
            cloud.down(layout)


def end_run(session: pytest.Session, message: str) -> NoReturn:
    """End the whole run with one message: what comes after would fail for a reason of no interest.

    pytest.exit ends this process only.  Of a worker, pytest-xdist passes on ``shouldstop``
    (DSession.worker_workerfinished in xdist/dsession.py, pytest-xdist 3.8), which ends the others, too.
    """
    if hasattr(session.config, "workerinput"):
        session.shouldstop = message
    pytest.exit(message, NO_CLOUD)


@contextlib.contextmanager
def _made_for(
    node: pytest.Item | pytest.Collector, devcloud: Devcloud, folders: pytest.TempPathFactory
) -> Iterator[tenants.Tenant]:
    name = re.sub(r"\W+", "-", node.name)[:40].strip("-")
    made = tenants.create(devcloud.layout, devcloud.admin, name, folders.mktemp("tenant"))
    yield made
    tenants.delete(devcloud.admin, made)


@pytest.fixture
def tenant(
    devcloud: Devcloud, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[tenants.Tenant]:
    """A project of the test's own, deleted with all that it holds when the test is over."""
    with _made_for(request.node, devcloud, tmp_path_factory) as made:
        yield made


@pytest.fixture(scope="module")
def module_tenant(
    devcloud: Devcloud, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[tenants.Tenant]:
    """A project for the tests of a module that do not get in each other's way; deleted after the last."""
    with _made_for(request.node, devcloud, tmp_path_factory) as made:
        yield made


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """A dead service ends the run."""
    found = item.funcargs.get("devcloud") if isinstance(item, pytest.Function) else None
    if isinstance(found, Devcloud) and (dead := found.dead()):
        tail = found.log_tail(dead[0])
        end_run(item.session, f"devcloud lost {', '.join(dead)} in {item.nodeid}; its log ends with\n{tail}")
