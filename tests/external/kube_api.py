"""A kube-apiserver with its etcd on loopback: certificates, users, and requests as the administrator."""

from __future__ import annotations

import base64
import contextlib
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import requests
import trustme
import yaml

from tests.external.conftest import Programs

ADMIN, READER, NOBODY = "admin-token-of-the-test", "reader-token-of-the-test", "nobody-token-of-the-test"
TOKENS = f'{ADMIN},admin,1,"system:masters"\n{READER},reader,2\n{NOBODY},nobody,3\n'
START = 60.0


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


@dataclass
class KubeApi:
    """The two processes, in a folder that holds their data, certificates and logs."""

    folder: Path
    programs: Programs
    port: int = field(default_factory=free_port)
    etcd_ports: tuple[int, int] = field(default_factory=lambda: (free_port(), free_port()))
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    ca: trustme.CA = field(default_factory=trustme.CA)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def ca_pem(self) -> str:
        return self.ca.cert_pem.bytes().decode()

    # --- processes ----------------------------------------------------------------------------

    def prepare(self) -> None:
        """Write the certificates and the users."""
        server = self.ca.issue_cert("127.0.0.1", "localhost")
        server.private_key_pem.write_to_path(self.folder / "server.key")
        for each in server.cert_chain_pems:
            each.write_to_path(self.folder / "server.crt", append=True)
        self.ca.cert_pem.write_to_path(self.folder / "ca.crt")
        (self.folder / "tokens.csv").write_text(TOKENS)

    def start_etcd(self) -> None:
        client, peer = (f"http://127.0.0.1:{each}" for each in self.etcd_ports)
        urls = {"listen-client-urls": client, "advertise-client-urls": client, "listen-peer-urls": peer}
        urls |= {"initial-advertise-peer-urls": peer, "initial-cluster": f"default={peer}"}
        self._start("etcd", {"data-dir": self.folder / "etcd", "unsafe-no-fsync": "true", **urls})
        self._await(f"{client}/health")

    def start_api(self) -> None:
        self._start(
            "kube-apiserver",
            {
                "etcd-servers": f"http://127.0.0.1:{self.etcd_ports[0]}",
                "bind-address": "127.0.0.1",
                "advertise-address": "127.0.0.1",
                "secure-port": self.port,
                "tls-cert-file": self.folder / "server.crt",
                "tls-private-key-file": self.folder / "server.key",
                "client-ca-file": self.folder / "ca.crt",
                "token-auth-file": self.folder / "tokens.csv",
                "authorization-mode": "RBAC",
                "service-account-issuer": "https://127.0.0.1",
                "service-account-key-file": self.folder / "server.key",
                "service-account-signing-key-file": self.folder / "server.key",
                "service-cluster-ip-range": "10.96.0.0/16",
                "endpoint-reconciler-type": "none",
                "disable-admission-plugins": "ServiceAccount",
                "cert-dir": self.folder,
            },
        )
        self._await("/readyz")
        deadline = time.monotonic() + START
        while not any(each["metadata"]["name"] == "kubernetes" for each in self.services()):
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def _start(self, name: str, options: dict[str, Any]) -> None:
        words = [self.programs.path(name), *(f"--{key}={value}" for key, value in options.items())]
        log = (self.folder / f"{name}.log").open("ab")
        self.processes[name] = subprocess.Popen(
            words, stdout=log, stderr=log, cwd=self.folder, env=self.programs.environment
        )
        log.close()

    def _await(self, url: str) -> None:
        deadline = time.monotonic() + START
        while True:
            with contextlib.suppress(requests.RequestException):
                if self.request("GET", url).ok:
                    return
            dead = [name for name, each in self.processes.items() if each.poll() is not None]
            assert not dead, self.log(*dead)
            assert time.monotonic() < deadline, f"{url} is not ready"
            time.sleep(0.1)

    def log(self, *names: str) -> str:
        """Return the last lines of logs."""
        texts = ((self.folder / f"{name}.log").read_text(errors="replace") for name in names)
        return "\n".join("\n".join(each.splitlines()[-15:]) for each in texts)

    def stop(self, *names: str, number: int = signal.SIGTERM) -> None:
        """Stop programs; by default all, the API server first."""
        for name in names or tuple(reversed(self.processes)):
            process = self.processes.pop(name)
            process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)  # an API server waits for its watches
            process.kill()
            process.wait()

    def lose_data(self) -> None:
        """Start with an empty etcd."""
        self.stop()
        shutil.rmtree(self.folder / "etcd")
        self.start_etcd()
        self.start_api()

    # --- requests as the administrator --------------------------------------------------------

    def request(self, method: str, path: str, body: Any = None, *, token: str = ADMIN, **options: Any) -> Any:
        """Send a request; ``path`` is one of the API server, or a URL."""
        own = not path.startswith("http")  # etcd refuses tokens
        url = self.url + path if own else path
        headers = ({"Authorization": f"Bearer {token}"} if own else {}) | options.pop("headers", {})
        ca = str(self.folder / "ca.crt")
        return requests.request(method, url, json=body, headers=headers, verify=ca, timeout=10, **options)

    def sent(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """Send a request and insist that it succeeds."""
        answer = self.request(method, path, body, **options)
        assert answer.ok, answer.text
        return answer.json()

    def services(self) -> list[Any]:
        answer = self.request("GET", "/api/v1/services")
        return list(answer.json()["items"]) if answer.ok else []

    def create(self, name: str, address: str = "", *, external: str = "") -> None:
        """Create a Service: of type LoadBalancer with an address in its status, or with externalIPs."""
        spec: dict[str, Any] = {"ports": [{"port": 80}], "type": "LoadBalancer" if address else "ClusterIP"}
        spec |= {"externalIPs": [external]} if external else {}
        body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}
        self.sent("POST", "/api/v1/namespaces/default/services", body)
        if address:
            self.assign(name, address)

    def assign(self, name: str, address: str) -> None:
        """Do what a load balancer does: write the address into the status of a Service."""
        status = {"status": {"loadBalancer": {"ingress": [{"ip": address}]}}}
        merge = {"Content-Type": "application/merge-patch+json"}
        self.sent("PATCH", f"/api/v1/namespaces/default/services/{name}/status", status, headers=merge)

    def delete(self, name: str) -> None:
        self.sent("DELETE", f"/api/v1/namespaces/default/services/{name}")

    # --- kubeconfigs --------------------------------------------------------------------------

    def kubeconfig(self, path: Path, user: dict[str, Any], **cluster: Any) -> Path:
        """Write a kubeconfig with one context, named test."""
        data = base64.b64encode(self.ca_pem.encode()).decode()
        there = {"server": self.url, "certificate-authority-data": data} | cluster
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "clusters": [{"name": "test", "cluster": there}],
            "users": [{"name": "test", "user": user}],
        }
        path.touch(0o600)
        path.write_text(yaml.safe_dump(config))
        return path

    def certificate(self, name: str, group: str, **options: Any) -> dict[str, str]:
        """Return the fields of a user with a client certificate."""
        made = self.ca.issue_cert(f"{name}.test", common_name=name, organization_name=group, **options)
        chain = b"".join(each.bytes() for each in made.cert_chain_pems)
        return {
            "client-certificate-data": base64.b64encode(chain).decode(),
            "client-key-data": base64.b64encode(made.private_key_pem.bytes()).decode(),
        }

    def expired(self) -> dict[str, str]:
        """Return the fields of a user whose certificate has expired."""
        now = datetime.now(UTC)
        return self.certificate("old", "system:masters", not_before=now - timedelta(9), not_after=now - timedelta(1))


@contextlib.contextmanager
def running(folder: Path, programs: Programs) -> Iterator[KubeApi]:
    made = KubeApi(folder, programs)
    made.prepare()
    try:
        made.start_etcd()
        made.start_api()
        yield made
    finally:
        made.stop()
