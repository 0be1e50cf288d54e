"""Sessions and logins of keystoneauth: shared by threads, without ~/.netrc, and without waiting for themselves.

Redirects of services are followed only to the scheme, host and port that a token or password was sent to.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Iterator
from importlib.metadata import entry_points
from types import TracebackType
from typing import Any, Self
from urllib.parse import urljoin, urlsplit
from urllib.request import getproxies

import requests
from keystoneauth1 import loading
from keystoneauth1.exceptions import ConnectFailure, InvalidResponse, NoMatchingPlugin, Unauthorized
from keystoneauth1.exceptions import ConnectionError as NotConnected
from keystoneauth1.identity import v3

from openstack_prep import tracing
from openstack_prep.base.errors import CloudError
from openstack_prep.base.extras import install
from openstack_prep.base.raw import Raw
from openstack_prep.base.secret import Secret
from openstack_prep.base.secret_forms import unlogged
from openstack_prep.base.suggestion import suggest
from openstack_prep.cloud.entries import EntryMistake
from openstack_prep.cloud.request_log import recorded

CHECK_ENTRY = "check that entry of clouds.yaml: address, user, password, project and their domains"
CHECK_WAY = "check the auth_url of that entry, and the way there: name server, route, VPN, proxy"
CA_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Variables that requests reads beside those of proxies and ~/.netrc (requests 2.34.2, sessions.py)."""
LASTS = 5.0
"""Seconds in which a token that was valid for two minutes is not examined again."""


class DuringLogin(Exception):
    """The first cause of an error of a login, whose class keystoneauth's own handling needs unchanged."""


def keep_headers(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Authenticate a request by its headers alone.

    Without any such function, requests sends what ~/.netrc has for the host, whatever the port, in place of a header
    Authorization (requests 2.34.2, sessions.py, prepare_request).
    """
    return request


def fix_of(error: BaseException) -> str:
    """Return what to check after a login that failed; nothing for a fault of Keystone, or an error that says it."""
    busy = (getattr(error, "http_status", None) or 0) in (429, *range(500, 600))
    if busy or isinstance(error, RedirectRefused):
        return ""
    return CHECK_WAY if isinstance(error, ConnectFailure) else CHECK_ENTRY


BESIDE_AUTH = (
    "auth_type", "cacert", "cert", "identity_api_version", "insecure", "interface", "key", "profile", "region_name",
    "regions", "verify",
)  # fmt: skip
"""Settings of an entry that belong beside auth."""
SCOPE = ("project_name", "project_id", "domain_name", "domain_id", "system_scope", "trust_id")
"""What an application credential must not request (keystone 30.0.0, auth/plugins/application_credential.py)."""
PASSWORD = "password"
"""The way to log in of an entry that names none (openstacksdk 4.22.0, config/defaults.json)."""


def find_mistakes(entry: Raw) -> Iterator[EntryMistake]:
    """Yield what keeps keystoneauth from making the login of an entry that is a mapping with a mapping ``auth``."""
    auth, auth_type = entry.get("auth") or {}, str(entry.get("auth_type") or PASSWORD)
    try:
        loader: Any = loading.get_plugin_loader(auth_type)
    except (NoMatchingPlugin, AttributeError):  # of None, in place of lxml (keystoneauth1 5.18.1, _saml2/v3/base.py)
        loader = None
    if loader is None or not loader.available:
        # keystoneauth's own function imports all of them
        known = entry_points(group=loading.PLUGIN_NAMESPACE)
        if auth_type in known.names:
            what = f"{auth_type!r} needs a package of Python that is not installed"
            fix = f"{_install(known[auth_type].module)}, or write another auth_type"
        else:
            what = f"{auth_type!r} does not exist"
            fix = suggest(auth_type, sorted(known.names), "write such as v3password or v3applicationcredential")
        yield EntryMistake(("auth_type",), what, fix)
        return
    credential = [name for name in map(str, auth) if name.startswith("application_credential_")]
    if "auth_type" not in entry and credential:
        fix = "write auth_type: v3applicationcredential beside auth"
        yield EntryMistake(("auth_type",), f"is missing, although auth has {', '.join(credential)}", fix)
        return
    options, from_vendor = loader.get_options(), "profile" in entry or "cloud" in entry
    settings = {name for option in options for name in (option.dest, *(other.dest for other in option.deprecated))}
    for name in map(str, auth):
        if name.replace("-", "_") in settings:
            continue
        if name == "token" and "auth_type" not in entry:
            yield EntryMistake(("auth_type",), "is missing, although auth has a token", "write auth_type: v3token")
        elif name in BESIDE_AUTH:
            fix = "move it out of auth, to the level of auth itself"
            yield EntryMistake(("auth", name), "is not a setting of auth", fix)
        else:
            fix = suggest(name, sorted(settings), "remove it")
            yield EntryMistake(("auth", name), f"is not a setting of auth_type {auth_type}", fix)
    if auth_type == "v3applicationcredential":
        for name in SCOPE:
            if name in auth:
                yield EntryMistake(("auth", name), "is a scope, which Keystone refuses beside it", "remove it")
    for option in options:
        names = (option.dest, *(other.dest for other in option.deprecated))
        if option.required and not any(auth.get(name) or entry.get(name) for name in names) and not from_vendor:
            yield EntryMistake(("auth", option.dest), "is missing", "write it")


def _install(module: str) -> str:
    """Return how to install what a plugin needs, whose module of keystoneauth names the extra: extras/_saml2."""
    found = re.match(r"(keystoneauth1)\.extras\._?(\w+)", module)
    return install(found[2], found[1]) if found else "install it beside openstack_prep"


def by_password(auth_url: str, username: str, password: Secret, user_domain: str, project_id: str | None) -> Any:
    """Return the plugin that logs a user in, to a project or unscoped."""
    return v3.Password(
        auth_url,
        username=username,
        password=password.reveal(),
        user_domain_name=user_domain,
        project_id=project_id,
    )


def is_login(error: BaseException) -> bool:
    """Whether an error is that of a login, which a request to another service may have needed."""
    return isinstance(error.__cause__, DuringLogin)


def prepare(session: Any) -> None:
    """Prepare a session of keystoneauth for threads, for redirects, and for spans if somebody asks for them."""
    _share(session.auth)
    session.session.auth = session.session.auth or keep_headers
    if session.verify is True:
        session.verify = next(filter(None, map(os.environ.get, CA_VARIABLES)), True)
    if not getproxies():
        session.session.trust_env = False  # requests would go through all variables twice per request
    keep_at_address(session)
    tracing.trace_requests(session.session)


def _share(plugin: Any) -> None:
    """Have all threads renew one token together: replace functions of a keystoneauth plugin that keeps a token.

    When threads get 401 with one token, keystoneauth lets the first one log in again. The second one finds no token to
    discard, and gives up although a new one is on its way; or discards the new one while another thread returns it
    (keystoneauth1 5.18.1, identity/base.py, invalidate and get_access).
    """
    if hasattr(plugin, "_lock") and not isinstance(plugin._lock, _Lock):
        plugin._lock = _Lock()
        login = _Login(plugin)
        plugin.get_access, plugin.invalidate, plugin.get_headers = login.get_access, login.invalidate, login.get_headers


class _Login:
    """The token of a plugin, and which one each thread has used last.

    No login is logged: those by SAML and OAuth 2.0 log passwords and tokens (keystoneauth1 5.18.1, extras/_saml2/v3,
    identity/v3/oauth2_client_credential.py).
    """

    def __init__(self, plugin: Any) -> None:
        self._plugin, self._of_thread = plugin, threading.local()
        self._discard, self._headers = plugin.invalidate, plugin.get_headers
        self._lasting, self._until = None, 0.0

    def get_access(self, session: Any, **options: object) -> Any:
        """Return the present token, from a new login if necessary; raises what keystoneauth raises."""
        plugin = self._plugin
        with plugin._lock:
            if self._is_over():
                with recorded("POST", "identity", "/auth/tokens") as asked, _explained(plugin.auth_url), unlogged():
                    access = plugin.get_auth_ref(session)
                    _ = access.user_id, access.username, access.role_names, access.service_catalog  # of a whole answer
                    plugin.auth_ref, asked.status = access, 201
            self._of_thread.used = plugin.auth_ref
            return plugin.auth_ref

    def get_headers(self, session: Any) -> Any:
        """Return the headers of a request, for which OAuth 2.0 asks another server (v3oauth2clientcredential)."""
        with unlogged():
            return self._headers(session)

    def _is_over(self) -> bool:
        """Whether there is no token, or one that ends soon: keystoneauth reads two times of each token to tell."""
        if (
            self._plugin.auth_ref is None
            or self._plugin.auth_ref is not self._lasting
            or time.monotonic() > self._until
        ):
            self._lasting, self._until = None, time.monotonic() + LASTS
            if self._plugin._needs_reauthenticate():
                return True
            self._lasting = self._plugin.auth_ref
        return False

    def invalidate(self) -> bool:
        """Discard the token that this thread has used, which a service has refused; return whether to try again."""
        with self._plugin._lock:
            if self._plugin.auth_ref is getattr(self._of_thread, "used", None):
                return bool(self._discard())
            return True  # another thread has discarded it, and may have logged in again already


@contextlib.contextmanager
def _explained(url: str) -> Iterator[None]:
    """Give errors DuringLogin for a cause; raise CloudError for an answer whose shape keystoneauth does not check."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError, InvalidResponse) as error:
        doing = f"POST identity/auth/tokens of {url}"
        what = f"{doing}: the answer is not that of Keystone ({type(error).__name__}); check auth_url of the entry"
        raise CloudError(what, retryable=True) from None
    except Exception as error:
        login = DuringLogin(f"POST identity/auth/tokens of {url}")
        login.__cause__ = error.__cause__
        raise error from login


class _Lock:
    """A lock that raises Unauthorized where the thread would wait for itself, for ever.

    When Keystone answers 401 to the request for its versions, keystoneauth repeats it with a token, for which it needs
    the versions (keystoneauth1 5.18.1, discover.get_version_data and identity/base.get_access). After Unauthorized it
    takes the version from the URL.
    """

    def __init__(self) -> None:
        self._lock, self._owner = threading.Lock(), 0

    def __enter__(self) -> Self:
        if self._owner == threading.get_ident():
            raise Unauthorized("Keystone refuses to list its versions without a token")
        self._lock.acquire()
        self._owner = threading.get_ident()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._owner = 0
        self._lock.release()


# --- redirects ---------------------------------------------------------------------------


REDIRECTS = (301, 302, 303, 305, 307, 308)
"""Those that keystoneauth follows (keystoneauth1 5.18.1, session.py, _REDIRECT_STATUSES)."""
PORTS = {"http": 80, "https": 443}
REDIRECT_FIX = (
    "if that target is right, write it as auth_url, or as the service's *_endpoint_override, in the entry of "
    "clouds.yaml; otherwise ask the cloud's administrator to correct the endpoint"
)


class RedirectRefused(NotConnected):
    """A service redirects to another address.

    It is an error of keystoneauth's, so that a version document that cannot be read stays what it is for keystoneauth:
    the endpoint of the catalogue is used without it (keystoneauth1 5.18.1, discover.py, _run_discovery).
    """


def stay_at_address(answer: requests.Response, *_: object, **__: object) -> None:
    """Raise RedirectRefused for a redirect to another scheme, host or port; a hook of a session of requests.

    keystoneauth sends method, headers and body again, wherever a redirect leads (keystoneauth1 5.18.1, session.py,
    _send_request). It takes the target as it is written, so that a relative one is completed here.
    """
    if answer.status_code not in REDIRECTS:
        return
    asked = f"{answer.request.method} {_shown(str(answer.url))} answers {answer.status_code}, a redirect"
    target = answer.headers.get("Location")
    if not target:
        raise RedirectRefused(f"{asked} without a target; {REDIRECT_FIX}")
    url = _as_sent(str(answer.url), target)
    if url is None or _endpoint(url) != _endpoint(str(answer.url)):
        where = "what is not a URL" if url is None else _shown(url)
        raise RedirectRefused(
            f"{asked} to {where}, and tokens and passwords are sent to no other scheme, host or port; {REDIRECT_FIX}"
        )
    answer.headers["Location"] = url


def keep_at_address(session: Any) -> None:
    """Have a session of keystoneauth, and all that share its connections, refuse redirects to other addresses."""
    hooks = session.session.hooks["response"]
    if stay_at_address not in hooks:
        hooks.append(stay_at_address)


def _as_sent(base: str, target: str) -> str | None:
    """Return the URL of a target as requests would send it, whose parser tells what the host is; None if it refuses."""
    request = requests.PreparedRequest()
    try:
        request.prepare_url(urljoin(base, target), None)
        _endpoint(str(request.url))
    except (requests.RequestException, ValueError):
        return None
    return request.url


def _endpoint(url: str) -> tuple[str, str | None, int | None]:
    """Return scheme, host and port of a URL."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or PORTS.get(parts.scheme)


def _shown(url: str) -> str:
    """Return a URL without a login and without its query, which may hold a signature."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
