"""The databases, keys and rings of a new cloud."""

from __future__ import annotations

import base64
import concurrent.futures
import contextlib
import json
import os
import secrets
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator

from tests.devcloud import processes
from tests.devcloud.config import swift
from tests.devcloud.config.ini import database
from tests.devcloud.fill import fill_identity
from tests.devcloud.layout import HOST, PASSWORD, REGION, DevcloudError, Layout, with_designate, with_octavia


class Builder:
    """Builds the databases of one cloud, two projects at a time."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._children: set[subprocess.Popen[bytes]] = set()
        self._stopping = threading.Event()

    def build(self) -> None:
        """Build everything; leaves Keystone running, which had to be filled."""
        # the longest first, so that neither core idles at the end
        jobs: tuple[Callable[[], None], ...] = (
            self._nova, self._keystone, self._neutron, self._cinder,
            self._heat, self._glance, self._placement, self._swift,
            *((self._designate,) if with_designate() else ()),
            *((self._octavia,) if with_octavia() else ()),
        )  # fmt: skip
        with concurrent.futures.ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
            futures = [pool.submit(job) for job in jobs]
            try:
                for future in concurrent.futures.as_completed(futures):
                    future.result()
            except BaseException:
                self._stopping.set()
                pool.shutdown(wait=False, cancel_futures=True)
                for child in tuple(self._children):
                    child.kill()
                raise

    def build_own(self) -> None:
        """Build what a cloud shares with no other one: keys of tokens, and the rings."""
        self._fernet_keys("fernet")
        self._swift()

    def _manage(self, module: str, *commands: list[str]) -> None:
        """Run commands of a project's management tool, one after the other, in one warm process."""
        arguments = json.dumps([list(map(str, command)) for command in commands])
        log_name = f"build-{module.partition('.')[0]}"
        with (
            open(self.layout.service_log(log_name), "a") as log,
            self._child(
                [
                    str(self.layout.venv / "bin/python"),
                    "-m",
                    "tests.devcloud.server.manage",
                    module,
                    arguments,
                ],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=processes.environment(self.layout),
                cwd=self.layout.home,
            ) as child,
        ):
            code = child.wait()
        if code and not self._stopping.is_set():
            raise DevcloudError(f"{module} failed; its log ends with\n{processes.tail(self.layout, log_name)}")

    @contextlib.contextmanager
    def _child(self, *arguments: object, **options: object) -> Iterator[subprocess.Popen[bytes]]:
        """A child that an interrupted build can end."""
        if self._stopping.is_set():
            raise DevcloudError("the build was interrupted")
        child: subprocess.Popen[bytes] = subprocess.Popen(*arguments, **options)  # type: ignore[call-overload]
        self._children.add(child)
        try:
            yield child
        finally:
            self._children.discard(child)

    def _config(self, path: str) -> str:
        return f"--config-file={self.layout.etc / path}"

    def _write_ahead(self, *names: str) -> None:
        """Let readers read while somebody writes; a database file remembers it."""
        for name in names:
            with contextlib.closing(sqlite3.connect(self.layout.db / f"{name}.sqlite")) as connection:
                connection.execute("PRAGMA journal_mode=WAL")

    def _fernet_keys(self, kind: str) -> None:
        directory = self.layout.data / "keystone" / kind
        directory.mkdir(mode=0o700)
        for number in ("0", "1"):
            (directory / number).write_bytes(base64.urlsafe_b64encode(secrets.token_bytes(32)))

    def _keystone(self) -> None:
        for kind in ("fernet", "credential"):
            self._fernet_keys(kind)
        config = self._config("keystone/keystone.conf")
        interfaces = ("public", "internal", "admin")
        self._manage(
            "keystone.cmd.manage",
            [config, "db_sync"],
            [
                config, "bootstrap",
                "--bootstrap-username=admin",
                f"--bootstrap-password={PASSWORD}",
                "--bootstrap-project-name=admin",
                "--bootstrap-service-name=keystone",
                f"--bootstrap-region-id={REGION}",
                *(f"--bootstrap-{interface}-url={self.layout.auth_url}" for interface in interfaces),
            ],
        )  # fmt: skip
        self._write_ahead("keystone")
        processes.start(self.layout, ["keystone"])
        processes.wait(self.layout, ["keystone"])
        fill_identity(self.layout)

    def _nova(self) -> None:
        config = self._config("nova/nova.conf")
        cell0, cell1 = (f"--database_connection={database(self.layout, name)}" for name in ("nova_cell0", "nova"))
        self._manage(
            "nova.cmd.manage",
            [config, "api_db", "sync"],
            [config, "cell_v2", "map_cell0", cell0],
            [config, "db", "sync"],  # cell0 and, from [database], cell1
            [config, "cell_v2", "create_cell", "--name=cell1", "--transport-url=fake:///", cell1],
        )
        self._write_ahead("nova_api", "nova_cell0", "nova")

    def _neutron(self) -> None:
        config = self._config("neutron/neutron.conf")
        self._manage("tests.devcloud.server.neutron_schema", [database(self.layout, "neutron")])
        self._manage("neutron.db.migration.cli", [config, "stamp", "heads"])
        self._write_ahead("neutron")

    def _cinder(self) -> None:
        self._manage("cinder.cmd.manage", [self._config("cinder/cinder.conf"), "db", "sync"])
        self._write_ahead("cinder")

    def _heat(self) -> None:
        self._manage("heat.cmd.manage", [self._config("heat/heat.conf"), "db_sync"])
        self._write_ahead("heat")

    def _glance(self) -> None:
        self._manage("glance.cmd.manage", [self._config("glance/glance-api.conf"), "db_sync"])
        self._write_ahead("glance")

    def _placement(self) -> None:
        self._manage("placement.cmd.manage", [self._config("placement/placement.conf"), "db", "sync"])
        self._write_ahead("placement")

    def _designate(self) -> None:
        self._manage("designate.cmd.manage", [self._config("designate/designate.conf"), "database", "sync"])
        self._write_ahead("designate")

    def _octavia(self) -> None:
        self._manage("tests.devcloud.server.octavia_schema", [database(self.layout, "octavia")])
        self._write_ahead("octavia")

    def _swift(self) -> None:
        commands: list[list[str]] = []
        for kind in swift.RINGS:
            builder = str(self.layout.data / f"rings/{kind}.builder")
            node = f"r1z1-{HOST}:{self.layout.port(f'swift-{kind}')}/d1"
            commands += [
                [builder, "create", "4", "1", "0"],
                [builder, "add", node, "1"],
                [builder, "rebalance"],
            ]
        self._manage("swift.cli.ringbuilder", *commands)
