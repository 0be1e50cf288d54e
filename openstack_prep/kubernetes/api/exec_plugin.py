"""Runs the exec plugin of a kubeconfig, a program that prints credentials.

Nothing that a plugin prints is ever part of a message, because it may contain a secret: the message names the command
that shows it.

Source: Kubernetes 1.36, staging/src/k8s.io/client-go/plugin/pkg/client/auth/exec/exec.go, and
pkg/apis/clientauthentication/v1/types.go (ExecCredential).
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openstack_prep.base.errors import ConfigError
from openstack_prep.base.programs import run
from openstack_prep.base.raw import Raw
from openstack_prep.base.secret import Secret

TIMEOUT = 60.0
"""Seconds. A plugin that waits for a browser gets no answer here."""
VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
LONGEST = 2**20
"""Bytes of a plugin's output."""


@dataclass(frozen=True)
class Answer:
    """The credentials that a plugin printed."""

    token: Secret | None = None
    certificate: str | None = None
    key: Secret | None = None


def ask(name: str, command: str, plugin: Raw, *, folder: Path) -> Answer:
    """Run a plugin; raises ConfigError.  ``name`` is that of the context, ``folder`` that of the kubeconfig."""
    version = plugin.get("apiVersion")
    what = f"{name}: exec plugin {command!r}"
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
        raise ConfigError(f"{what} does not print an ExecCredential of {version}; {_see(command, plugin)}")
    token, certificate, key = map(status.get, ("token", "clientCertificateData", "clientKeyData"))
    given = [each for each in (token, certificate, key) if each]
    are_texts = all(isinstance(each, str) and each.isascii() for each in given)
    if not given or not are_texts or bool(certificate) != bool(key):
        raise ConfigError(f"{what} prints neither a token nor a certificate with its key; {_see(command, plugin)}")
    if token and len(token.split()) != 1:
        raise ConfigError(f"{what} prints a token that is not one word; {_see(command, plugin)}")
    return Answer(Secret(token.strip()) if token else None, certificate or None, Secret(key) if key else None)


def _run(what: str, command: str, plugin: Raw, folder: Path, version: str) -> str:
    """Return what a plugin prints.  A command with a slash is relative to the folder of the kubeconfig."""
    info = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}
    environment = {**os.environ, **_environment(what, plugin), "KUBERNETES_EXEC_INFO": json.dumps(info)}
    program = str(folder / command) if "/" in command else command
    try:
        ran = run(
            [program, *_arguments(what, plugin)],
            most=LONGEST,
            seconds=TIMEOUT,
            environment=environment,
            stderr=subprocess.DEVNULL,
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "its arguments or env contain a NUL character"
        raise ConfigError(f"{what} cannot be run: {why}; install it, or correct the kubeconfig") from None
    if ran.late:
        raise ConfigError(f"{what} did not end within {TIMEOUT:.0f} s; {_see(command, plugin)}")
    if len(ran.printed) > LONGEST:
        raise ConfigError(f"{what} prints more than {LONGEST // 2**20} MiB; {_see(command, plugin)}")
    if ran.code:
        raise ConfigError(f"{what} failed with exit code {ran.code}; {_see(command, plugin)}")
    return ran.printed.decode(errors="replace")


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


def _see(command: str, plugin: Raw) -> str:
    """Return how to see what the plugin prints; its arguments may contain a secret, and stay in the kubeconfig."""
    more = " with its args" if plugin.get("args") else ""
    return f"run {shlex.quote(command)}{more} yourself, or kubectl with this context, to see why"
