"""The first contact with a scheduler of Dask: what is wrong with its address, with the settings of TLS, or its answer.

A Client of distributed is too late for that: one that cannot connect blocks for a minute when it is deleted, and one
whose scheduler accepts a connection and then is silent waits for ever.

Sources: distributed 2026.8.0: client.py (Client.__del__, _start), comm/core.py (connect: no limit for its handshake),
comm/tcp.py (which errors there are), security.py (no check of host names: the CA alone decides), distributed.yaml.
"""

from __future__ import annotations

import asyncio
import importlib
import ipaddress
import ssl
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from openstack_prep.base.errors import ConfigError

ENCRYPTED = ("tls", "wss")
TLS = "distributed.comm.tls"
FILES = {"ca-file": "ca_file", "client.cert": "cert", "client.key": "key"}
"""Settings of Dask, and what its Security calls them; the key may stand in the file of the certificate."""


def patience() -> float:
    """Return for how many seconds to wait for a scheduler, and for its first worker."""
    settings, utils = _module("dask.config"), _module("dask.utils")
    seconds: float = utils.parse_timedelta(settings.get("distributed.comm.timeouts.connect"))
    return seconds


def reach(address: str) -> None:
    """Connect to a scheduler and hang up; raises ConfigError."""
    try:
        security = _module("distributed.security").Security()
    except ValueError as error:  # a value of Dask's configuration
        raise ConfigError(str(error)) from error
    if problems := list(_problems(security, is_needed=_scheme(address) in ENCRYPTED)):
        raise ConfigError(f"{'; '.join(problems)}; set the files of your certificates in Dask's configuration")
    seconds = patience()

    async def shake_hands() -> None:
        connecting = _module("distributed.comm").connect(
            address, timeout=seconds, **security.get_connection_args("client")
        )
        made = await asyncio.wait_for(connecting, seconds + 1)  # later than its own limit, which knows more
        await made.close()

    try:
        _module("distributed.utils").LoopRunner().run_sync(shake_hands)
    except (OSError, RuntimeError, TimeoutError, ValueError, TypeError, MemoryError) as error:
        raise ConfigError(_explained(error, address, seconds)) from error


def is_open(address: str) -> bool:
    """Whether traffic with an address leaves this machine and is not encrypted."""
    if _scheme(address) in ENCRYPTED:
        return False
    host = urlsplit(f"//{address.rpartition('://')[2]}").hostname or ""
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name
        return host != "localhost"


def _module(name: str) -> Any:
    return importlib.import_module(name)  # distributed has no complete types, and is there with an extra only


def _scheme(address: str) -> str:
    scheme: str = _module("distributed.comm").parse_address(address)[0]
    return scheme


def _problems(security: Any, *, is_needed: bool) -> Iterator[str]:
    """Yield what is wrong with our files for TLS, which Dask reads also where it does not need them."""
    found = security.get_tls_config_for_role("client")
    paths = {setting: found[name] for setting, name in FILES.items()}
    missing = [f"{TLS}.{setting}" for setting in ("ca-file", "client.cert") if not paths[setting]]
    if missing and is_needed:
        yield f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set, which TLS needs"
    unread = False
    for setting, path in paths.items():
        try:
            if path and "\n" not in path:  # otherwise it is the content
                open(path, "rb").close()
        except OSError as error:
            unread = True
            yield f"{TLS}.{setting}: {path}: {error.strerror}"
    if not (missing or unread):
        yield from _useless(security, paths)


def _useless(security: Any, paths: dict[str, str | None]) -> Iterator[str]:
    try:
        security.get_connection_args("client")
    except ssl.SSLError:
        is_authority = _is_authority(paths["ca-file"] or "")
        setting = "client.cert" if is_authority else "ca-file"
        what = "a certificate and its key (which may be in a file of its own: client.key)"
        yield f"{TLS}.{setting}: {paths[setting]} does not have {what if is_authority else 'a certificate'} in PEM"


def _is_authority(text: str) -> bool:
    try:
        is_content = "\n" in text
        ssl.create_default_context(cafile=None if is_content else text, cadata=text if is_content else None)
    except ssl.SSLError:
        return False
    return True


def _explained(error: BaseException, address: str, seconds: float) -> str:
    """Return what went wrong at the first contact, and what to do."""
    chain = list(_chain(error))
    text = " ".join(str(chain[-1]).split()) or "no answer"
    certificate = f"set {TLS}.client.cert to one that the scheduler's CA has issued and that has not expired"
    for each in chain:
        if isinstance(each, ssl.SSLCertVerificationError):
            fix = f"check {TLS}.ca-file, and the scheduler's certificate"
            return f"the certificate of the scheduler is not valid: {each.verify_message}; {fix}"
        if isinstance(each, ssl.SSLError) and "ALERT" in (each.reason or ""):
            return f"the scheduler refuses your certificate: {each.reason}; {certificate}"
        if isinstance(each, ssl.SSLEOFError):  # for half of those that it refuses the alert is lost
            return f"the scheduler ends the connection, and may refuse your certificate ({text}); {certificate}"
        if isinstance(each, ssl.SSLError) or "cannot convert to SSL" in str(each):  # its first bytes were plain
            return f"it does not speak TLS ({text}); start the scheduler with certificates and --protocol tls"
    fix = "check the address, and that the scheduler runs"
    if str(error).startswith("Timed out"):
        return f"no connection within {seconds:g} s ({text}); {fix}"
    if isinstance(error, TimeoutError):
        return f"it accepts connections, but no scheduler has answered within {seconds:g} s; {fix}"
    if isinstance(error, ValueError):
        return f"{text}; use an address such as tls://10.0.0.5:8786"
    if isinstance(error, RuntimeError):  # distributed.comm.require-encryption
        return f"{text}; use tls://"
    fix = certificate if _scheme(address) in ENCRYPTED else f"use tls:// if the scheduler has certificates, or {fix}"
    return f"the connection ends ({text}); {fix}"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what has led to it; tornado keeps the error of a closed stream aside."""
    while error is not None:
        yield error
        error = getattr(error, "real_error", None) or error.__cause__ or error.__context__
