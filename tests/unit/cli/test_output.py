"""What every command prints for programs: one document on standard output that has the shape of the schema."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import pytest
import requests_mock
import yaml

from openstack_prep.cli.main import build_parser, main
from openstack_prep.cli.parser import DATA
from openstack_prep.cli.reference.schema import documents, output_schema
from openstack_prep.cloud.lease import Description, Entry, digest
from tests.unit.conftest import ENDPOINTS, IDENTITY, default_group, failure, port_row
from tests.unit.openshift.tools.archives import put, release
from tests.unit.resources.credentials.test_application_credential import Keystone

NEUTRON, HEAT = ENDPOINTS["network"] + "/v2.0", ENDPOINTS["orchestration"]
OUTPUTS = {"node_names": ["k-0"], "node_addresses": ["10.1.0.10"], "login_user": "core"}
ID = "dev-x7k2p"
SPEC = """\
name: lab
clouds: {admin: lab}
flavors:
  - {name: master, vcpus: 4, ram: 16GiB, disk: 25}
"""
INSTALLATION = """\
name: lab
clouds: {admin: lab}
install_config:
  {path: ocp/install-config.yaml, release: "4.18", cluster_name: lab, base_domain: example.com, cloud: lab,
   pull_secret_file: pull-secret.json, machines: {flavor: master}}
"""
MESH = """\
name: lab
clouds: {admin: lab}
networks: [{name: nodes}]
subnets: [{name: one, network: nodes, cidr: 10.1.0.0/24}]
security_groups: [{name: nodes}]
stacks:
  - name: a
    template: "shipped:rke-cluster.yaml"
    parameters: &nodes {network: nodes, security_groups: [nodes], image: i, flavor: f, key_name: k}
  - {name: b, template: "shipped:rke-cluster.yaml", parameters: *nodes}
rke_clusters:
  - {name: a, stack: a, directory: a, cilium: {cluster_id: 1, mesh_address: 10.1.0.200}}
  - {name: b, stack: b, directory: b, cilium: {cluster_id: 2, mesh_address: 10.1.0.201}}
"""
CREDENTIAL = """\
name: lab
clouds: {admin: lab}
application_credentials: [{name: app, clouds_yaml: app.yaml, cloud: app}]
"""
NODES = "nodes:\n- {address: 192.0.2.1, user: me, role: [controlplane, etcd, worker]}\n"
EXPOSED = """\
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {externalIPs: [192.0.2.10], ports: [{port: 80}], selector: {app: web}}
---
apiVersion: v1
kind: Service
metadata: {name: head}
spec: {externalIPs: [192.0.2.11], clusterIP: None}
"""
EXPOSURES = """\
name: lab
clouds: {admin: lab}
exposures:
- {name: web, cluster: one, how: metallb, target: {service: web/web}, ports: [{port: 80}], address: 192.0.2.10}
exposed_clusters: [{name: one, directory: one}]
"""
CONFIG = """\
apiVersion: v1
metadata: {name: dev}
baseDomain: example.com
compute:
- {name: worker, platform: {openstack: {type: m}}, nonsense: 1}
platform: {openstack: {cloud: nobodys, externalNetwork: external}}
pullSecret: '{"auths":{"x":{"auth":"Zm9vOmJhcg=="}}}'
"""


class Printed(NamedTuple):
    code: int
    data: dict[str, Any]
    err: str
    kind: str
    """The definition of the schema that describes the document."""


Run = Callable[[str], Printed]
VALIDATORS = {
    name: jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": output_schema()["$defs"]})
    for name in documents()
}


@pytest.fixture
def folder(
    clouds_yaml: Path,
    empty_cloud: requests_mock.Mocker,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """A folder with the input of every command, and a cloud with a port, an address and a stack per cluster."""
    made, services = clouds_yaml.parent, empty_cloud
    Keystone(services)
    request.getfixturevalue("flavors")
    files = {
        "spec.yaml": SPEC,
        "installation.yaml": INSTALLATION,
        "mesh.yaml": MESH,
        "stack.yaml": 'name: lab\nclouds: {admin: lab}\nstacks: [{name: k, template: "shipped:rke-cluster.yaml"}]\n',
        "credential.yaml": CREDENTIAL,
        "install-config.yaml": CONFIG,
        "empty.yaml": "name: lab\nclouds: {admin: lab}\n",
        "cluster.yml": NODES,
        "services.yaml": EXPOSED,
        "exposures.yaml": EXPOSURES,
        "fleet.yaml": "name: all\ntargets: [{name: lab, spec: spec.yaml}]\n",
        "pull-secret.json": '{"auths": {"x": {"auth": "Zm9vOmJhcg=="}}}',
    }
    for name, text in files.items():
        (made / name).write_text(text)
    put(made / "mirror", release())
    fixed = [{"subnet_id": "s", "ip_address": "10.0.0.7"}]
    of_cluster = {"tags": [f"openshiftClusterID={ID}"], "fixed_ips": fixed, "admin_state_up": True, "status": "ACTIVE"}
    of_cluster["port_security_enabled"] = True
    ports = [port_row(id=end, name=f"{ID}-{end}", **of_cluster) for end in ("api-port", "master-0-0")]
    answers = {"ports": ports, "trunks": [], "extensions": []}
    for plural, listed in answers.items():
        services.get(f"{NEUTRON}/{plural}", json={plural: listed})
    services.get(f"{NEUTRON}/ports?name={ID}-api-port", json={"ports": ports[:1]})
    services.get(f"{NEUTRON}/ports?tags=openshiftClusterID%3Dother-x7k2p", json={"ports": []})
    services.get(re.compile(f"{NEUTRON}/ports/"), **failure(403))
    services.put(re.compile(f"{NEUTRON}/ports/"), **failure(403))
    services.get("http://cinder/v3/snapshots/detail", json={"snapshots": []})
    services.get("http://glance/v2/info/usage", **failure(404))
    services.get("http://swift/v1/AUTH_admin-project/", json=[])
    project = {"id": "admin-project", "name": "admin", "domain_id": "default", "enabled": True, "tags": []}
    services.get(f"{IDENTITY}/projects/admin-project", json={"project": project})
    outputs = [{"output_key": key, "output_value": value} for key, value in OUTPUTS.items()]
    stack = {"stack_name": "k", "id": "1", "project": "admin-project", "stack_status": "CREATE_COMPLETE"}
    services.get(f"{HEAT}/stacks", json={"stacks": [stack]})
    for inputs in ("template", "files", "environment"):
        services.get(f"{HEAT}/stacks/k/1/{inputs}", json={})
    services.get(f"{HEAT}/stacks/k/1/resources", json={"resources": []})
    services.get(f"{HEAT}/stacks/k/1", json={"stack": stack | {"outputs": outputs}})
    monkeypatch.setenv("OS_CLOUD", "lab")
    return made


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command with --format json; its whole standard output must be one document that the schema describes."""
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)

    def call(line: str) -> Printed:
        try:
            code = main(shlex.split(line))
        except SystemExit as error:  # as argparse exits
            code = int(str(error.code))
        out, err = capsys.readouterr()
        data = json.loads(out)
        kinds = [name for name, each in VALIDATORS.items() if each.is_valid(data)]
        assert len(kinds) == 1, (kinds, data)
        return Printed(code, data, err, kinds[0])

    return call


def commands() -> Iterator[str]:
    """Yield the commands that print data."""

    def within(parser: argparse.ArgumentParser, name: str) -> Iterator[str]:
        groups = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
        for group in groups:
            for word, each in group.choices.items():
                yield from within(each, f"{name} {word}".strip())
        forms = parser.get_default("forms") or DATA
        one_document = not parser.get_default("lines")  # those of a fleet: fleet/test_fleet_commands.py
        if not groups and "format" in parser.get_default("takes") and "json" in forms and one_document:
            yield name

    yield from within(build_parser(), "")


APPLIED = "apply --yes spec.yaml"
OF = f"--infra-id {ID}"
NAMES = "names --cluster-name a --base-domain example.com"
ADDRESSES = "--api 192.0.2.1 --ingress 192.0.2.2"
PAIRS = f"address-pairs sync --tag openshiftClusterID={ID} --address 10.0.0.5"
SUCCESSES = [
    ("plan", "spec.yaml", 0, "plan", ""),
    ("plan", "--detailed-exitcode --target flavor/master spec.yaml", 2, "plan", ""),
    ("plan", "--destroy spec.yaml", 0, "plan", APPLIED),
    ("plan", "empty.yaml", 0, "plan", APPLIED),
    ("apply", "--yes spec.yaml", 0, "report", ""),
    ("apply", "--yes empty.yaml", 0, "report", APPLIED),
    ("destroy", "--yes spec.yaml", 0, "report", APPLIED),
    ("show", "spec.yaml", 0, "resources", APPLIED),
    ("show", "credential.yaml", 0, "resources", ""),
    ("show", "empty.yaml", 0, "resources", ""),
    ("show", "stack.yaml --reveal login_user", 0, "output", ""),
    ("show", "stack.yaml --reveal stack/k.login_user", 0, "output", ""),
    ("show", "stack.yaml --reveal none", 2, "error", ""),
    ("audit", "spec.yaml", 1, "audit", ""),
    ("audit", "spec.yaml", 0, "audit", APPLIED),
    ("export", "", 0, "export", ""),
    ("topology", "--project", 0, "topology", ""),
    ("topology", "spec.yaml", 0, "topology", ""),
    ("topology", "--offline mesh.yaml", 0, "topology", ""),
    ("validate", "spec.yaml", 0, "validation", ""),
    ("validate", "none.yaml", 2, "validation", ""),
    ("fleet validate", "fleet.yaml", 0, "fleet_targets", ""),
    ("kubernetes checklist", "mesh.yaml", 0, "checklist", ""),
    ("kubernetes convert", "cluster.yml", 0, "conversion", ""),
    ("exposures show", "exposures.yaml", 1, "exposures", ""),
    ("exposures convert", "services.yaml --to metallb", 0, "exposures_conversion", ""),
    ("rke check", "cluster.yml", 0, "validated_files", ""),
    ("rke check", "cluster.yml spec.yaml none.yml", 2, "validated_files", ""),
    ("rke render", "--stack k", 0, "files", ""),
    ("rke render", "--stack k --output k", 0, "report", ""),
    ("rke mesh", "mesh.yaml", 1, "mesh", ""),
    ("address-pairs sync", f"{PAIRS.partition(' sync ')[2]} --dry-run", 0, "plan", ""),
    ("address-pairs sync", PAIRS.partition(" sync ")[2], 1, "report", ""),
    ("address-pairs sync", "--security-group none --address 10.0.0.5 --dry-run", 2, "plan", ""),
    ("support-bundle", "--offline --output bundle.yaml spec.yaml", 0, "support_bundle", ""),
    ("unlock", "spec.yaml", 0, "lease", ""),
    ("credential rotate", "--yes credential.yaml", 0, "report", "apply --yes credential.yaml"),
    ("tools", "./mirror --only oc --host x86_64 --system linux", 0, "tools", ""),
    ("names", f"{NAMES.partition(' ')[2]} {ADDRESSES}", 0, "names", ""),
    ("names", f"{NAMES.partition(' ')[2]} {ADDRESSES} --write hosts", 0, "names", ""),
    ("names", f"{NAMES.partition(' ')[2]} --remove hosts", 0, "names", f"{NAMES} {ADDRESSES} --write hosts"),
    ("import", "--release 4.18", 1, "import", ""),
    ("import", "--release 4.18 --output imported", 1, "import", ""),
    ("check", "--release 4.18", 1, "check", ""),
    ("check", "--offline --release 4.18 install-config.yaml install-config.yaml", 1, "checks", ""),
    ("pre-ipi", "--yes installation.yaml", 1, "preparation", ""),
    ("post-ipi", f"{OF} --yes --vip 10.0.0.5", 1, "report", ""),
    ("wait-for", f"api-port {OF}", 0, "port", ""),
    ("verify", OF, 1, "verification", ""),
    ("cleanup", f"{OF} --plan", 0, "plan", ""),
    ("cleanup", f"{OF} --yes", 0, "report", ""),
    ("cleanup", "--infra-id other-x7k2p --yes", 0, "report", ""),
    ("explain", "", 0, "codes", ""),
    ("explain", "quota.short", 0, "code", ""),
    ("ipi", "-- true", 2, "error", ""),
    ("approve", "my.plan", 2, "error", "plan --out my.plan spec.yaml"),  # not a terminal
]


@pytest.mark.parametrize(("command", "words", "code", "document", "before"), SUCCESSES)
def test_a_result_is_one_document(run: Run, command: str, words: str, code: int, document: str, before: str) -> None:
    if before:
        assert run(f"--format json {before}").code == 0
    printed = run(f"{command} --format json {words}")
    assert (printed.code, printed.kind) == (code, document)
    assert yaml.safe_load(yaml.safe_dump(printed.data)) == printed.data


def test_an_approval_is_one_document(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("plan --format json --out my.plan spec.yaml").code == 0
    plan_id = json.loads((folder / "my.plan").read_text())["digest"][:8]
    for stream in ("stdin", "stderr"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdin.readline", lambda: f"{plan_id}\n", raising=False)
    printed = run("approve --format json my.plan")
    assert (printed.code, printed.kind, printed.data["plan"]) == (0, "approval", plan_id)
    applied = [run("apply --format json --approved --plan my.plan") for _ in range(2)]
    assert [(each.code, each.kind) for each in applied] == [(0, "report"), (2, "error")]
    assert applied[1].data["errors"][0]["code"] == "plan.unapproved"
    assert run("approve --format json my.plan").code == 2  # nothing is left to do
    assert run("apply --format json --approved spec.yaml").code == 2  # no saved plan


def test_a_plan_prints_what_deletions_take_and_what_nobody_could_check(
    run: Run, services: requests_mock.Mocker, flavors: list[dict[str, Any]]
) -> None:
    run(f"--format json {APPLIED}")
    server = {"id": "s-1", "name": "web", "flavor": {"original_name": "master"}, "status": "ACTIVE"}
    nova = f"{ENDPOINTS['compute']}/servers/detail?flavor={flavors[0]['id']}"
    services.get(nova, json={"servers": [server]})
    services.get(f"{nova}&all_tenants=True", **failure(403))
    printed = run("plan --destroy --format json --allow-loss server/s-1 spec.yaml")
    assert (printed.code, printed.kind) == (0, "plan")
    (step,) = printed.data["steps"]
    assert [(each["address"], each["allowed"]) for each in step["losses"]] == [("server/s-1", True)]
    assert [each.keys() for each in step["not_checked"]] == [{"what", "why"}]


def test_an_enum_is_a_text_in_yaml_too(run: Run, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = run("audit --format json spec.yaml")
    assert main(["audit", "--format", "yaml", "spec.yaml"]) == printed.code == 1
    assert yaml.safe_load(capsys.readouterr().out) == printed.data


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "--output"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == output_schema()
    jsonschema.Draft202012Validator.check_schema(printed)
    assert [each["$ref"].rpartition("/")[2] for each in printed["oneOf"]] == list(documents())


def test_every_command_and_every_document_is_examined() -> None:
    assert {each[0] for each in SUCCESSES} == set(commands())
    assert {each[3] for each in SUCCESSES} == set(documents()) - {"fleet_target", "fleet", "approval"}


WORDS = {command: words for command, words, *_ in reversed(SUCCESSES)}
"""Valid words for each command."""
LOCAL = {
    "validate",
    "explain",
    "kubernetes checklist",
    "kubernetes convert",
    "rke check",
    "tools",
    "names",
    "import",
    "ipi",
}
LOCAL |= {"exposures convert", "fleet validate"}
"""Commands that read no cloud."""
OF_CLOUD = sorted(WORDS.keys() - LOCAL - {"check", "support-bundle", "approve"})
"""The first two report what is wrong with the cloud, and ``approve`` needs a terminal."""


def the_error(printed: Printed, exit_code: int, code: str) -> dict[str, Any]:
    """Return the only error of an error document, after a check of its codes."""
    assert (printed.code, printed.kind) == (exit_code, "error")
    (error,) = printed.data["errors"]
    assert (printed.data["exit_code"], error["code"], error["status"]) == (exit_code, code, "error")
    return dict(error)


@pytest.mark.parametrize("command", sorted(WORDS))
def test_a_command_line_with_a_mistake_is_one_document(run: Run, command: str) -> None:
    for line in (f"{command} --format json --bogus", f"--format=json {command} --bogus"):
        printed = run(line)
        assert the_error(printed, 2, "config.invalid")["fix"].startswith("openstack-prep ")
        assert len(printed.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("--format json fly", 2),
        ("plan --form json --jobs 0 spec.yaml", 2),
        ("plan --format yaml --format=json", 2),
        ("plan --bogus --detailed-exitcode --format json spec.yaml", 1),
        ("example --format json", 2),
        ("schema --format json", 2),
        ("completion bash --format json", 2),
    ],
)
def test_format_is_found_in_a_command_line_with_a_mistake(run: Run, line: str, code: int) -> None:
    the_error(run(line), code, "config.invalid")


def test_an_error_as_yaml_is_one_document(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--format", "yaml", "none.yaml"]) == 2
    assert VALIDATORS["error"].is_valid(yaml.safe_load(capsys.readouterr().out))


def test_format_of_another_program_is_not_ours(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["ipi", "--bogus", "--", "openshift-install", "--format", "json"])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("command", OF_CLOUD)
def test_the_same_reason_has_the_same_code(run: Run, services: requests_mock.Mocker, command: str) -> None:
    line = f"{command} --format json {WORDS[command]}"
    the_error(run(f"{line} --os-cloud nowhere"), 2, "config.invalid")
    login = f"{IDENTITY}/auth/tokens"
    services.post(login, **failure(401))
    exit_code = 1
    the_error(run(line), exit_code, "access.denied")
    services.post(login, exc=KeyboardInterrupt)
    error = the_error(run(line), 130, "run.interrupted")
    assert "SIGINT" in error["what"]
    services.post(login, exc=ZeroDivisionError)
    the_error(run(line), 1, "error.internal")


def test_what_apply_has_done_is_printed_though_the_checks_fail(run: Run, services: requests_mock.Mocker) -> None:
    services.get(f"{NEUTRON}/extensions", json={})
    printed = run("pre-ipi --format json --yes installation.yaml")
    assert (printed.code, printed.kind) == (2, "preparation")
    assert [each["status"] for each in printed.data["steps"]] == ["done"]
    assert [each["code"] for each in printed.data["findings"]] == ["config.invalid"]


CHANGES = [
    ("apply spec.yaml", "lab", ""),
    ("destroy spec.yaml", "lab", APPLIED),
    (f"post-ipi --vip 10.0.0.5 {OF}", ID, ""),
    (f"cleanup {OF}", ID, ""),
    ("credential rotate credential.yaml", "lab", "apply --yes credential.yaml"),
    ("pre-ipi installation.yaml", "lab", ""),
]


@pytest.mark.parametrize(("line", "spec", "before"), CHANGES)
def test_without_consent_it_is_two(run: Run, line: str, spec: str, before: str) -> None:
    if before:
        run(f"--format json {before}")
    the_error(run(f"--format json {line}"), 2, "config.invalid")


@pytest.mark.parametrize(("line", "spec", "before"), CHANGES)
def test_another_run_at_work_is_one(
    run: Run, services: requests_mock.Mocker, line: str, spec: str, before: str
) -> None:
    if before:
        run(f"--format json {before}")
    group = default_group(services)
    entry = Entry(spec=digest(spec), run="thei", since=1, place="else", pid=1, start="abc", who="ann@laptop")
    group["description"] = Description.read(group["description"]).holding(entry).write()
    error = the_error(run(f"--format json {line} --yes --lock-timeout 0"), 1, "lease.held")
    assert "ann@laptop" in error["what"]
    unlocked = run("unlock --format json --yes" + (f" --name {ID}" if spec == ID else " spec.yaml"))
    assert (unlocked.code, unlocked.kind) == (0, "lease")
    assert "ann@laptop" in unlocked.data["holder"]


def test_an_interrupted_apply_prints_its_report(run: Run, services: requests_mock.Mocker, folder: Path) -> None:
    (folder / "spec.yaml").write_text(f"{SPEC}  - {{name: worker, vcpus: 1, ram: 1GiB, disk: 1}}\n")

    signalled = threading.Event()

    def create(request: Any, _: Any) -> dict[str, Any]:
        if not signalled.is_set():  # a second signal would end this process
            signalled.set()
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.5)  # the main thread handles it
        return {"flavor": {"id": "f", "os-flavor-access:is_public": True} | request.json()["flavor"]}

    services.post(f"{ENDPOINTS['compute']}/flavors", json=create)
    printed = run("apply --format json --yes --jobs 1 spec.yaml")
    assert (printed.code, printed.kind) == (143, "report")
    assert [(each["status"], each["because_of"]) for each in printed.data["steps"]] == [
        ("done", None),
        ("skipped", "an interrupt"),
    ]
    assert "SIGTERM" in printed.err


def test_a_signal_ends_with_one_document(folder: Path) -> None:
    os.mkfifo(folder / "pipe.yaml")
    words = [sys.executable, "-m", "openstack_prep.cli.main", "validate", "--format", "json", "pipe.yaml"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with open(folder / "pipe.yaml", "w"):  # returns when the command opens it
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate()
    assert process.returncode == 143
    assert json.loads(out)["errors"][0]["code"] == "run.interrupted"
