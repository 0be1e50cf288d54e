"""Reads one context of a kubeconfig: where the API server is, how to recognize it, and who we are.

No value of a kubeconfig is ever part of a message, except names, paths and addresses: any other may be a secret.

Source: Kubernetes 1.36, staging/src/k8s.io/client-go/tools/clientcmd/api/v1/types.go (Config, Cluster, AuthInfo), and
tools/clientcmd/client_config.go and transport/round_trippers.go (a token file overrides a token).

Nothing that a plugin prints is ever part of a message, because it may contain a secret: the message names the command
that shows it.

Source: Kubernetes 1.36, staging/src/k8s.io/client-go/plugin/pkg/client/auth/exec/exec.go, and
pkg/apis/clientauthentication/v1/types.go (ExecCredential).
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from openstack_prep.base import shell
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import ConfigError, Mistake, SpecError
from openstack_prep.base.formats.yaml_places import Document
from openstack_prep.base.given_file import read_text, unreadable
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.programs import hide_arguments, output_of
from openstack_prep.base.raw import Raw, dotted
from openstack_prep.base.secret import Secret
from openstack_prep.base.style import first_of

# --- plugin -----------------------------------------------------------------------------------


TIMEOUT = 60.0
"""Seconds. A plugin that waits for a browser gets no answer here."""
VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
LONGEST = 2**20
"""Bytes of a plugin's output."""


@dataclass(frozen=True)
class PluginCredentials:
    """The credentials that a plugin printed."""

    token: Secret | None = None
    certificate: str | None = None
    key: Secret | None = None


def ask(name: str, command: str, plugin: Raw, *, folder: Path) -> PluginCredentials:
    """Run a plugin; raises ConfigError.  ``name`` is that of the context, ``folder`` that of the kubeconfig."""
    version = plugin.get("apiVersion")
    what = f"{name}: exec plugin {hide_arguments(command, folder)!r}"
    if version not in VERSIONS:
        raise ConfigError(f"{what} has an apiVersion that is not supported; use {VERSIONS[0]}")
    if plugin.get("interactiveMode") == "Always":
        raise ConfigError(f"{what} needs a terminal (interactiveMode: Always); choose a context of a service account")
    printed = _run(what, command, plugin, folder, str(version))
    try:
        found = json.loads(printed)
    except (ValueError, RecursionError):
        found = None
    answer = found if isinstance(found, dict) else {}
    status = answer.get("status")
    is_credential = (answer.get("kind"), answer.get("apiVersion")) == ("ExecCredential", version)
    if not is_credential or not isinstance(status, dict):
        raise ConfigError(f"{what} does not print an ExecCredential of {version}; {_see(command, plugin, folder)}")
    token, certificate, key = map(status.get, ("token", "clientCertificateData", "clientKeyData"))
    given = [each for each in (token, certificate, key) if each]
    are_texts = all(isinstance(each, str) and each.isascii() for each in given)
    if not given or not are_texts or bool(certificate) != bool(key):
        raise ConfigError(
            f"{what} prints neither a token nor a certificate with its key; {_see(command, plugin, folder)}"
        )
    if token and len(token.split()) != 1:
        raise ConfigError(f"{what} prints a token that is not one word; {_see(command, plugin, folder)}")
    return PluginCredentials(
        Secret(token.strip()) if token else None, certificate or None, Secret(key) if key else None
    )


def _run(what: str, command: str, plugin: Raw, folder: Path, version: str) -> str:
    """Return what a plugin prints.  A command with a slash is relative to the folder of the kubeconfig."""
    info = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}
    environment = {**os.environ, **_environment(what, plugin), "KUBERNETES_EXEC_INFO": json.dumps(info)}
    program = str(folder / command) if "/" in command else command
    try:
        printed = output_of(
            [program, *_arguments(what, plugin)],
            what,
            most=LONGEST,
            seconds=TIMEOUT,
            environment=environment,
            stderr=subprocess.DEVNULL,
        )
    except InvalidValue as error:
        raise ConfigError(f"{error.what}; {_see(command, plugin, folder)}") from None
    return printed.decode(errors="replace")


def _arguments(what: str, plugin: Raw) -> list[str]:
    given: Any = plugin.get("args") or []
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise ConfigError(f"{what} has args that are not a list of texts; put numbers and dates in quotes")
    return given


def _environment(what: str, plugin: Raw) -> dict[str, str]:
    given: Any = plugin.get("env") or []
    try:
        found = {each["name"]: each["value"] for each in given}
    except (KeyError, TypeError):
        found = {"": None}
    if not all(isinstance(each, str) and each for each in (*found, *found.values())):
        raise ConfigError(f"{what} has an env that is not a list of name and value, both texts")
    return found


def _see(command: str, plugin: Raw, folder: Path) -> str:
    """Return how to see what the plugin prints; its arguments may contain a secret, and stay in the kubeconfig."""
    shown = hide_arguments(command, folder)
    more = " with its args" if plugin.get("args") or shown != command else ""
    return f"run {shell.quote(shown)}{more} yourself, or kubectl with this context, to see why"


# --- kubeconfig -------------------------------------------------------------------------------


SHOWN = 10
"""Number of contexts that an error lists."""
UNSUPPORTED = {
    "auth-provider": "kubectl has removed most of them; use an exec plugin, such as kubelogin for OIDC, or a token",
    "as": "impersonation is not supported; choose the context of a user of its own",
    "as-uid": "impersonation is not supported; choose the context of a user of its own",
    "as-groups": "impersonation is not supported; choose the context of a user of its own",
}
"""Fields of a user that decide who we are, and which this package does not carry out."""


@dataclass(frozen=True, kw_only=True)
class Access:
    """One context; ``name`` is for messages, ``context`` is its name in the kubeconfig."""

    name: str
    context: str | None = None
    server: str
    server_name: str | None = None
    """The name in the server's certificate, if it differs from that in its address."""
    verify: bool = True
    proxy: Secret | None = None
    """May contain a password."""
    ca: str | None = None
    """Certificates of the authorities, as PEM; None: those of the system."""
    certificate: str | None = None
    key: Secret | None = None
    authorization: Secret | None = None
    """Value of the header Authorization."""


def read(path: Path, context: str | None = None) -> Access:
    """Return a context, the current one by default; runs its exec plugin.  Raises SpecError with all mistakes."""
    document = Document(path)
    mistakes = document.repeated
    if not mistakes and not isinstance(document.data, dict):
        mistakes = [Mistake(str(path), "is not a kubeconfig", "name a file of kind Config, such as ~/.kube/config")]
    if mistakes:
        raise SpecError(mistakes)
    whole = _Section(document, (), document.data, mistakes)
    name = context or whole.text("current-context")
    if not name:
        names = _names(document, "contexts")
        raise SpecError([Mistake(str(path), "has no current-context", f"choose one with --context: {names}")])
    chosen = _named(document, "contexts", name, mistakes, "choose one of {names} with --context")
    cluster = _named(document, "clusters", chosen.needed("cluster"), mistakes, "the file has {names}")
    user_name = chosen.text("user")
    user = _named(document, "users", user_name, mistakes, "the file has {names}") if user_name else None
    access = _access(path, name, cluster, user)
    if mistakes:
        raise SpecError(mistakes)
    return access


class _Section:
    """A mapping in the file; collects mistakes with their places."""

    def __init__(self, document: Document, where: Sequence[str | int], data: Any, mistakes: list[Mistake]) -> None:
        self.document, self.where, self.mistakes = document, where, mistakes
        self.data: Raw = data if isinstance(data, dict) else {}

    @property
    def folder(self) -> Path:
        """The folder of the file, to which paths are relative."""
        return self.document.path.absolute().parent

    def wrong(self, key: str, what: str, fix: str = "", code: str = Code.SPEC_INVALID_VALUE) -> None:
        place = (*self.where, key)
        self.mistakes.append(Mistake(f"{self.document.place(place)}: {dotted(place)}", what, fix, code=code))

    def text(self, key: str) -> str | None:
        """Return a text; None if there is none."""
        value = self.data.get(key)
        if value is None or value == "":
            return None
        if isinstance(value, str):
            return value
        self.wrong(key, "is not a text", "put it in quotes")
        return None

    def needed(self, key: str) -> str:
        """Return a text that must be there; raises SpecError."""
        value = self.text(key)
        if value is None:
            if not self.mistakes:
                self.wrong(key, "is missing", code=Code.SPEC_MISSING_KEY)
            raise SpecError(self.mistakes)
        return value

    def content(self, key: str) -> str | None:
        """Return the PEM text of KEY-data, which is base64, or of the file KEY."""
        data, file = self.text(f"{key}-data"), self.text(key)
        if data is not None:
            try:
                return base64.b64decode(data, validate=True).decode("ascii")
            except ValueError:
                self.wrong(f"{key}-data", "is not base64 of a PEM text", "copy the kubeconfig from the cluster again")
        elif file is not None:
            return self.file(key, file)
        return None

    def file(self, key: str, name: str) -> str | None:
        """Return the text of a file that the section names."""
        try:
            return read_text(self.folder / name)
        except OSError as error:
            self.wrong(key, f"{name} {unreadable(error)}", "name a readable file")
        except UnicodeDecodeError:
            self.wrong(key, f"{name} is not a text", "name a file in PEM format, or with a token")
        return None


def _names(document: Document, kind: str) -> str:
    """Return the names of the contexts, clusters or users in a file."""
    data: Any = document.data
    found = data.get(kind)
    entries = found if isinstance(found, list) else []
    names = [str(entry["name"]) for entry in entries if isinstance(entry, dict) and isinstance(entry.get("name"), str)]
    return first_of(names, SHOWN) or f"no {kind}"


def _named(document: Document, kind: str, name: str, mistakes: list[Mistake], fix: str) -> _Section:
    """Return the first entry of that name, as kubectl does; raises SpecError without one."""
    data: Any = document.data
    entries = data.get(kind)
    for index, each in enumerate(entries if isinstance(entries, list) else []):
        if isinstance(each, dict) and each.get("name") == name:
            singular = kind.removesuffix("s")
            return _Section(document, (kind, index, singular), each.get(singular), mistakes)
    what = f"{kind.removesuffix('s')} {name!r} does not exist"
    where = document.place((kind,)) if entries else str(document.path)
    raise SpecError([Mistake(where, what, fix.format(names=_names(document, kind)), code=Code.SPEC_UNRESOLVED)])


def _access(path: Path, context: str, cluster: _Section, user: _Section | None) -> Access:
    name = f"context {context} of {path}"
    server = cluster.needed("server").rstrip("/")
    _check_server(cluster, server)
    insecure = cluster.data.get("insecure-skip-tls-verify") or False
    if not isinstance(insecure, bool):
        cluster.wrong("insecure-skip-tls-verify", "is not a boolean", "write true or false")
    proxy = cluster.text("proxy-url")
    if proxy and not _is_url(proxy):
        cluster.wrong("proxy-url", "is not the URL of a proxy for HTTP", "write one such as http://192.0.2.1:3128")
    certificate, key, authorization = _credentials(name, user) if user else (None, None, None)
    return Access(
        name=name,
        context=context,
        server=server,
        server_name=cluster.text("tls-server-name"),
        verify=insecure is not True,
        proxy=Secret(proxy) if proxy else None,
        ca=cluster.content("certificate-authority"),
        certificate=certificate,
        key=key,
        authorization=authorization,
    )


def _check_server(cluster: _Section, server: str) -> None:
    fix = "write the address of the API server, such as https://192.0.2.1:6443"
    if not _is_url(server):
        cluster.wrong("server", "is not the URL of a server", fix)
        return
    parts = urlsplit(server)
    if parts.username or parts.password or parts.query or parts.fragment:
        cluster.wrong("server", "contains more than an address and a path", fix)


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _credentials(name: str, user: _Section) -> tuple[str | None, Secret | None, Secret | None]:
    """Return the client certificate, its key, and the header Authorization."""
    for field in (each for each in UNSUPPORTED if user.data.get(each)):
        user.wrong(field, "is not supported", UNSUPPORTED[field])
    certificate, key = user.content("client-certificate"), user.content("client-key")
    if bool(certificate) != bool(key) and not user.mistakes:
        have, lack = ("client-certificate", "client-key") if certificate else ("client-key", "client-certificate")
        user.wrong(lack, f"is missing, but there is a {have}", "set both, or none", Code.SPEC_MISSING_KEY)
    authorization, secret_key = _authorization(user), Secret(key) if key else None
    plugin = user.data.get("exec")
    if plugin and not authorization and not user.mistakes:
        section = _Section(user.document, (*user.where, "exec"), plugin, user.mistakes)
        answer = ask(name, section.needed("command"), section.data, folder=section.folder)
        certificate, secret_key = answer.certificate or certificate, answer.key or secret_key
        authorization = Secret(f"Bearer {answer.token.reveal()}") if answer.token else None
    return certificate, secret_key, authorization


def _authorization(user: _Section) -> Secret | None:
    file = user.text("tokenFile")
    token = user.file("tokenFile", file) if file else user.text("token")
    if token is not None:
        field = "tokenFile" if file else "token"
        if not token.strip() or not token.strip().isascii() or len(token.split()) != 1:
            user.wrong(field, "is not a token", "it is one word of ASCII characters; log in again")
            return None
        return Secret(f"Bearer {token.strip()}")
    name, password = user.text("username"), user.text("password")
    if name is None or password is None:
        return None
    return Secret("Basic " + base64.b64encode(f"{name}:{password}".encode()).decode())
