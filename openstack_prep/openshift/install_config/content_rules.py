"""What is wrong with pull secret, SSH keys and CA certificates: told without a word of what stands in them.

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
"""A pull secret for those who need no registry's login; the installer wants one."""


def content_mistakes(cluster: Cluster, contents: Contents) -> Iterator[Mistake]:
    """Yield what is wrong with the files whose content an install-config holds."""
    if contents.pull_secret is None:
        yield Mistake("pull_secret", "is missing", f"give one; without registries to log in to, {NO_LOGIN}")
    else:
        yield from _pull_secret(contents.pull_secret.reveal())
    if contents.ssh_key is not None:
        yield from _ssh_key(contents.ssh_key)
    bundle = contents.additional_trust_bundle
    if bundle is not None and "-----BEGIN CERTIFICATE-----" not in bundle:
        yield Mistake("additional_trust_bundle", "holds no certificate", "give PEM: -----BEGIN CERTIFICATE----- ...")
    if cluster.additional_trust_bundle_policy and bundle is None:
        yield Mistake("additional_trust_bundle_policy", "there is no bundle it is for", "give additional_trust_bundle")


# --- pull secret --------------------------------------------------------------------------


def _pull_secret(text: str) -> Iterator[Mistake]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    auths = data.get("auths") if isinstance(data, dict) else None
    if not isinstance(auths, dict):
        remedy = "take the one that the console of your vendor gives you"
        yield Mistake("pull_secret", "is not JSON with auths", remedy)
    elif not auths:
        remedy = f"take the one that the console of your vendor gives you; without registries, {NO_LOGIN}"
        yield Mistake("pull_secret", "has auths without a registry", remedy)
    else:
        for registry, login in auths.items():
            yield from _login(registry, login)


def _login(registry: str, login: object) -> Iterator[Mistake]:
    remedy = "podman login --authfile FILE writes it, or leave that registry out"
    if not isinstance(login, dict) or not login.keys() & {"auth", "credsStore"}:
        yield Mistake("pull_secret", f"has neither auth nor credsStore for {registry!r}", remedy)
    elif "auth" in login and not _is_login(login["auth"]):
        yield Mistake("pull_secret", f"auth for {registry!r} is not user:password in base64", remedy)


def _is_login(auth: Any) -> bool:
    try:
        return b":" in base64.b64decode(auth, validate=True)
    except (TypeError, ValueError):
        return False


# --- SSH keys -----------------------------------------------------------------------------


def _ssh_key(text: str) -> Iterator[Mistake]:
    remedy = "give what stands in a file that ends in .pub, a key a line: ssh-ed25519 AAAAC3... me@here"
    if "PRIVATE KEY" in text:
        yield Mistake("ssh_key", "is a private key", remedy)
        return
    lines = _lines(text)
    wrong = [str(number) for number, line in lines.items() if not is_public_key(line)]
    if wrong:
        yield Mistake("ssh_key", f"holds what is no OpenSSH public key in line {', '.join(wrong)}", remedy)
    elif not lines:
        yield Mistake("ssh_key", "holds no key", remedy)


def are_public_keys(text: str) -> bool:
    """Whether a text holds SSH public keys and comments only, so that everybody may see it."""
    return all(is_public_key(line) for line in _lines(text).values())


def _lines(text: str) -> dict[int, str]:
    """Return by its number what is neither empty nor a comment."""
    lines = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    return {number: line for number, line in lines if line and not line.startswith("#")}
