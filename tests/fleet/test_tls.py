"""Who can talk to a scheduler of Dask: with certificates of right and wrong authorities, and on this machine."""

from __future__ import annotations

import contextlib
import datetime
import socket
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import dask.config
import psutil
import pytest
import trustme

from openstack_prep.base.errors import ConfigError
from openstack_prep.fleet.scheduler import is_open, reach
from openstack_prep.fleet.workers import on_workers
from tests.fleet.test_workers import Workers, started
from tests.functional.conftest import Prep
from tests.functional.test_fleet import everywhere, fleet, fleet_run

__all__ = ["fleet"]

TLS = "DASK_DISTRIBUTED__COMM__TLS__"
SOON = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "3s"}


STRANGER = {"ca-file": "ca", "client.cert": "good"}


@dataclass
class Files:
    """Certificates in a folder, each with its key; ``old`` has expired, and ``foreign`` is of another authority."""

    folder: Path

    def __post_init__(self) -> None:
        ours, other = trustme.CA(), trustme.CA()
        for name, ca in (("ca", ours), ("other", other)):
            ca.cert_pem.write_to_path(str(self.folder / f"{name}.pem"))
        past = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
        for name, ca, end in (("good", ours, None), ("old", ours, past), ("foreign", other, None)):
            made = ca.issue_cert("dask", not_after=end)
            made.private_key_and_cert_chain_pem.write_to_path(str(self.folder / f"{name}.pem"))

    def variables(self, cert: str = "good", ca: str = "ca", role: str = "CLIENT") -> dict[str, str]:
        files = {"CA_FILE": ca, f"{role}__CERT": cert}
        return {f"{TLS}{key}": str(self.folder / f"{name}.pem") for key, name in files.items() if name}


@pytest.fixture
def files(prep: Prep) -> Files:
    return Files(prep.folder)


@pytest.fixture
def workers(prep: Prep, files: Files) -> Iterator[Workers]:
    """A scheduler and two workers that demand TLS; no client has a certificate from here."""
    both = files.variables(role="SCHEDULER") | files.variables(role="WORKER")
    with started(prep, "encrypted", protocol="tls", **both) as made:
        yield made


def refusal(prep: Prep, address: str, variables: dict[str, str]) -> str:
    """Return the one error of a command that must not reach a scheduler."""
    prep.environment |= variables
    refused = prep.run("fleet", "plan", "--scheduler", address, "fleet.yaml", code=2).stderr.strip()
    for name in variables:
        del prep.environment[name]
    assert refused.startswith(f"openstack-prep: --scheduler {address}: ")
    assert len(refused.splitlines()) == 1
    return refused


def test_a_cluster_with_certificates(prep: Prep, fleet: str, workers: Workers, files: Files) -> None:
    prep.environment |= files.variables()
    assert workers.address.startswith("tls://")
    done = prep.run("fleet", "apply", "--yes", "--scheduler", workers.address, "fleet.yaml")
    assert "has no TLS" not in done.stderr
    assert fleet_run(prep, "plan", "--scheduler", workers.address)[0] == everywhere("unchanged")


def test_those_without_the_right_certificates_are_refused(
    prep: Prep, fleet: str, workers: Workers, files: Files
) -> None:
    def said(cert: str = "good", ca: str = "ca") -> str:
        return refusal(prep, workers.address, files.variables(cert, ca))

    nothing = refusal(prep, workers.address, {})
    assert "tls.ca-file and distributed.comm.tls.client.cert are not set" in nothing
    assert "tls.client.cert is not set" in said(cert="")
    assert "certificate of the scheduler is not valid" in said(cert="foreign", ca="other")
    for unwanted in ("foreign", "old"):
        assert "tls.client.cert to one that the scheduler's CA has issued" in said(unwanted)
    missing = said(cert="no-cert", ca="no-ca")
    assert "tls.ca-file: " in missing
    assert "tls.client.cert: " in missing
    assert "does not have a certificate and its key" in said(cert="ca")
    (prep.folder / "text.pem").write_text("certificate")
    assert "text.pem does not have a certificate in PEM" in said(ca="text")
    plain = workers.address.replace("tls://", "tcp://")
    assert "use tls://" in refusal(prep, plain, files.variables())


def test_a_scheduler_whose_certificate_has_expired(prep: Prep, fleet: str, files: Files) -> None:
    with started(prep, "expired", [], protocol="tls", **files.variables("old", role="SCHEDULER")) as made:
        assert "certificate has expired" in refusal(prep, made.address, files.variables())


def test_a_scheduler_without_tls(prep: Prep, fleet: str, files: Files) -> None:
    with started(prep, "plain", []) as made:
        encrypted = made.address.replace("tcp://", "tls://")
        assert "does not speak TLS" in refusal(prep, encrypted, files.variables())
        assert "no worker for 3 s" in refusal(prep, made.address, SOON)


def test_what_never_answers(prep: Prep, fleet: str, files: Files) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        place = f"127.0.0.1:{mute.getsockname()[1]}"
        assert "no scheduler has answered within 3 s" in refusal(prep, f"tcp://{place}", SOON)
        assert "no connection within 3 s" in refusal(prep, f"tls://{place}", SOON | files.variables())


@pytest.mark.parametrize("address", ["tls://127.0.0.1", "tls://127.0.0.1:port", "tsl://127.0.0.1:8786"])
def test_what_is_no_address(prep: Prep, fleet: str, files: Files, address: str) -> None:
    assert "use an address such as" in refusal(prep, address, files.variables())


def test_which_addresses_are_open_to_others() -> None:
    closed = ["tls://10.0.0.5:1", "wss://a.example:1", "tcp://127.0.0.1:1", "tcp://[::1]:1", "localhost:1"]
    assert not any(map(is_open, closed))
    assert all(map(is_open, ["tcp://10.0.0.5:1", "a.example:1", "ws://[2001:db8::1]:1"]))


def test_nobody_else_reaches_the_workers_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    me = psutil.Process()
    Files(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    stranger = {f"distributed.comm.tls.{key}": str(tmp_path / f"{name}.pem") for key, name in STRANGER.items()}
    before = listening(me)
    with on_workers("local", jobs=2, processes=2) as executors:
        with executors(1) as executor:
            assert executor.submit(divmod, 7, 2).result() == (3, 1)
        places = listening(me) - before
        assert len(places) >= 3
        assert {host for host, _ in places} == {"127.0.0.1"}
        assert 8787 not in {port for _, port in places}  # which another command may have: no warning
        with dask.config.set({"distributed.comm.timeouts.connect": "1s"} | stranger):
            for _, port in places:
                for address in (f"tcp://127.0.0.1:{port}", f"tls://127.0.0.1:{port}"):
                    with pytest.raises(ConfigError):
                        reach(address)
                assert pages(port) == []
        (scratch,) = tmp_path.glob("openstack-prep-*")
        assert scratch.stat().st_mode & 0o777 == 0o700
    assert not scratch.exists()


def listening(process: psutil.Process) -> set[tuple[str, int]]:
    """Return where a process and its children listen."""
    of_all = [found for each in (process, *process.children(recursive=True)) for found in each.net_connections()]
    return {tuple(each.laddr) for each in of_all if each.status == psutil.CONN_LISTEN}


def pages(port: int) -> list[str]:
    """Return the pages of Dask that a port shows to anybody."""
    shown = []
    for page in ("/", "/info/main/workers.html", "/json/counts.json", "/metrics", "/health", "/sysmon"):
        with contextlib.suppress(OSError):  # no HTTP, or 404
            urllib.request.urlopen(f"http://127.0.0.1:{port}{page}", timeout=5).close()
            shown.append(page)
    return shown
