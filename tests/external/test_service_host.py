"""named and haproxy with the files of a services machine, at the addresses that these name."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import trustme

from openstack_prep.exposures.endpoint import PlacedExposure
from openstack_prep.exposures.service_host import ServiceHost, files
from tests.external.conftest import Programs
from tests.unit.exposures.service_host.declared import API, APPS, GAME, MACS, OKD, PLAIN, TODAY

BOTH = [(OKD, [API, APPS], MACS), (PLAIN, [GAME], {})]


def write(folder: Path, settings: ServiceHost, placed: list[PlacedExposure], macs: dict[str, str]) -> Path:
    folder.mkdir(exist_ok=True)
    settings = replace(settings, zone_directory=str(folder))
    for name, text in files(settings, placed, macs=macs, today=TODAY).items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture(params=BOTH, ids=["okd", "plain"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write(tmp_path / "files", *request.param)


def test_named_accepts_all_files(programs: Programs, folder: Path) -> None:
    programs.run("named-checkconf", "-z", folder / "named.conf")
    for zone in folder.glob("*.zone"):
        origin = zone.read_text().split()[1]
        assert "OK" in programs.run("named-checkzone", "-i", "full", origin, zone)


def test_shellcheck_accepts_the_scripts(programs: Programs, folder: Path) -> None:
    programs.run("shellcheck", *sorted(folder.glob("*.sh")))


HAPROXY = """
cat /etc/passwd > /run/passwd; echo haproxy:x:0:0::/:/bin/false >> /run/passwd; mount --bind /run/passwd /etc/passwd
cat /etc/group > /run/group; echo haproxy:x:0: >> /run/group; mount --bind /run/group /etc/group
"""


def test_haproxy_accepts_the_configuration(programs: Programs, folder: Path) -> None:
    programs.inside(f"{HAPROXY} haproxy -c -f {folder}/haproxy.cfg", "haproxy")


def test_ansible_reads_inventory_and_variables(programs: Programs, tmp_path: Path) -> None:
    folder = write(tmp_path / "files", OKD, [API, APPS], MACS)
    checkout = tmp_path / "kubeinit"
    (checkout / "hosts/okd").mkdir(parents=True)
    (checkout / "playbooks").mkdir()
    (checkout / "hosts/okd/inventory").write_text((folder / "inventory").read_text())
    shown = {"interface": "{{ kubeinit_libvirt_external_service_interface }}", "mac": "{{ mac }}"}
    shown |= {"enabled": "{{ kubeinit_libvirt_external_service_interface_enabled }}"}
    play = {
        "hosts": "okd_master_nodes[0]",
        "gather_facts": False,
        "become": False,
        "connection": "local",
        "tasks": [
            {"copy": {"content": "{{ shown | to_json }}", "dest": str(tmp_path / "seen")}, "vars": {"shown": shown}}
        ],
    }
    (checkout / "playbooks/okd.yml").write_text(json.dumps([play]))
    for name in ("ansible-playbook", "ansible-inventory"):
        programs.path(name)
    listed = json.loads(programs.run("ansible-inventory", "-i", folder / "inventory", "--list"))
    groups = {group: listed[group]["hosts"] for group in listed["all"]["children"] if group != "ungrouped"}
    assert {group: len(hosts) for group, hosts in groups.items()} == {
        "okd_master_nodes": 3,
        "okd_worker_nodes": 2,
        "okd_service_nodes": 1,
        "okd_bootstrap_nodes": 1,
    }
    local = f"-e ansible_become=false -e ansible_python_interpreter={sys.executable}"
    programs.run("bash", "-c", f"cd {checkout} && bash {folder}/ansible-playbook.sh {local}")
    seen = json.loads((tmp_path / "seen").read_text())
    assert (seen["interface"]["ip"], seen["interface"]["netmask"]) == ("10.19.41.157", "255.255.255.0")
    assert (seen["enabled"], seen["mac"]) == (True, MACS["okd-master-01"])


# --- answers ------------------------------------------------------------------------------

NAMED = """
for address in 10.0.0.1 10.0.0.100 10.19.41.157 172.16.0.9 203.0.113.9; do ip address add "$address/32" dev lo; done
mkdir /run/named
named -g -c {folder}/named.conf > {folder}/named.log 2>&1 & named=$!
ask() {{ dig +time=2 +tries=1 +noall +answer -b "$1" "@$2" "${{@:3}}" | awk '{{print $4, $5}}' | paste -sd' '; }}
status() {{ dig +time=2 +tries=1 -b "$1" "@$2" "${{@:3}}" | sed -n 's/.*status: \\([A-Z]*\\).*/\\1/p'; }}
until_it dig +time=1 +tries=1 @10.0.0.100 ns.okdcluster.kubeinit.local
"""
QUESTIONS = ("api", "api-int", "console.apps", "okd-master-01", "registry", "ns")


def test_the_views_answer_differently(programs: Programs, tmp_path: Path) -> None:
    folder = write(tmp_path / "files", OKD, [API, APPS], MACS)
    clients = {"10.0.0.1": "10.0.0.100", "172.16.0.9": "10.19.41.157", "203.0.113.9": "10.19.41.157"}
    asked = "".join(
        f"echo {client} {name} $(ask {client} {server} {name}.okdcluster.kubeinit.local)\n"
        for client, server in clients.items()
        for name in QUESTIONS
    )
    asked += "".join(f"echo {client} ptr $(ask {client} {server} -x 10.0.0.1)\n" for client, server in clients.items())
    asked += "".join(
        f"echo {client} {what} $(status {client} {server} {question})\n"
        for client, server in clients.items()
        for what, question in (("transfer", "okdcluster.kubeinit.local axfr"), ("other", "www.example.org"))
    )
    printed = programs.inside(NAMED.format(folder=folder) + asked, "named", "dig")
    answers = {tuple(line.split()[:2]): " ".join(line.split()[2:]) for line in printed.splitlines()}
    node, office, stranger = clients
    for inside in (node, office):
        for name in QUESTIONS:
            expected = "10.0.0.1" if name == "okd-master-01" else "10.0.0.100"
            assert answers[inside, name] == f"A {expected}"
        assert answers[inside, "ptr"] == "PTR okd-master-01.okdcluster.kubeinit.local."
        assert answers[inside, "other"] == "SERVFAIL"  # asks the forwarder, which this namespace does not have
    for name in ("api", "console.apps", "registry", "ns"):
        assert answers[stranger, name] == "A 10.19.41.157"
    assert [answers[stranger, name] for name in ("api-int", "okd-master-01", "ptr")] == ["", "", ""]
    assert answers[stranger, "other"] == "REFUSED"
    assert answers[stranger, "transfer"] == answers[node, "transfer"]


def test_a_reload_serves_a_changed_zone_with_a_higher_serial(programs: Programs, tmp_path: Path) -> None:
    folder = write(tmp_path / "files", OKD, [API], MACS)
    before = {path.name: path.read_text() for path in folder.iterdir()}
    settings = replace(OKD, zone_directory=str(folder), workers=None)
    after = tmp_path / "after"
    after.mkdir()
    for name, text in files(settings, [API], macs=MACS, previous=before, today=TODAY).items():
        (after / name).write_text(text)
    domain = "okdcluster.kubeinit.local"
    script = f"""
soa() {{ dig +short -b $1 @10.19.41.157 {domain} soa | awk '{{print $3}}'; }}
echo inside $(soa 10.0.0.1) outside $(soa 203.0.113.9)
sleep 1.1  # named compares times of files
cp {after}/*.zone {folder}; kill -HUP $named
until_it bash -c 'dig +short -b 10.0.0.1 @10.0.0.100 {domain} soa | grep -q 2026112301'
echo inside $(soa 10.0.0.1) outside $(soa 203.0.113.9)
"""
    printed = programs.inside(NAMED.format(folder=folder) + script, "named", "dig").splitlines()
    assert printed == ["inside 2026112300 outside 2026112300", "inside 2026112301 outside 2026112300"]


# --- health checks ------------------------------------------------------------------------

SERVER = """
import http.server, ssl, sys
address, port, path, certificate, name = sys.argv[1:]
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = name.encode()
        self.send_response(200 if self.path in (path, "/who") else 500)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args): pass
server = http.server.ThreadingHTTPServer((address, int(port)), Handler)
if certificate != "-":
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


def test_requests_reach_healthy_machines_alone(programs: Programs, tmp_path: Path) -> None:
    folder = write(tmp_path / "files", OKD, [API, APPS], MACS)
    certificate = folder / "server.pem"
    trustme.CA().issue_cert("api.okdcluster.kubeinit.local").private_key_and_cert_chain_pem.write_to_path(certificate)
    (folder / "server.py").write_text(SERVER)
    addresses = ("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.6", "10.0.0.7", "10.0.0.100", "10.0.0.200", "10.19.41.157")
    servers = [
        ("10.0.0.1", 6443, "/not-ready", certificate, "starting"),
        ("10.0.0.2", 6443, "/readyz", certificate, "ready"),
        ("10.0.0.2", 22623, "/healthz", certificate, "machine-config"),
        ("10.0.0.6", 443, "/", "-", "no-router"),
        ("10.0.0.7", 443, "/", "-", "router"),
        ("10.0.0.7", 1936, "/healthz/ready", "-", "health"),
    ]
    script = HAPROXY + "".join(f"ip address add {address}/32 dev lo\n" for address in addresses)
    script += f'serve() {{ python3 {folder}/server.py "$@" 2>>{folder}/servers.log & }}\n'
    script += "".join(f"serve {' '.join(map(str, words))}\n" for words in servers)
    script += f"""
haproxy -f {folder}/haproxy.cfg > {folder}/haproxy.log 2>&1 &
get() {{ curl --silent --insecure --max-time 5 "$@" || echo refused; echo; }}
until_it grep -q 'Health check for server api/okd-master-01 failed' {folder}/haproxy.log
until_it grep -q 'Health check for server https/okd-worker-01 failed' {folder}/haproxy.log
sleep 21
for _ in 1 2 3 4; do get https://10.19.41.157:6443/who; done
for _ in 1 2; do get http://10.19.41.157:443/who; get http://10.19.41.157:8443/who; done
get https://10.0.0.100:22623/who
get https://10.19.41.157:22623/who
"""
    printed = programs.inside(script, "haproxy", "curl", "python3").split()
    assert printed == ["ready"] * 4 + ["router"] * 4 + ["machine-config", "refused"]
