"""TLS in front of a devcloud, and trials of each way in which its certificates may be right or wrong."""

from __future__ import annotations

import contextlib
import functools
import http.client
import os
import signal
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import trustme
import yaml

from openstack_prep.download.http import CA_BUNDLES
from tests.devcloud.layout import PASSWORD, REGION, Layout
from tests.devcloud.qcow2 import qcow2
from tests.faults.shipped import Ended, Folder, make
from tests.faults.trial import FORBIDDEN

SPEC = "openshift-lab"
FRONTED = ("keystone", "glance", "nova", "neutron", "cinder", "heat", "swift-proxy")
HOPS = ("connection", "keep-alive", "transfer-encoding", "content-length", "host")
NAME = "localhost"
SECRET = "pw-of-netrc"


class _Front(BaseHTTPRequestHandler):
    """Passes requests on to one port, and writes https where an answer has the address of a service behind TLS."""

    protocol_version = "HTTP/1.1"

    def __init__(self, behind: int, addresses: Mapping[str, str], notes: Path, *words: Any) -> None:
        self.behind, self.addresses, self.notes = behind, addresses, notes
        super().__init__(*words)

    def log_message(self, *words: Any) -> None:
        pass

    def _forward(self) -> None:
        with self.notes.open("a") as notes:  # a line per request: whose login it had besides the token
            notes.write(f"{self.headers.get('Authorization', '-')}\n")
        kept = {name: value for name, value in self.headers.items() if name.lower() not in HOPS}
        behind = http.client.HTTPConnection("127.0.0.1", self.behind, timeout=120)
        with contextlib.closing(behind):
            behind.request(self.command, self.path, self._body(), kept)
            answer = behind.getresponse()
            body = answer.read()
        if "json" in (answer.getheader("Content-Type") or ""):
            body = self._in_tls(body.decode()).encode()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in HOPS:
                self.send_header(name, self._in_tls(value) if name.lower() == "location" else value)
        if answer.status != 204:
            length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(body))
            self.send_header("Content-Length", length or "0")
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _forward

    def _body(self) -> bytes | None:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
        chunks = []
        while size := int(self.rfile.readline(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _in_tls(self, text: str) -> str:
        for plain, safe in self.addresses.items():
            text = text.replace(plain, safe)
        return text


class _File(BaseHTTPRequestHandler):
    """Serves a disk."""

    def do_GET(self) -> None:
        content = qcow2(1)
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *words: Any) -> None:
        pass


def _context(ca: trustme.CA, name: str = NAME, ended: datetime | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    began = ended and ended - timedelta(days=1)
    ca.issue_cert(name, not_before=began, not_after=ended).configure_cert(context)
    return context


@dataclass(frozen=True)
class Fronts:
    """Where TLS ends: the services, and Keystone and a file by certificates that are right or wrong."""

    keystone: Mapping[str, int]
    file: Mapping[str, int]
    notes: Path
    """The header Authorization of each request, or a hyphen."""


@contextlib.contextmanager
def fronts(layout: Layout, ca: trustme.CA, notes: Path) -> Iterator[Fronts]:
    """Serve in a process of its own: runs are forks of this one, which must have no threads then."""
    contexts = {
        "right": _context(ca),
        "expired": _context(ca, ended=datetime.now(UTC) - timedelta(days=1)),
        "wrong name": _context(ca, "other.example"),
    }
    servers = [_server(None, contexts["right"]) for _ in FRONTED]
    ports = dict(zip(FRONTED, (each.server_port for each in servers), strict=True))
    addresses = {layout.url(name): f"https://{NAME}:{port}" for name, port in ports.items()}
    for server, name in zip(servers, FRONTED, strict=True):
        server.RequestHandlerClass = functools.partial(_Front, layout.port(name), addresses, notes)
    wrong = {
        kind: _server(functools.partial(_Front, layout.port("keystone"), addresses, notes), context)
        for kind, context in contexts.items()
        if kind != "right"
    }
    files = {kind: _server(_File, context) for kind, context in contexts.items()}
    child = os.fork()
    if not child:
        _serve([*servers, *wrong.values(), *files.values()])
    keystones = {"right": ports["keystone"]} | {kind: each.server_port for kind, each in wrong.items()}
    try:
        yield Fronts(keystones, {kind: each.server_port for kind, each in files.items()}, notes)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _server(handler: Any, context: ssl.SSLContext) -> ThreadingHTTPServer:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    return server


def _serve(servers: Sequence[ThreadingHTTPServer]) -> None:
    """Serve until the end; does not return."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # handshakes that clients refuse
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    signal.pause()
    os._exit(0)


# --- trials -------------------------------------------------------------------------------


class Trials:
    """Runs of the command in one folder, each of which has to end as its row says."""

    def __init__(self, folder: Path, there: Fronts, layout: Layout) -> None:
        self.there, self.layout = there, layout
        self.run_in: Folder = make(folder, SPEC, {"OS_CLIENT_CONFIG_FILE": "admin.yaml", "OS_CLOUD": "admin"})
        self.folder = folder
        self.wrong = 0

    def entry(self, kind: str = "right", host: str = NAME, **settings: object) -> None:
        """Write the administrator's entry."""
        auth = {
            "auth_url": f"https://{host}:{self.there.keystone[kind]}/v3",
            **{"username": "admin", "password": PASSWORD, "project_name": "admin"},
            **{"user_domain_name": "Default", "project_domain_name": "Default"},
        }
        entry = {"region_name": REGION, "identity_api_version": 3, **settings, "auth": auth}
        (self.folder / "admin.yaml").write_text(yaml.safe_dump({"clouds": {"admin": entry}}))

    def image(self, kind: str) -> None:
        """Take the image from a server behind TLS."""
        spec = yaml.safe_load((self.folder / "spec.yaml").read_text())
        spec["images"][0]["source"] = f"https://{NAME}:{self.there.file[kind]}/disk.qcow2"
        (self.folder / "spec.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))

    def run(self, what: str, *words: str, code: int, says: str = "", **environment: str) -> None:
        """Run a command, compare how it ends, and print a line."""
        kept = self.run_in.environment
        self.run_in.environment = {**kept, **dict.fromkeys(CA_BUNDLES, ""), **environment}
        ended = self.run_in.run(*words)
        self.run_in.environment = kept
        faults = list(self._faults(ended, code, says))
        self.wrong += bool(faults)
        print(f"{'WRONG' if faults else 'ok':<6}{what}: {' '.join(words)} ends with {ended.code}", flush=True)
        for line in (*faults, *(ended.said.splitlines()[-4:] if faults or ended.code else ())):
            print(f"        {line[:230]}", flush=True)

    def _faults(self, ended: Ended, code: int, says: str) -> Iterator[str]:
        if ended.code != code:
            yield f"ends with {ended.code}, not {code}"
        if says not in ended.said:
            yield f"does not say {says!r}"
        if "Warning" in ended.said:
            yield "prints a warning of a library"
        yield from (f"says {word!r}" for word in (*FORBIDDEN, SECRET, PASSWORD + '"') if word in ended.said)


def try_all(layout: Layout) -> int:
    """Run every trial and return how many went wrong."""
    ca, trust = trustme.CA(), "set cacert of the clouds.yaml entry"
    with TemporaryDirectory(prefix="tls-") as name, fronts(layout, ca, Path(name) / "notes") as there:
        folder = Path(name) / "folder"
        trials = Trials(folder, there, layout)
        ca.cert_pem.write_to_path(str(folder / "ca.pem"))
        trustme.CA().cert_pem.write_to_path(str(folder / "other.pem"))
        (folder / "empty.pem").write_text("")
        (folder / ".netrc").write_text(f"machine {NAME} login me password {SECRET}\n")
        (folder / ".netrc").chmod(0o600)
        _refused(trials, trust)
        _accepted(trials)
        logins = set(there.notes.read_text().split("\n")) - {"", "-"}
        print(f"{'WRONG' if logins else 'ok':<6}{len(logins)} logins of .netrc were sent to OpenStack", flush=True)
        return trials.wrong + bool(logins)


def _refused(trials: Trials, trust: str) -> None:
    trials.entry()
    trials.run("no cacert", "plan", code=2, says=trust)
    trials.entry(cacert="other.pem")
    trials.run("another CA", "plan", code=2, says=trust)
    trials.entry(cacert="empty.pem")
    trials.run("a cacert without a certificate", "plan", code=2, says="no certificate in PEM")
    trials.entry(cacert="none.pem")
    trials.run("a cacert that does not exist", "plan", code=2, says="none.pem")
    for kind, says in (("expired", "has expired; renew it"), ("wrong name", "use a name that the certificate has")):
        trials.entry(kind, cacert="ca.pem")
        trials.run(kind, "apply", "--yes", code=2, says=says)
    trials.entry(host="127.0.0.1", cacert="ca.pem")
    trials.run("an address that the certificate lacks", "plan", code=2, says="not valid for '127.0.0.1'")


def _accepted(trials: Trials) -> None:
    absolute = str(trials.folder / "ca.pem")
    trials.entry(cacert="ca.pem")
    for kind, says in (("expired", "has expired; renew it"), ("wrong name", "use a name that")):
        trials.image(kind)
        bundle = {"SSL_CERT_FILE": absolute}
        trials.run(f"an image from a server: {kind}", "apply", "--yes", code=1, says=says, **bundle)
    trials.image("right")
    trials.run("an image by an unknown CA", "apply", "--yes", code=1, says="set REQUESTS_CA_BUNDLE")
    trials.run("a relative cacert, an image by a known CA", "apply", "--yes", code=0, SSL_CERT_FILE="ca.pem")
    trials.entry(cacert=absolute)
    trials.run("an absolute cacert", "plan", "--detailed-exitcode", code=0, SSL_CERT_FILE=absolute)
    user = {"OS_CLIENT_CONFIG_FILE": "clouds.yaml", "OS_CLOUD": "ocp-tenant"}
    trials.run("the entry that was written", "show", code=0, **user)
    trials.entry()
    trials.run("REQUESTS_CA_BUNDLE for both", "plan", "--detailed-exitcode", code=0, REQUESTS_CA_BUNDLE=absolute)
    trials.entry(verify=False)
    trials.run("verify: false", "plan", code=0, SSL_CERT_FILE=absolute)
    trials.entry(cacert="./ca.pem")
    trials.run("a relative cacert", "destroy", "--yes", code=0)
