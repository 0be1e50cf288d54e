"""Secrets that another program has: a command of the user's own, HashiCorp Vault or OpenBao, the keyring of a desktop.

Each function checks what a spec says and returns what fetches the secret; nothing is started or asked before that.
Sources: Vault's HTTP API, "KV Secrets Engine" versions 1 and 2 and "/sys/internal/ui/mounts"; the package keyring,
"Using Keyring".
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from openstack_prep.base import shell
from openstack_prep.base.errors import ConfigError
from openstack_prep.base.extras import install
from openstack_prep.base.given_file import MOST_SECRET
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.programs import hide_arguments, output_of

if TYPE_CHECKING:
    import requests

Fetch = Callable[[], str]
PATIENCE = 120.0
"""Seconds that a command may take: a person may have to touch a key."""
ANSWER = 30.0
"""Seconds that Vault may take to answer."""


def from_command(words: object, base: Path) -> Fetch:
    """Return what runs a command, without a shell, in the folder of the spec; its output is the secret.

    What it writes to its standard error goes to the terminal.
    """
    if not isinstance(words, list) or not words or not all(map(_is_word, words)):
        raise InvalidValue("is not a list of words", "write {command: [sops, -d, secret.txt]}")
    shown = f"the command {hide_arguments(words[0], base)} of a secret"

    def fetch() -> str:
        try:
            printed = output_of(words, shown, folder=base, most=MOST_SECRET, seconds=PATIENCE)
        except InvalidValue as error:
            raise ConfigError(str(error)) from None
        return _text(printed, shown)

    return fetch


def _is_word(value: object) -> bool:
    """Whether a value can be an argument of a program."""
    return isinstance(value, str) and bool(value) and "\0" not in value


def _text(content: bytes, shown: str) -> str:
    """Return a secret without the line end that programs add; raises ConfigError."""
    try:
        text = content.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise ConfigError(f"{shown} printed something that is not UTF-8 text") from None
    if not text:
        raise ConfigError(f"{shown} printed nothing")
    return text


def from_vault(where: object) -> Fetch:
    """Return what reads one key of a secret in Vault, as ``secret/shop#password``; ``vault kv get`` takes this path.

    VAULT_ADDR, VAULT_TOKEN (or ~/.vault-token), VAULT_NAMESPACE, VAULT_CACERT and VAULT_SKIP_VERIFY are Vault's own.
    """
    path, _, key = where.partition("#") if isinstance(where, str) else ("", "", "")
    if "/" not in path.strip("/") or not key:
        raise InvalidValue("is not a path with a key", "write {vault: secret/shop#password}")

    def fetch() -> str:
        client = _vault()
        from hvac.exceptions import VaultError  # an extra, as below
        from requests import RequestException  # takes long to load, and hvac needs it

        try:
            found = _vault_data(client, path.strip("/"))
        except (VaultError, RequestException, LookupError, TypeError, ValueError) as error:  # or an answer of no form
            raise ConfigError(f"Vault: {path} cannot be read: {type(error).__name__}; {_vault_fix(error)}") from None
        value = found.get(key)
        if not isinstance(value, str) or not value:
            known = f"it has {', '.join(sorted(found))}" if found else "it does not exist"
            raise ConfigError(f"Vault: {path} has no text {key}; {known}")
        return value

    return fetch


def _vault() -> Any:
    try:
        import hvac  # an extra
    except ImportError:
        raise ConfigError(f"{{vault: ...}} needs a package that is not installed; {install('vault')}") from None
    if not os.environ.get("VAULT_ADDR"):
        raise ConfigError("{vault: ...}: VAULT_ADDR is not set; export the address of the server")
    client = hvac.Client(timeout=ANSWER, namespace=os.environ.get("VAULT_NAMESPACE"))
    client.session.hooks["response"].append(_stay_in_tls)
    return client


def _stay_in_tls(answer: requests.Response, *_: object, **__: object) -> None:
    """Raise ConfigError for a redirect out of TLS, to which the token would go, as Vault's client does.

    Source: Vault, api/client.go, rawRequestWithContext, in all releases ("redirect would cause protocol downgrade").
    """
    target = urljoin(str(answer.url), answer.headers.get("Location", ""))
    if answer.is_redirect and str(answer.url).startswith("https:") and not target.startswith("https:"):
        raise ConfigError("Vault redirects to a URL without TLS, to which no token is sent; correct VAULT_ADDR")


def _vault_data(client: Any, path: str) -> dict[str, Any]:
    """Return the values of a secret; empty if there is none."""
    mount = client.read(f"sys/internal/ui/mounts/{path}")["data"]
    if (mount.get("options") or {}).get("version") != "2":
        return dict((client.read(path) or {}).get("data") or {})
    at, rest = mount["path"], path.removeprefix(mount["path"])
    found = client.read(f"{at}data/{rest.removeprefix('data/')}")
    return dict(((found or {}).get("data") or {}).get("data") or {})


def _vault_fix(error: Exception) -> str:
    if type(error).__name__ in ("Forbidden", "Unauthorized"):
        return "log in with `vault login`, or check the policies of the token"
    return "check VAULT_ADDR, VAULT_NAMESPACE and VAULT_CACERT"


def from_keyring(where: object) -> Fetch:
    """Return what asks the keyring of the desktop, for ``service/user name`` as ``keyring get`` takes them."""
    service, _, user = where.rpartition("/") if isinstance(where, str) else ("", "", "")
    if not service or not user:
        raise InvalidValue("is not a service with a user name", "write {keyring: openstack/shop}")

    def fetch() -> str:
        try:
            import keyring  # an extra
        except ImportError:
            raise ConfigError(f"{{keyring: ...}} needs a package that is not installed; {install('keyring')}") from None
        try:
            found = keyring.get_password(service, user)
        except keyring.errors.KeyringError as error:
            raise ConfigError(f"the keyring cannot be read: {type(error).__name__}; unlock it") from None
        if not found:
            add = shell.join(["keyring", "set", service, user])
            raise ConfigError(f"the keyring has no password of {user} for {service}; add it: {add}")
        return str(found)

    return fetch
