"""Rules for pull secret, SSH keys and CA certificates; messages never quote their contents.

Source: the OpenShift installer's validation (pkg/validate: ImagePullSecret, SSHPublicKey, CABundle; types/validation:
validateFIPSconfig); sshd(8), "AUTHORIZED_KEYS FILE FORMAT".
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
from collections.abc import Iterator
from itertools import dropwhile
from typing import Any

from openstack_prep.base.errors import Mistake
from openstack_prep.base.fields import is_public_key
from openstack_prep.openshift.install_config import releases
from openstack_prep.openshift.install_config.model import FileContents, InstallConfigFields
from openstack_prep.openshift.install_config.rules.names import SUBDOMAIN

NO_LOGIN = '{"auths": {"fake": {"auth": "aWQ6cGFzcwo="}}}'
"""A pull secret without a real login, because the installer requires one."""
_BLOCK = re.compile(
    r"^-----BEGIN ([^\n-]+)-----[ \t\r]*\n(.*?)^-----END \1-----[ \t\r]*(?:\n|\Z)", re.DOTALL | re.MULTILINE
)
_OPTIONS = re.compile(r'^(?:[^ \t"\\]|\\.|"(?:[^"\\]|\\.)*")+[ \t]+')  # of a key; blanks are in quotes
_FIPS_KEY = re.compile(r"ecdsa-sha2-nistp\d{3}|ssh-rsa")


def content_mistakes(cluster: InstallConfigFields, contents: FileContents) -> Iterator[Mistake]:
    """Yield the mistakes of the file contents in an install-config."""
    release = releases.minor(cluster.release)
    if contents.pull_secret is None:
        yield Mistake("pull_secret", "is missing", f"give one; for registries without login, {NO_LOGIN}")
    else:
        yield from _pull_secret(contents.pull_secret.reveal())
    if contents.ssh_key is not None:
        yield from _ssh_key(contents.ssh_key, release, comments=bool(cluster.fips))
        if cluster.fips and release in releases.FIPS_KEYS:
            yield from _fips_key(contents.ssh_key)
    if contents.additional_trust_bundle is not None:
        yield from _bundle(contents.additional_trust_bundle)


# --- CA certificates ----------------------------------------------------------------------


def _bundle(text: str) -> Iterator[Mistake]:
    """Yield what keeps the installer from reading certificates, and nothing but certificates."""
    where, blocks = "additional_trust_bundle", list(_BLOCK.finditer(text))
    if "PRIVATE KEY" in text:
        yield Mistake(where, "contains a private key", "give the certificates alone")
    elif not blocks:
        yield Mistake(where, "contains no certificate", "give PEM: -----BEGIN CERTIFICATE----- ...")
    else:
        wrong = [str(number) for number, block in enumerate(blocks, 1) if not _is_certificate(block[2])]
        if wrong:
            what = f"block {', '.join(wrong)} of {len(blocks)} is not a certificate"
            yield Mistake(where, what, "give certificates alone, each in PEM")
        if blocks[-1].end() < len(text):
            what = "text or an empty line follows the last certificate"
            yield Mistake(where, what, "end the file after -----END CERTIFICATE-----")


def _is_certificate(body: str) -> bool:
    from cryptography.x509 import load_der_x509_certificate  # few files have a bundle

    lines = dropwhile(lambda line: ":" in line, body.splitlines())  # headers of PEM
    try:
        load_der_x509_certificate(base64.b64decode("".join("".join(lines).split()), validate=True))
    except ValueError:
        return False
    return True


# --- pull secret --------------------------------------------------------------------------


def _no_number(word: str) -> None:
    """Refuse NaN and Infinity, which are no JSON."""
    raise ValueError(word)


def _auths(text: str) -> dict[str, Any] | None:
    """Return the logins by registry as Go reads them: keys in any case, and repeated auths are merged.

    Objects inside are tuples of names and values.  None if it is not JSON with auths.
    """
    try:
        data = json.loads(text, parse_constant=_no_number, object_pairs_hook=tuple)
    except (ValueError, RecursionError):
        return None
    found: dict[str, Any] | None = None
    for name, value in data if isinstance(data, tuple) else ():
        if name.lower() != "auths":
            continue
        if value is not None and not isinstance(value, tuple):
            return None
        found = None if value is None else (found or {}) | dict(value)
    return found


def _pull_secret(text: str) -> Iterator[Mistake]:
    auths = _auths(text)
    if auths is None:
        fix = "use the one from the console of your vendor"
        yield Mistake("pull_secret", "is not JSON with auths", fix)
    elif not auths:
        fix = f"use the one from the console of your vendor; without registries, {NO_LOGIN}"
        yield Mistake("pull_secret", "has an empty auths", fix)
    else:
        fix = "create it by podman login --authfile FILE, or leave that registry out"
        for registry, login in auths.items():
            if not isinstance(login, tuple) or not dict(login).keys() & {"auth", "credsStore"}:
                yield Mistake("pull_secret", f"has neither auth nor credsStore for {registry!r}", fix)


# --- SSH keys -----------------------------------------------------------------------------


def _ssh_key(text: str, release: int, *, comments: bool) -> Iterator[Mistake]:
    """Yield the lines that are no keys; with FIPS the installer reads only the first key, and allows comments."""
    fix = "give the content of a .pub file, one key per line: ssh-ed25519 AAAAC3... me@here"
    if "PRIVATE KEY" in text:
        yield Mistake("ssh_key", "is a private key", fix)
        return
    lines = _lines(text)
    lost = [str(number) for number, line in enumerate(text.splitlines(), 1) if line.strip().startswith("#")]
    if lost and not comments and release in releases.EVERY_SSH_KEY:
        what = f"a comment in line {', '.join(lost)}, which {releases.name(release)} does not accept"
        yield Mistake("ssh_key", what, "leave only the keys")
    blank = [str(number) for number, line in enumerate(text.split("\n"), 1) if line and not line.strip()]
    if blank and not comments and release in releases.EVERY_SSH_KEY:
        what = f"only blanks in line {', '.join(blank)}, which {releases.name(release)} does not accept"
        yield Mistake("ssh_key", what, "leave only the keys")
    wrong = [str(number) for number, line in lines.items() if _kind(line) is None]
    if wrong:
        yield Mistake("ssh_key", f"not an OpenSSH public key in line {', '.join(wrong)}", fix)
    elif not lines:
        yield Mistake("ssh_key", "contains no key", fix)


def _kind(line: str) -> str | None:
    """Return the kind of a key, which stands before its data and in them; None if the line is no key.

    Both are the first words, or those behind options.  Nothing is missing at the end of the data if their fields, each
    with its length before it, fill them.
    """
    for words in (line.split(), _OPTIONS.sub("", line).split()):
        with contextlib.suppress(ValueError):
            data, fields, end = base64.b64decode("".join(words[1:2]), validate=True), [], 0
            while end < len(data):
                begin, end = end + 4, end + 4 + int.from_bytes(data[end : end + 4], "big")
                fields.append(data[begin:end])
            if end == len(data) and len(fields) > 1 and fields[0].decode("ascii") == words[0]:
                return words[0]
    return None


def _fips_key(text: str) -> Iterator[Mistake]:
    """Yield a first key of a kind that FIPS excludes; the installer reads only the first."""
    kind = next(filter(None, map(_kind, _lines(text).values())), None)
    if kind is not None and not _FIPS_KEY.fullmatch(kind):
        yield Mistake("ssh_key", "FIPS does not allow a key of this kind", "give one of ssh-keygen -t ecdsa or -t rsa")


def are_public_keys(text: str) -> bool:
    """Whether a text consists of SSH public keys and comments, and may be shown."""
    return all(is_public_key(line) for line in _lines(text).values())


def _lines(text: str) -> dict[int, str]:
    """Return the lines that are neither empty nor comments, by number."""
    lines = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    return {number: line for number, line in lines if line and not line.startswith("#")}


# --- rules of the installer for mirrors of image repositories ---
#
# Source: the OpenShift installer's validation (types/validation/installconfig.go: validateNamedRepository), which
# takes names as containers/image docker/reference does: in full, without the parts that Docker adds.


_DOMAIN_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*(?::[0-9]+)?"
_PART = r"[a-z0-9]+(?:(?:[._]|__|[-]*)[a-z0-9]+)*"
_REPOSITORY = re.compile(rf"(?P<domain>{_DOMAIN})/(?P<path>{_PART}(?:/{_PART})*)")
_ID = re.compile("[a-f0-9]{64}")  # of an image, which no name may look like
_LONGEST = 255
DOCKER, ALIAS = "docker.io", "index.docker.io"


def _mirrors(cluster: InstallConfigFields, release: int) -> Iterator[Mistake]:
    for index, mirror in enumerate(cluster.image_mirrors):
        for name in (mirror.source, *mirror.mirrors):
            if not (_is_repository(name) or (_is_registry(name) and release in releases.REGISTRIES_ALONE)):
                fix = "write HOST/PATH in lowercase letters, without scheme, tag, digest, wildcard and trailing slash"
                yield Mistake(f"image_mirrors[{index}]", f"{name!r} is not a repository", fix)


def _is_repository(name: str) -> bool:
    """Whether a name is a repository in full: quay.io/okd/release, and neither okd/release nor quay.io/okd:tag."""
    found = _REPOSITORY.fullmatch(name)
    if not found or len(name) > _LONGEST:
        return False
    domain, path = found["domain"], found["path"]
    is_host = "." in domain or ":" in domain or domain == "localhost"
    return is_host and domain != ALIAS and (domain != DOCKER or "/" in path)


def _is_registry(name: str) -> bool:
    """Whether a name is a host, with or without its port."""
    return bool(re.fullmatch(rf"{SUBDOMAIN}(:[0-9]+)?", name)) and not _ID.fullmatch(name)


REGISTRY_RULES = (_mirrors,)
