"""Entries of clouds.yaml as clients find them: behind TLS that nobody verifies, and below a secure.yaml."""

from __future__ import annotations

import contextlib
import http.client
import secrets
import ssl
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import trustme
import yaml

from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional import client
from tests.functional.conftest import Prep
from tests.unit.distant import running


@contextlib.contextmanager
def behind_tls(keystone: str, folder: Path) -> Iterator[str]:
    """Serve Keystone with a certificate of an authority that only ``ca.pem`` in the folder has; yield its address."""
    upstream = urlsplit(keystone)
    assert upstream.hostname

    class Proxy(BaseHTTPRequestHandler):
        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
            with contextlib.closing(http.client.HTTPConnection(str(upstream.hostname), upstream.port)) as keystone:
                keystone.request(self.command, self.path, body, headers)
                answer = keystone.getresponse()
                content = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _pass_on

        def log_message(self, *words: Any) -> None:
            pass

    ca, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("localhost").configure_cert(context)
    ca.cert_pem.write_to_path(str(folder / "ca.pem"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with running(server):
        yield f"https://localhost:{server.server_port}{upstream.path}"


@pytest.fixture
def tls(devcloud: Devcloud, prep: Prep, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The administrator's entry, behind TLS."""
    monkeypatch.setenv("NO_PROXY", "*")
    entry = yaml.safe_load(Path(devcloud.clouds_file).read_text())["clouds"]["devcloud-admin"]
    with behind_tls(entry["auth"]["auth_url"], prep.folder) as url:
        entry["auth"]["auth_url"] = url
        del entry["region_name"]  # that of the catalogue
        yield entry


def test_clients_of_written_entries(prep: Prep, tls: dict[str, Any]) -> None:
    name = f"ent{secrets.token_hex(3)}"
    inside = {"path": "k/clouds.yaml", "cloud": name, "user": name}
    prep.write(
        {
            "name": name,
            "project": {"name": name},
            "users": [{"name": name, "password": {"generate": "k/pw"}}],
            "role_assignments": [{"user": name, "role": "member"}],
            "clouds_yaml": [inside],
            "application_credentials": [{"name": name, "clouds_yaml": "k/clouds.yaml", "cloud": "app"}],
            "env_file": {"path": "k/env", "cloud": "app"},
        }
    )
    admin = prep.folder / "admin.yaml"
    behind = Prep(prep.folder, prep.environment | {"OS_CLIENT_CONFIG_FILE": str(admin), "OS_CLOUD": "adm"})
    written = prep.folder / "k" / "clouds.yaml"
    how: dict[str, Any]
    for how, expected in (
        ({"insecure": True}, {"verify": False}),
        ({"verify": "ca.pem"}, {"cacert": str(prep.folder / "ca.pem")}),
    ):
        admin.write_text(yaml.safe_dump({"clouds": {"adm": tls | how}}))
        warned = behind.run("plan", prep.spec.name).stderr.count("verify: false")
        assert bool(warned) is ("insecure" in how)
        behind.apply()
        assert not behind.changes()
        for cloud, entry in yaml.safe_load(written.read_text())["clouds"].items():
            assert {key: entry.get(key) for key in ("verify", "cacert")} == {"verify": None, "cacert": None} | expected
            assert entry["region_name"] == "regionOne"
            issued = prep.openstack("token", "issue", OS_CLIENT_CONFIG_FILE=str(written), OS_CLOUD=cloud)
            assert issued["project_id"]

    secure = prep.folder / "k" / "secure.yaml"
    secure.write_text(yaml.safe_dump({"clouds": {name: {"auth": {"password": "an-old-one"}}}}))
    for command in (["plan"], ["apply", "--yes"]):
        refused = behind.run(*command, prep.spec.name, code=2).stderr
        assert f"{secure}:4" in refused
        assert "[clouds-yaml.overridden]" in refused
    secure.unlink()

    damaged = written.read_text().replace("application_credential_secret: ", "application_credential_secret: x")
    written.write_text(damaged)
    assert "[clouds-yaml.login]" in behind.run("plan", prep.spec.name, code=2).stderr
    written.write_text(damaged.replace("application_credential_secret: x", "application_credential_secret: "))
    assert not behind.changes()


def test_users_who_may_not_log_in(prep: Prep) -> None:
    """A second factor, or a disabled user or project, is a warning: the entry is right, and later applies go on."""
    name = f"mfa{secrets.token_hex(3)}"
    spec: dict[str, Any] = {
        "name": name,
        "project": {"name": name},
        "users": [
            {"name": f"{name}-a", "password": {"generate": "a"}},
            {"name": f"{name}-b", "password": {"generate": "b"}, "enabled": False},
        ],
        "role_assignments": [{"user": f"{name}-{each}", "role": "member"} for each in "ab"],
        "clouds_yaml": [{"path": "clouds.yaml", "cloud": each, "user": f"{name}-{each}"} for each in "ab"],
        "application_credentials": [{"name": name, "clouds_yaml": "clouds.yaml", "cloud": "app"}],
        "env_file": {"path": "env", "cloud": "a", "variables": {"OS_INTERFACE": "public"}},
    }
    prep.write(spec)
    prep.apply()
    warned = prep.run("plan", prep.spec.name, "--detailed-exitcode").stderr
    assert [warned.count(f"{each}: no client can log in") for each in ("#a", "#b")] == [0, 1]

    user = f"{name}-a"
    factors = ("--enable-multi-factor-auth", "--multi-factor-auth-rule", "password,token")
    for change in (factors, ("--disable",), ("--enable", "--disable-multi-factor-auth")):
        client.openstack(["user", "set", *change, user], prep.environment, prep.folder)
        warned = prep.run("plan", prep.spec.name, "--detailed-exitcode").stderr  # exit code 0: no changes
        assert warned.count("no client can log in") == (1 if "--enable" in change else 4)
        assert "unchanged" in prep.run("apply", "--yes", prep.spec.name).stdout
        if change is factors:  # what only this user can do
            second = {"name": f"{name}-2", "clouds_yaml": "clouds.yaml", "cloud": "app2"}
            prep.write(spec | {"application_credentials": [*spec["application_credentials"], second]})
            refused = prep.run("apply", "--yes", prep.spec.name, code=2).stderr
            assert "logs in with several factors" in refused.partition("[access.missing-login]")[0]
            prep.write(spec)
    prep.destroy()
