"""Kubeconfigs: what is read, and one clear error for each that cannot work, without any secret."""

from __future__ import annotations

import base64
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from openstack_prep.base.errors import PrepError, SpecError
from openstack_prep.base.secret import Secret
from openstack_prep.kubernetes.api import kubeconfig
from openstack_prep.kubernetes.api.api_server import context_of
from openstack_prep.kubernetes.api.kubeconfig import Access, read
from tests.unit.texts import Wording, contains

SECRET = "marker-of-a-secret"
VERSION = "client.authentication.k8s.io/v1"


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def pems(ca: trustme.CA, **options: Any) -> tuple[str, str]:
    made = ca.issue_cert(common_name="me", **options)
    return made.cert_chain_pems[0].bytes().decode(), made.private_key_pem.bytes().decode()


def written(folder: Path, user: Any, cluster: Any = None, **more: Any) -> Path:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "contexts": [{"name": each, "context": {"cluster": each, "user": "me"}} for each in ("one", "two")],
        "clusters": [
            {"name": "one", "cluster": {"server": "https://192.0.2.1:6443"} | (cluster or {})},
            {"name": "two", "cluster": {"server": "https://192.0.2.2:6443/"}},
        ],
        "users": [{"name": "me", "user": user}],
    } | more
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump({name: each for name, each in config.items() if each is not None}))
    return path


def refused(path: Path, context: str | None = None) -> str:
    """Return the error for a kubeconfig; it contains no secret."""
    with pytest.raises(PrepError) as caught:
        context_of(read(path, context))
    assert caught.value.exit_code == 2
    assert SECRET not in str(caught.value)
    return str(caught.value)


def authorization(access: Access) -> str | None:
    return access.authorization.reveal() if access.authorization else None


def test_contexts_and_credentials(tmp_path: Path, ca: trustme.CA) -> None:
    (tmp_path / "token").write_text("from-a-file\n")
    path = written(tmp_path, {"token": "plain", "tokenFile": "token"})
    assert authorization(read(path)) == "Bearer from-a-file"
    assert read(path).server == "https://192.0.2.1:6443"
    assert read(path, "two").server == "https://192.0.2.2:6443"
    assert authorization(read(written(tmp_path, {"token": "plain"}))) == "Bearer plain"
    assert authorization(read(written(tmp_path, {"username": "a", "password": "b"}))) == "Basic YTpi"
    assert read(written(tmp_path, {}, users=None, contexts=[{"name": "one", "context": {"cluster": "one"}}]))
    certificate, key = pems(ca)
    user = {"client-certificate-data": encoded(certificate), "client-key-data": encoded(key)}
    access = read(written(tmp_path, user, {"certificate-authority-data": encoded(ca.cert_pem.bytes().decode())}))
    assert context_of(access).get_ca_certs()
    assert key not in repr(access)
    (tmp_path / "me.crt").write_text(certificate)
    (tmp_path / "me.key").write_text(key)
    assert context_of(read(written(tmp_path, {"client-certificate": "me.crt", "client-key": "me.key"})))
    assert not context_of(read(written(tmp_path, {}, {"insecure-skip-tls-verify": True}))).check_hostname


def test_files_that_are_no_kubeconfig(tmp_path: Path, wording: Wording) -> None:
    wording(refused(tmp_path / "none"))
    path = tmp_path / "kubeconfig"
    for text, said in (
        ("", "is not a kubeconfig"),
        (f"[{SECRET}]", "is not a kubeconfig"),
        (f"users: [{{token: *{SECRET}", "is not YAML"),
        (f"users: [{{token: {SECRET}}}", ":1: is not YAML"),
        ("a: 1\na: 2\n", "duplicate key a"),
        ("kind: Config\n", "has no current-context"),
    ):
        path.write_text(text)
        assert said in refused(path), text


def test_names_that_do_not_exist(tmp_path: Path, wording: Wording) -> None:
    path = written(tmp_path, {"token": SECRET})
    assert contains(refused(path, "three"), "three", "one, two", "--context")
    wording(refused(written(tmp_path, {}, **{"current-context": None})))
    wording(refused(written(tmp_path, {}, clusters=None)))
    wording(refused(written(tmp_path, {}, users=[{"name": "you", "user": SECRET}])))


def test_all_wrong_fields_of_a_context_with_their_lines(tmp_path: Path) -> None:
    user = {"token": [SECRET], "client-certificate-data": f"{SECRET}!", "client-key": "none.key"}
    cluster = {"server": f"https://me:{SECRET}@192.0.2.1", "insecure-skip-tls-verify": SECRET, "proxy-url": {SECRET: 1}}
    path = written(tmp_path, user, cluster | {"certificate-authority": "/dev/null/ca"})
    lines = path.read_text().splitlines()
    with pytest.raises(SpecError) as caught:
        read(path)
    assert SECRET not in str(caught.value)
    places = [each.where.removeprefix(f"{path}:").split(": ") for each in caught.value.mistakes]
    assert [field.rpartition(".")[2] for _, field in places] == [
        *("certificate-authority", "insecure-skip-tls-verify", "proxy-url", "server"),
        *("client-certificate-data", "client-key", "token"),
    ]
    for line, field in places:
        assert field.rpartition(".")[2] in lines[int(line) - 1]


@pytest.mark.parametrize(
    "server", ["", "192.0.2.1:6443", "ftp://a", "https://", "https://a:0", "https://a:x", "https://[1"]
)
def test_addresses_that_are_none_of_a_server(tmp_path: Path, server: str) -> None:
    assert ".server: " in refused(written(tmp_path, {}, {"server": server}))


@pytest.mark.parametrize("proxy", ["192.0.2.1:3128", f"socks5://me:{SECRET}@192.0.2.1", f"ftp://{SECRET}", "http://"])
def test_proxies_that_are_none_for_http(tmp_path: Path, proxy: str, wording: Wording) -> None:
    wording(refused(written(tmp_path, {}, {"proxy-url": proxy})))


def test_comments_of_certificates_may_contain_any_characters(ca: trustme.CA) -> None:
    comment = "# Főtanúsítvány of Jörg\n"
    certificate, key = (comment + each for each in pems(ca))
    authority = comment + ca.cert_pem.bytes().decode()
    context_of(Access(name="c", server="https://a", ca=authority, certificate=certificate, key=Secret(key)))


@pytest.mark.parametrize("field", ["auth-provider", "as", "as-groups"])
def test_fields_that_would_make_us_somebody_else_are_refused(tmp_path: Path, field: str, wording: Wording) -> None:
    wording(refused(written(tmp_path, {"token": SECRET, field: {"id-token": SECRET}})))


def test_certificates_that_cannot_work(tmp_path: Path, ca: trustme.CA, wording: Wording) -> None:
    certificate, key = pems(ca)
    now = datetime.now(UTC)
    old, its_key = pems(ca, not_before=now - timedelta(9), not_after=now - timedelta(1))

    def of(certificate: str, key: str, **cluster: str) -> str:
        user = {"client-certificate-data": encoded(certificate), "client-key-data": encoded(key)}
        return refused(written(tmp_path, user, cluster))

    assert f"client-certificate expired on {now - timedelta(1):%Y-%m-%d}" in of(old, its_key)
    assert contains(of(certificate, pems(ca)[1]), "client-key", "client-certificate")
    wording(of(certificate, SECRET))
    wording(of(SECRET, key))
    wording(of(certificate, key, **{"certificate-authority-data": encoded(SECRET)}))
    assert "client-key: is missing" in refused(written(tmp_path, {"client-certificate-data": encoded(certificate)}))
    wording(refused(written(tmp_path, {"token": f"{SECRET}\nX: 1"})))


def plugin(folder: Path, script: str, **more: Any) -> Path:
    """Write a kubeconfig with an exec plugin: a program in the folder of the file."""
    program = folder / "plugin"
    program.write_text(f"#!{sys.executable}\nimport json, os, sys, time\n{script}\n")
    program.chmod(0o700)
    given = {"apiVersion": VERSION, "command": "./plugin", "env": [{"name": "PLUGIN_SECRET", "value": SECRET}]} | more
    return written(folder, {"exec": given})


CREDENTIAL = f"""
assert json.loads(os.environ["KUBERNETES_EXEC_INFO"])["apiVersion"] == "{VERSION}"
status = {{"token": os.environ["PLUGIN_SECRET"] + sys.argv[1]}}
print(json.dumps({{"apiVersion": "{VERSION}", "kind": "ExecCredential", "status": status}}))
"""


def test_an_exec_plugin_gives_the_token(tmp_path: Path) -> None:
    access = read(plugin(tmp_path, CREDENTIAL, args=["-1"]))
    assert authorization(access) == f"Bearer {SECRET}-1"
    assert SECRET not in repr(access)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (f"print('{SECRET}', file=sys.stderr); sys.exit(3)", "ended with exit code 3"),
        (f"print('{SECRET}')", "does not print an ExecCredential"),
        (f"print(json.dumps({{'kind': 'ExecCredential', 'status': '{SECRET}'}}))", "does not print an ExecCredential"),
        (CREDENTIAL.replace('"token"', '"other"'), "prints neither a token nor a certificate"),
        (CREDENTIAL.replace("sys.argv[1]", "' two'"), "a token that is not one word"),
        ("time.sleep(9)", "has not ended after"),
        (f"while True: print('{SECRET}' * 1000)", "printed more than 1 MiB"),
        ("os.close(1); time.sleep(9)", "has not ended after"),
    ],
)
def test_an_exec_plugin_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str) -> None:
    monkeypatch.setattr(kubeconfig, "TIMEOUT", 0.5 if "sleep" in script else 20)
    assert said in refused(plugin(tmp_path, script, args=["-1"]))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"command": "./none"}, "cannot be run: No such file"),
        ({"command": f"./none --token {SECRET}"}, "'./none' cannot be run"),
        ({"apiVersion": SECRET}, "has an apiVersion that is not supported"),
        ({"interactiveMode": "Always"}, "needs a terminal"),
        ({"args": [1]}, "has args that are not a list of texts"),
        ({"args": ["a\0b"]}, "contain a NUL character"),
        ({"env": [{"name": SECRET}]}, "has an env that is not a list"),
        ({"command": ""}, "exec.command: is missing"),
    ],
)
def test_exec_plugins_that_cannot_be_run(tmp_path: Path, more: dict[str, Any], said: str) -> None:
    assert said in refused(plugin(tmp_path, CREDENTIAL, **more))
