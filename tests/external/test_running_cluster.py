"""Services of a running cluster: a real kube-apiserver and etcd, without nodes, beside a real Neutron.

etcd is in Debian's package etcd-server, kube-apiserver in the server archive of each Kubernetes release.
"""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.kubernetes.api import RunningCluster
from tests.devcloud.faults import Fault
from tests.devcloud.pytest_devcloud import Devcloud, devcloud, module_tenant, pytest_runtest_teardown, tenant
from tests.devcloud.tenant import Tenant
from tests.external import kube_api
from tests.external.conftest import Programs
from tests.external.kube_api import ADMIN, NOBODY, READER, KubeApi
from tests.functional.conftest import Prep

__all__ = ["devcloud", "module_tenant", "pytest_runtest_teardown", "tenant"]

SYNC = ("address-pairs", "sync", "--security-group", "rke", "--within", "10.1.0.200-10.1.0.211")
SECRETS = (ADMIN, READER, NOBODY, "PRIVATE KEY", "marker-of-a-secret")
PAGE = Path(__file__).parents[2] / "docs" / "load-balancers.md"


@pytest.fixture(scope="session")
def api(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeApi]:
    """An API server with the role that the documentation names, given to the user reader."""
    with kube_api.running(tmp_path_factory.mktemp("kube"), programs) as made:
        (role,) = re.findall(r"^```yaml\n(apiVersion: rbac.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
        loaded = yaml.safe_load(role)
        made.sent("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", loaded)
        group = "rbac.authorization.k8s.io"
        given = {"apiGroup": group, "kind": "ClusterRole", "name": loaded["metadata"]["name"]}
        body = {"metadata": {"name": "reader"}, "roleRef": given}
        body |= {"subjects": [{"apiGroup": group, "kind": "User", "name": "reader"}]}
        made.sent("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", body)
        yield made


@pytest.fixture
def clean(api: KubeApi) -> KubeApi:
    for each in api.services():
        if each["metadata"]["name"] != "kubernetes":
            api.delete(each["metadata"]["name"])
    return api


@pytest.fixture
def nodes(tenant: Tenant) -> Any:
    """Two nodes' ports."""
    neutron: Any = tenant.connect().network
    network = neutron.create_network(name="nodes")
    pools = [{"start": "10.1.0.10", "end": "10.1.0.199"}]
    neutron.create_subnet(name="nodes", network_id=network.id, cidr="10.1.0.0/24", ip_version=4, allocation_pools=pools)
    group = neutron.create_security_group(name="rke")
    for name in ("one", "two"):
        neutron.create_port(name=name, network_id=network.id, security_group_ids=[group.id])
    return neutron


@pytest.fixture
def prep(tenant: Tenant, tmp_path: Path) -> Prep:
    return Prep(tmp_path, {"OS_CLIENT_CONFIG_FILE": str(tenant.clouds_file), "OS_CLOUD": tenant.cloud})


class Watcher:
    """A running ``address-pairs sync --watch``; its lines are read from a file."""

    def __init__(self, prep: Prep, kubeconfig: Path, name: str, *words: str) -> None:
        self.log = prep.folder / f"{name}.log"
        with self.log.open("wb") as out:
            options = {"stdout": out, "stderr": subprocess.STDOUT}
            self.process = prep.start(*SYNC, "--kubeconfig", str(kubeconfig), "--watch", *words, **options)

    @property
    def lines(self) -> list[str]:
        """The lines, without the times."""
        return [line.partition(" ")[2] for line in self.log.read_text().splitlines()]

    def await_line(self, text: str, seconds: float = 60) -> None:
        until(lambda: any(text in line for line in self.lines), seconds, lambda: "\n".join(self.lines))

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Stop it, and insist that it ends cleanly."""
        self.process.send_signal(number)
        assert self.process.wait(30) == 0, "\n".join(self.lines)
        assert self.lines[-1] == f"stopped by {signal.Signals(number).name}"


@pytest.fixture
def watch(prep: Prep, clean: KubeApi) -> Iterator[Callable[..., Watcher]]:
    started: list[Watcher] = []

    def start(name: str = "watcher", *words: str) -> Watcher:
        kubeconfig = clean.kubeconfig(prep.folder / f"{name}.kubeconfig", {"token": READER})
        started.append(Watcher(prep, kubeconfig, name, *words))
        return started[-1]

    yield start
    for each in started:
        with contextlib.suppress(ProcessLookupError):
            each.process.kill()
        each.process.wait()
        assert not [secret for secret in SECRETS if secret in each.log.read_text()]


def until(condition: Callable[[], object], seconds: float = 60, shown: Callable[[], object] = str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, shown()
        time.sleep(0.2)


def pairs(neutron: Any) -> list[set[str]]:
    return [{each["ip_address"] for each in port.allowed_address_pairs} for port in neutron.ports()]


def have(neutron: Any, *addresses: str) -> Callable[[], bool]:
    return lambda: pairs(neutron) == [set(addresses)] * 2


def test_each_change_reaches_the_ports(clean: KubeApi, nodes: Any, watch: Callable[..., Watcher]) -> None:
    """Services that come, go, and come again within a second; a restarted API server; a foreign pair of one address."""
    clean.create("front", "10.1.0.201")
    watcher = watch()
    watcher.await_line("+ 10.1.0.201 of Service default/front")
    until(have(nodes, "10.1.0.201"))
    clean.create("old", external="10.1.0.202")
    watcher.await_line("+ 10.1.0.202 of Service default/old")
    clean.create("gateway", external="10.1.0.1")
    watcher.await_line("10.1.0.1 of Service default/gateway is outside all pools, so it is skipped")
    until(have(nodes, "10.1.0.201", "10.1.0.202"))

    clean.delete("front")
    clean.create("front", "10.1.0.205")
    watcher.await_line("- 10.1.0.201 of Service default/front")
    watcher.await_line("+ 10.1.0.205 of Service default/front")
    until(have(nodes, "10.1.0.202", "10.1.0.205"))

    clean.stop("kube-apiserver", number=signal.SIGKILL)
    watcher.await_line("connection refused")
    clean.start_api()
    clean.delete("old")
    watcher.await_line("recovered", 90)
    until(have(nodes, "10.1.0.205"))

    foreign = {"ip_address": "10.1.0.209"}
    port = nodes.find_port("one")
    nodes.update_port(port, allowed_address_pairs=[*port.allowed_address_pairs, foreign])
    clean.create("late", external="10.1.0.209")
    watcher.await_line("+ 10.1.0.209 of Service default/late")
    clean.delete("late")
    watcher.await_line("- 10.1.0.209 of Service default/late")
    until(
        lambda: (
            pairs(nodes)
            in ([{"10.1.0.205", "10.1.0.209"}, {"10.1.0.205"}], [{"10.1.0.205"}, {"10.1.0.205", "10.1.0.209"}])
        )
    )
    watcher.stop()
    assert [line for line in watcher.lines if line.startswith("!")] != []


def test_two_watchers_and_one_killed_in_mid_change_converge(
    clean: KubeApi, nodes: Any, watch: Callable[..., Watcher], prep: Prep
) -> None:
    one, two = watch("one"), watch("two")
    for each in (one, two):
        each.await_line("following the Services")
    addresses = [f"10.1.0.{each}" for each in range(200, 209, 2)]
    for number, address in enumerate(addresses):
        clean.create(f"s{number}", address)
    until(have(nodes, *addresses))
    clean.create("more", external="10.1.0.211")
    until(lambda: any("10.1.0.211" in each for each in pairs(nodes)))
    one.process.kill()
    clean.delete("s0")
    two.await_line("- 10.1.0.200 of Service default/s0", 150)
    until(have(nodes, *addresses[1:], "10.1.0.211"))
    two.stop(signal.SIGINT)
    once = prep.run(*SYNC, "--kubeconfig", "one.kubeconfig")
    assert "nothing to do" in once.stdout
    assert not any(each.endswith(".key") for each in map(str, prep.folder.iterdir()))


@pytest.mark.parametrize("signals", [1, 2])
def test_a_signal_in_mid_change(
    clean: KubeApi, nodes: Any, watch: Callable[..., Watcher], devcloud: Devcloud, signals: int
) -> None:
    """The first one lets the ports finish; a second one does not wait, and the next run continues."""
    clean.create("front", "10.1.0.201")
    watcher = watch()
    until(have(nodes, "10.1.0.201"))
    mark = devcloud.mark()
    with devcloud.faults(Fault("neutron", method="PUT", path_regex="/ports/[^/]+$", delay=3, times=4)):
        clean.create("more", external="10.1.0.202")
        until(lambda: any("/ports/" in each.path and "/tags/" in each.path for each in devcloud.requests_since(mark)))
        time.sleep(1)  # by then the first port is being changed
        if signals == 1:
            watcher.stop()
            assert "+ 10.1.0.202 of Service default/more" in watcher.lines
        else:
            for _ in range(2):
                watcher.process.send_signal(signal.SIGTERM)
                time.sleep(0.3)
            assert watcher.process.wait(5) == 128 + signal.SIGTERM
            assert "exited immediately" in watcher.log.read_text()
    if signals == 2:
        watch("next").await_line("+ 10.1.0.202 of Service default/more", 150)
    until(have(nodes, "10.1.0.201", "10.1.0.202"))


def test_a_version_that_etcd_no_longer_has_is_a_change(clean: KubeApi, tmp_path: Path) -> None:
    """410 Gone: the list is read again."""
    with RunningCluster(clean.kubeconfig(tmp_path / "kubeconfig", {"token": READER})).open() as server:
        old = server.services().version
        for number in range(3):
            clean.create(f"s{number}", external=f"10.1.0.20{number}")
        new = server.services().version
        etcd = f"http://127.0.0.1:{clean.etcd_ports[0]}/v3/kv/compaction"
        clean.sent("POST", etcd, {"revision": new, "physical": True})
        clean.stop("kube-apiserver")  # its cache still has the old versions
        clean.start_api()
        began = time.monotonic()
        server.wait_for_change(old, 30)
        assert time.monotonic() - began < 20
        began = time.monotonic()
        server.wait_for_change(server.services().version, 6)
        assert time.monotonic() - began > 5


def test_a_long_list_is_read_in_pages(clean: KubeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openstack_prep.kubernetes.api.api_server.PAGE", 3)
    for number in range(10):
        clean.create(f"s{number}", external=f"10.1.0.20{number}")
    with RunningCluster(clean.kubeconfig(tmp_path / "kubeconfig", {"token": READER})).open() as server:
        found = json.loads(server.services().text)
    assert {each["metadata"]["name"] for each in found["items"]} == {"kubernetes", *(f"s{each}" for each in range(10))}


def test_convert_reads_a_cluster_like_a_file(clean: KubeApi, prep: Prep) -> None:
    clean.create("old", external="10.1.0.202")
    clean.kubeconfig(prep.folder / "kubeconfig", clean.certificate("admin", "system:masters"))
    words = ("exposures", "convert", "--to", "metallb", "--interface", "eth0")
    (prep.folder / "services.json").write_text(clean.request("GET", "/api/v1/services").text)
    from_cluster = prep.run(*words, "--kubeconfig", "kubeconfig", "--context", "test").stdout
    assert from_cluster == prep.run(*words, "services.json").stdout
    assert "default/old  10.1.0.202 = 10.1.0.202" in from_cluster


EXPOSURES = """\
name: shop
exposed_clusters: [{name: one, directory: one}]
exposures:
  - name: shop
    cluster: one
    how: metallb
    target: {service: default/frontend, selector: {app: frontend}}
    ports: [{port: 443, target: 8443}]
    address: 10.1.0.201
"""


def test_the_service_of_an_exposure(clean: KubeApi, prep: Prep) -> None:
    """What the fixes say is done by hand: the rendered file is created, and the address given as MetalLB does."""
    prep.spec.write_text(EXPOSURES)
    prep.apply()
    clean.kubeconfig(prep.folder / "kubeconfig", {"token": READER})

    def hop(code: int) -> tuple[str, str]:
        words = ("exposures", "show", prep.spec.name, "--kubeconfig", "kubeconfig", "--format", "json")
        *_, service = json.loads(prep.run(*words, code=code).stdout)["exposures"][0]["hops"]
        assert service["where"] == "Service"
        return service.get("code", ""), service.get("fix", "")

    kubectl = "kubectl --kubeconfig kubeconfig"
    assert hop(1) == ("kubernetes-service.missing", f"{kubectl} apply -f one/services.yaml")
    for each in yaml.safe_load_all((prep.folder / "one" / "services.yaml").read_text()):
        clean.sent("POST", "/api/v1/namespaces/default/services", each)
    assert hop(1) == ("kubernetes-service.no-address", f"{kubectl} -n default describe service frontend")
    clean.assign("frontend", "10.1.0.201")
    assert hop(0) == ("", "")


def test_bad_access_is_one_clear_error_without_secrets(clean: KubeApi, nodes: Any, prep: Prep) -> None:
    def said(user: dict[str, Any], code: int, *words: str, **cluster: Any) -> str:
        clean.kubeconfig(prep.folder / "kubeconfig", user, **cluster)
        done = prep.run(*SYNC, "--kubeconfig", "kubeconfig", *words, code=code)
        assert not [secret for secret in SECRETS if secret in done.stdout + done.stderr]
        return done.stderr

    wrong = {"token": "marker-of-a-secret"}
    assert "401, it does not accept these credentials" in said(wrong, 1)
    assert "401" in said(wrong, 1, "--debug")
    assert 'User "nobody" cannot list resource "services"' in said({"token": NOBODY}, 1)
    assert "allow this user to list services in all namespaces" in said({"token": NOBODY}, 1, "--debug")
    assert "client-certificate expired on" in said(clean.expired(), 2)
    other = {"certificate-authority-data": "", "certificate-authority": "/etc/ssl/certs/ca-certificates.crt"}
    assert "its certificate is not accepted" in said({"token": READER}, 1, **other)
    assert "its certificate is not accepted: Hostname mismatch" in said(
        {"token": READER}, 1, **{"tls-server-name": "elsewhere"}
    )
    closed = f"https://127.0.0.1:{kube_api.free_port()}"
    assert "connection refused" in said({"token": READER}, 1, server=closed)
    assert "TLS fails" in said({"token": READER}, 1, server=f"https://127.0.0.1:{clean.etcd_ports[0]}")
    assert "context 'x' does not exist; choose one of test with --context" in said({}, 2, "--context", "x")
    assert "exec plugin './none' cannot be run" in said(
        {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./none"}}, 2
    )
    done = prep.run(*SYNC, "--kubeconfig", "kubeconfig", "--debug", code=2)
    assert "Traceback" in done.stderr
    assert pairs(nodes) == [set(), set()]
