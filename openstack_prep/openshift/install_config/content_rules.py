"""Rules for pull secret, SSH keys and CA certificates; messages never quote their contents.

Source: the OpenShift installer's validation (pkg/validate: ImagePullSecret, SSHPublicKey, CABundle); sshd(8),
"AUTHORIZED_KEYS FILE FORMAT".
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

from openstack_prep.base.errors import Mistake
from openstack_prep.base.fields import is_public_key
from openstack_prep.openshift.install_config.model import Cluster, Contents

NO_LOGIN = '{"auths": {"fake": {"auth": "aWQ6cGFzcwo="}}}'
"""A pull secret without a real login, because the installer requires one."""


def content_mistakes(cluster: Cluster, contents: Contents) -> Iterator[Mistake]:
    """Yield the mistakes of the file contents in an install-config."""
    if contents.pull_secret is None:
        yield Mistake("pull_secret", "is missing", f"give one; for registries without login, {NO_LOGIN}")
    else:
        yield from _pull_secret(contents.pull_secret.reveal())
    if contents.ssh_key is not None:
        yield from _ssh_key(contents.ssh_key)
    bundle = contents.additional_trust_bundle
    if bundle is not None and "-----BEGIN CERTIFICATE-----" not in bundle:
        yield Mistake("additional_trust_bundle", "contains no certificate", "give PEM: -----BEGIN CERTIFICATE----- ...")
    if bundle is not None and "PRIVATE KEY" in bundle:
        yield Mistake("additional_trust_bundle", "contains a private key", "give the certificates alone")
    if cluster.additional_trust_bundle_policy and bundle is None:
        yield Mistake("additional_trust_bundle_policy", "requires a bundle", "give additional_trust_bundle")


# --- pull secret --------------------------------------------------------------------------


def _pull_secret(text: str) -> Iterator[Mistake]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    auths = data.get("auths") if isinstance(data, dict) else None
    if not isinstance(auths, dict):
        fix = "use the one from the console of your vendor"
        yield Mistake("pull_secret", "is not JSON with auths", fix)
    elif not auths:
        fix = f"use the one from the console of your vendor; without registries, {NO_LOGIN}"
        yield Mistake("pull_secret", "has an empty auths", fix)
    else:
        for registry, login in auths.items():
            yield from _login(registry, login)


def _login(registry: str, login: object) -> Iterator[Mistake]:
    fix = "create it by podman login --authfile FILE, or leave that registry out"
    if not isinstance(login, dict) or not login.keys() & {"auth", "credsStore"}:
        yield Mistake("pull_secret", f"has neither auth nor credsStore for {registry!r}", fix)
    elif "auth" in login and not _is_login(login["auth"]):
        yield Mistake("pull_secret", f"auth for {registry!r} is not user:password in base64", fix)


def _is_login(auth: Any) -> bool:
    try:
        return b":" in base64.b64decode(auth, validate=True)
    except (TypeError, ValueError):
        return False


# --- SSH keys -----------------------------------------------------------------------------


def _ssh_key(text: str) -> Iterator[Mistake]:
    fix = "give the content of a .pub file, one key per line: ssh-ed25519 AAAAC3... me@here"
    if "PRIVATE KEY" in text:
        yield Mistake("ssh_key", "is a private key", fix)
        return
    lines = _lines(text)
    wrong = [str(number) for number, line in lines.items() if not is_public_key(line)]
    if wrong:
        yield Mistake("ssh_key", f"not an OpenSSH public key in line {', '.join(wrong)}", fix)
    elif not lines:
        yield Mistake("ssh_key", "contains no key", fix)


def are_public_keys(text: str) -> bool:
    """Whether a text consists of SSH public keys and comments, and may be shown."""
    return all(is_public_key(line) for line in _lines(text).values())


def _lines(text: str) -> dict[int, str]:
    """Return the lines that are neither empty nor comments, by number."""
    lines = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    return {number: line for number, line in lines if line and not line.startswith("#")}
