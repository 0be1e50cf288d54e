"""Each code has a test that carries out its printed fix, or a reason why no test can; and the fixes in files."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest
import yaml

from openstack_prep.cli.main import main
from openstack_prep.reports.codes import read_codes

TESTS = Path(__file__).parents[1]
LISTED: Mapping[str, Mapping[str, str]] = yaml.safe_load((Path(__file__).with_name("fixes.yaml")).read_text())


# --- the list -------------------------------------------------------------------------------


def test_each_code_is_listed_once() -> None:
    listed = [*LISTED["tested"], *LISTED["untested"]]
    assert sorted(listed) == sorted(read_codes())


@cache
def functions(path: Path) -> frozenset[str]:
    return frozenset(node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef))


def test_listed_tests_exist() -> None:
    places = {code: place.partition("::") for code, place in LISTED["tested"].items()}
    assert [code for code, (path, _, name) in places.items() if name not in functions(TESTS / path)] == []


def test_each_reason_is_used_and_known() -> None:
    assert {*LISTED["untested"].values()} == LISTED["reasons"].keys()


# --- edits of a file ------------------------------------------------------------------------

SPEC = """\
name: lab
project: {name: lab}
networks: [{name: n, mtuu: 1400}]
subnets: [{name: s, cidr: 10.0.0.0/24, netwrok: n, enable_dhcp: "yes"}]
quota: {cores: 5}
quota: {cores: 5}
"""
CLUSTER = """\
kubernetes_version: v1.20.15-rancher2-2
nodes:
- {address: 192.0.2.1, user: me, roles: [etcd, controlplane, worker]}
ssh_agent_auth: "true"
services:
  kubeapi: {}
enable_cri_dockerd: true
foo: {a: 1}
"""
RKE2 = """\
tls-sans: [a.example.com]
cni: cilum
write-kubeconfig-mode: "0644"
cluster-init: true
"""


def errors(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, str]]:
    capsys.readouterr()
    main([*words, "--format", "json"])
    found: list[dict[str, str]] = json.loads(capsys.readouterr().out)["errors"]
    return found


def edit(path: Path, error: Mapping[str, str]) -> int:
    """Change a file as one error says, at its place alone; return the line."""
    place, _, field = error["where"].partition(": ")
    number = int(place.rpartition(":")[2])
    lines = path.read_text().splitlines()
    key, fix, line = field.rpartition(".")[2], error["fix"], lines[number - 1]
    value = re.match("'(.*)' is|.* does not support '(.*)'", error["what"])
    meant = re.fullmatch(r"did you mean (.*)\?", fix)
    if meant and error["what"] == "unknown key":
        line = re.sub(rf"\b{re.escape(key)}:", f"{meant[1]}:", line)
    elif meant and value:
        line = line.replace(value[1] or value[2], meant[1])
    elif "quotes" in fix:
        line = re.sub(r'"(\w+)"', lambda found: {"yes": "true"}.get(found[1], found[1]), line)
    elif fix.startswith("remove "):
        line = ""
    else:
        raise AssertionError(f"{error} cannot be carried out")
    path.write_text("\n".join(each for each in [*lines[: number - 1], line, *lines[number:]] if each) + "\n")
    return number


@pytest.mark.parametrize(
    ("file", "text", "words", "codes"),
    [
        ("spec.yaml", SPEC, "validate", {"spec.duplicate-key", "spec.unknown-key", "spec.invalid-value"}),
        ("cluster.yml", CLUSTER, "rke check", {"spec.unknown-key", "spec.invalid-value", "spec.missing-key"}),
        ("config.yaml", RKE2, "rke check --rke2 server", {"spec.unknown-key", "spec.invalid-value"}),
    ],
)
def test_a_file_is_right_after_its_fixes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str, text: str, words: str, codes: set[str]
) -> None:
    """One after the other, as they are printed; no fix brings an error that was not there."""
    path = tmp_path / file
    path.write_text(text)
    found = errors(capsys, *words.split(), str(path))
    assert {each["code"] for each in found} == codes
    while found:
        editable = next(each for each in reversed(found) if not re.match("add it|give at least", each["fix"]))
        edit(path, editable)
        left = errors(capsys, *words.split(), str(path))
        assert len(left) < len(found), editable
        assert {each["what"] for each in left} <= {each["what"] for each in found}
        found = left
    kept = {line.partition(":")[0] for line in text.splitlines()}
    assert len(kept) > 2


# --- the environment of a shell -------------------------------------------------------------


@pytest.mark.parametrize(
    ("variables", "code"),
    [
        ({"OS_CLOUD": "other"}, "environment.other-cloud"),
        ({"OS_CLIENT_CONFIG_FILE": "/nowhere/clouds.yaml"}, "environment.no-clouds-yaml"),
        ({"OS_USERNAME": "me", "OS_PROJECT_NAME": "p"}, "environment.ignored"),
    ],
)
def test_a_shell_is_right_after_the_fix(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variables: dict[str, str], code: str
) -> None:
    from openstack_prep.openshift.check.entry import _environment

    monkeypatch.chdir(tmp_path)
    for name in [each for each in os.environ if each.startswith("OS_")]:
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    (finding,) = _environment("it's")
    assert finding.code == code
    script = f"{finding.fix}\nenv -0"
    after = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout
    now = dict(each.split("=", 1) for each in after.split("\0") if "=" in each)
    for name in variables:
        if name in now:
            monkeypatch.setenv(name, now[name])
        else:
            monkeypatch.delenv(name)
    assert list(_environment("it's")) == []
    others = {name for name in os.environ if not name.startswith("OS_")} - {"_", "SHLVL", "PWD", "OLDPWD"}
    assert others <= now.keys()


# --- what a fix looks like ------------------------------------------------------------------

COMMANDS = ("openstack ", "openstack-prep ", "kubectl ", "oc ", "curl ", "openssl ", "podman ", "unset ", "export ")
PACKAGE = TESTS.parent / "openstack_prep"
PLACEHOLDER = re.compile(r"\b(?:[A-Z]+_OF_\w*|[A-Z][A-Z-]+[A-Z]|ID)\b")
WORDS = frozenset(
    """API BIND CIDR CNI CSI DHCP DNS FIPS HTTP JSON KUBECONFIG MAC MTU OCPBUGS OIDC OVN RHCOS RKE SVG TCP TLS TTL UTC
    VLAN YAML
    ACTIVE CREATE DOWN ERROR SHUTOFF UPDATE VRRP
    CLUSTER NODE PODS""".split()  # noqa: SIM905 - a list of words
)
"""Words in capitals that are no placeholders: abbreviations, states, and headings of columns."""
HELP = {
    "cli/reference/schema.py",
    "exposures/commands/options.py",
    "hook_commands/options.py",
}
"""Modules in which commands stand in help texts alone."""
OPEN: Mapping[tuple[str, str], str] = {
    ("cli/parser.py", "COMMAND"): "the reader chooses the command to read about",
    ("cli/parser.py", "OUTPUT"): "the reader chooses an output of a stack",
    ("cloud/lease.py", "SPEC"): "the file that the command was given; the library has none",
    (
        "resources/credentials/application_credential.py",
        "SPEC",
    ): "the file that the command was given; the library has none",
    ("exposures/convert/conversion.py", "ADDRESS"): "each address of the list that the step refers to",
    ("exposures/convert/conversion.py", "EXTERNAL-IP"): "a column of kubectl",
    ("exposures/convert/conversion.py", "INTERFACE"): "OpenStack does not know the interfaces of machines",
    ("exposures/register/pool_file.py", "NAME"): "what a line of a file consists of",
    ("exposures/register/pool_file.py", "SPEC"): "what a line of a file consists of",
    ("kubernetes/convert/conversion.py", "NAME"): "nodes that do not exist yet, and what only the user knows",
    ("kubernetes/mesh/examination.py", "GROUP"): "ports without port security have none; the user chooses it",
    ("kubernetes/rke2_rules.py", "NAME"): "nodes that do not exist yet",
    ("mcp/tools.py", "FILE"): "the plan that the assistant has saved",
    ("openshift/check/mirror.py", "IMAGESET"): "the user's file for oc mirror",
    ("openshift/check/mirror.py", "WORKSPACE"): "the user's folder of oc mirror",
    ("openshift/check/network/own_subnet.py", "ADDRESS"): "the user chooses a DNS server",
    ("openshift/check/network/floating_ips.py", "ADDRESS"): "the address that the command before it returns",
    ("openshift/check/network/ovn.py", "ID"): "the user knows which machines have the address",
    ("openshift/verify/access_path.py", "ADDRESS"): "nobody said which floating IP",
    ("openshift/check/preflight.py", "ADDR"): "the load balancers of such a cluster are the user's",
    ("openshift/verify/outside.py", "ADDRESS"): "no floating IP serves the port",
    ("reports/html_content.py", "KIND"): "the reader chooses a resource of the plan",
    ("reports/html_content.py", "NAME"): "the reader chooses a resource of the plan",
}
"""Placeholders in printed commands whose values this package cannot know, with the reason."""


def commands_with_placeholders(path: Path) -> set[str]:
    """Return the placeholders in the functions and statements of a module that make a command."""
    found = set[str]()
    for part in parts(ast.parse(path.read_text())):
        texts = [each.value for each in part if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        named = any(isinstance(each, ast.Attribute) and each.attr in ("openstack", "client", "repair") for each in part)
        if named or any(re.search(r"\b(openstack|openstack-prep|kubectl|oc|curl) [a-z]", text) for text in texts):
            found |= {word for text in texts for word in PLACEHOLDER.findall(text)}
    return found - WORDS


def parts(tree: ast.Module | ast.ClassDef) -> Iterator[list[ast.AST]]:
    """Yield the nodes of each function, and of each other statement, without docstrings."""
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef):
            yield from parts(statement)
        elif not is_text(statement):
            body = statement.body if isinstance(statement, ast.FunctionDef) else [statement]
            yield [node for each in body if not is_text(each) for node in ast.walk(each)]


def is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def test_no_command_has_a_placeholder_whose_value_is_known() -> None:
    found = {
        (name, word)
        for path in PACKAGE.rglob("*.py")
        if (name := path.relative_to(PACKAGE).as_posix()) not in HELP
        for word in commands_with_placeholders(path)
    }
    assert found == OPEN.keys()


def test_commands_of_codes_are_written_for_a_shell() -> None:
    """What explain says is general, with placeholders; each can be split into words."""
    for code, entry in read_codes().items():
        for part in re.split(r"; |, or ", entry["fix"]):
            if part.startswith(COMMANDS):
                assert shlex.split(part.rstrip(".").replace("'", "")), code
