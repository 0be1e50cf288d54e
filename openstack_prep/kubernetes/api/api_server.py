"""Lists and watches Services and Nodes at an API server.

Two lists and a watch need no more than urllib3: the official client has 3,000 generated modules, writes the client key
to a file, which stays when the process is killed, and reports a damaged certificate as an error of the connection.

Sources: Kubernetes documentation, "Kubernetes API Concepts" (limit and continue, watch, bookmarks, 410 Gone);
Kubernetes 1.36, staging/src/k8s.io/apiserver/pkg/endpoints/handlers/get.go and watch.go;
staging/src/k8s.io/client-go/tools/clientcmd/client_config.go (ClientConfig: proxy-url is for every server, whatever
NO_PROXY says).
"""

from __future__ import annotations

import base64
import contextlib
import json
import ssl
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

import urllib3
from requests.utils import get_environ_proxies
from urllib3 import BaseHTTPResponse
from urllib3.exceptions import HTTPError, NameResolutionError, ProtocolError
from urllib3.exceptions import TimeoutError as NoAnswer
from urllib3.util import make_headers

from openstack_prep.base.errors import ConfigError, PrepError
from openstack_prep.base.raw import Raw, Values
from openstack_prep.base.secret_forms import hide
from openstack_prep.kubernetes.api import kubeconfig
from openstack_prep.kubernetes.api.kubeconfig import Access
from openstack_prep.kubernetes.services import EVERYWHERE
from openstack_prep.version import __version__


class ClusterError(PrepError):
    """The API server of a Kubernetes cluster refused a request, or did not answer; nothing was changed.

    ``status`` is that of its answer, if there was one.
    """

    code = "kubernetes.api"

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


# --- proxy ------------------------------------------------------------------------------------


def pool_of(access: Access) -> urllib3.PoolManager:
    """Return the connections to an API server, by way of its proxy or that of the environment; raises ConfigError."""
    options: Values = {"ssl_context": context_of(access), "server_hostname": access.server_name, "retries": False}
    # not ALL_PROXY, which Go does not know (golang.org/x/net, http/httpproxy/proxy.go, FromEnvironment)
    of_environment = get_environ_proxies(access.server).get(urlsplit(access.server).scheme)
    proxy = access.proxy.reveal() if access.proxy else of_environment
    if not proxy:
        return urllib3.PoolManager(**options)
    try:
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username is not None else None
        # urllib3 ignores the name and password in the URL
        return urllib3.ProxyManager(parts.geturl(), proxy_headers=make_headers(proxy_basic_auth=login), **options)
    except ValueError:  # urllib3 refuses the scheme; the URL may contain a password
        fix = "write one such as http://192.0.2.1:3128, or except the server with NO_PROXY"
        what = f"{access.name}: HTTPS_PROXY or HTTP_PROXY is not the URL of a proxy for HTTP; {fix}"
        raise ConfigError(what) from None


# --- tls --------------------------------------------------------------------------------------


RENEW = "renew it, or copy the kubeconfig from the cluster again"


def context_of(access: Access) -> ssl.SSLContext:
    """Return the TLS context for an API server; raises ConfigError for what cannot work."""
    try:
        # comments between certificates may contain any characters
        authorities = access.ca.encode("ascii", "ignore").decode() if access.ca else None
        context = ssl.create_default_context(cadata=authorities)
    except (ssl.SSLError, ValueError):
        raise ConfigError(f"{access.name}: certificate-authority is not a certificate in PEM format; {RENEW}") from None
    # clusters sign their own certificates, often without the extensions that Python 3.13 wants; kubectl accepts these
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not access.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if access.certificate and access.key:
        _refuse_expired(access.name, access.certificate)
        _load(context, access.name, f"{access.certificate}\n{access.key.reveal()}\n")
    return context


def _refuse_expired(name: str, certificate: str) -> None:
    """Refuse a certificate whose time is over: an API server only answers 401, like for any other wrong one."""
    from cryptography import x509  # few kubeconfigs have certificates

    try:
        until = x509.load_pem_x509_certificate(certificate.encode()).not_valid_after_utc
    except ValueError:
        raise ConfigError(f"{name}: client-certificate is not a certificate in PEM format; {RENEW}") from None
    if until < datetime.now(UTC):
        raise ConfigError(f"{name}: client-certificate expired on {until:%Y-%m-%d %H:%M} UTC; {RENEW}")


def _load(context: ssl.SSLContext, name: str, pem: str) -> None:
    """Load a certificate with its key, which ssl only reads from a file: one of mode 0600, deleted at once."""
    with tempfile.NamedTemporaryFile("w", prefix="openstack-prep-", encoding="utf-8") as file:
        file.write(pem)
        file.flush()
        try:
            context.load_cert_chain(file.name, password=lambda: b"")  # without a password, OpenSSL would prompt
        except (ssl.SSLError, OSError) as error:
            if isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
                what = f"client-key does not belong to client-certificate; {RENEW}"
            else:
                what = "client-key cannot be read; use a key in PEM format without a password"
            raise ConfigError(f"{name}: {what}") from None


# --- server -----------------------------------------------------------------------------------


PAGE = 500
"""Objects per request, as kubectl has it."""
CONNECT, ANSWER = 10.0, 60.0
"""Seconds for a connection, and without data or for a whole page."""
LATE = 15.0
"""Seconds after its end at which a watch without any data counts as lost."""
MOST = 256 * 2**20
"""Bytes of all pages of a list; etcd refuses objects with more than 1.5 MiB."""
CHUNK = 2**16
GONE = 410
MOST_OF_REFUSAL = 2**16
"""Bytes that are read of an answer other than 200."""
PLURALS = {"Service": "services", "Node": "nodes"}


@dataclass(frozen=True)
class ObjectList:
    """All objects of a kind; ``text`` is what ``kubectl get -A -o json`` prints of them.

    ``version`` is that of the whole list, from which a watch continues; ``count`` is how many objects there are.
    ``cluster`` distinguishes clusters, in a list of Services: the uid of the one that every cluster has.
    """

    text: str
    version: str
    count: int
    cluster: str = ""


class ApiServer:
    """A connection to an API server; not for several threads."""

    def __init__(self, access: Access) -> None:
        """Prepare a connection; raises ConfigError for certificates and proxies that cannot work."""
        self.name, self.url, self.context = access.name, access.server, access.context
        # as kubectl: no credentials without TLS (Kubernetes 1.36, client-go, tools/clientcmd/client_config.go)
        self._authorization = access.authorization if access.server.startswith("https:") else None
        self._pool = pool_of(access)
        if not access.verify:
            _accept_insecure()

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def services(self) -> ObjectList:
        """Return all Services; raises ClusterError.

        A list without the Service that every cluster has is refused: a cluster that has lost its data, or is about to
        start, must not remove what it needs when it is back.
        """
        items, version = self._items("Service")
        own = next((item for item in items if _name(item) == EVERYWHERE), None)
        if own is None:
            what = f"{self.name} lists no Service {EVERYWHERE}, which every cluster has"
            raise ClusterError(f"{what}: it is starting, or has lost its data; nothing was changed")
        return ObjectList(_text("Service", items), version, len(items), str(own["metadata"].get("uid")))

    def nodes(self) -> ObjectList:
        """Return all Nodes; raises ClusterError."""
        items, version = self._items("Node")
        return ObjectList(_text("Node", items), version, len(items))

    def _items(self, kind: str) -> tuple[list[Raw], str]:
        items: list[Raw] = []
        following: dict[str, str] = {}
        left = MOST
        while True:
            with self._explained(kind, "list"):
                content = _whole(self._get(kind, "list", ANSWER, {"limit": str(PAGE)} | following), left)
            left -= len(content)
            page, version, more = self._page(kind, content)
            items += page
            if not more:
                return items, version
            following = {"continue": more}

    def _page(self, kind: str, content: bytes) -> tuple[list[Raw], str, str | None]:
        """Return the objects of a page, the version of the list, and the name of the next page."""
        try:
            page = json.loads(content)
            items, metadata = page["items"] or [], page["metadata"]
            version, more = metadata["resourceVersion"], metadata.get("continue")
            good = page["kind"] == f"{kind}List" and all(isinstance(item, dict) for item in items)
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
            good = False
        if not good or not isinstance(version, str):
            what = f"{self.name}: {self.url} answers with something other than a list of {kind}s"
            raise ClusterError(f"{what}; check the address of the API server")
        return items, version, more

    def wait_for_change(self, version: str, seconds: int) -> None:
        """Return when a Service has changed since a version, when the version is too old, or after some seconds.

        Raises ClusterError.
        """
        began = time.monotonic()
        try:
            if any(map(self._is_change, self._events(version, seconds))):
                return
        except ClusterError as error:
            if error.status == GONE:
                return
            raise
        if time.monotonic() - began < min(seconds, CONNECT) / 2:
            raise ClusterError(f"{self.name}: {self.url} ended a watch at once")

    def _events(self, version: str, seconds: int) -> Iterator[bytes]:
        """Yield the events of Services, each as a line."""
        since = {"resourceVersion": version, "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds)}
        with self._explained("Service", "watch"):
            yield from _lines(self._get("Service", "watch", seconds + LATE, {"watch": "true"} | since))

    def _is_change(self, line: bytes) -> bool:
        """Whether an event is one of a Service, or says that the version is too old; raises ClusterError."""
        try:
            event = json.loads(line)
            kind, about = event["type"], event["object"]
            code, message = about.get("code"), about.get("message")
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
            raise ClusterError(f"{self.name}: {self.url} sends something other than events") from None
        if kind == "ERROR" and code != GONE:
            raise ClusterError(f"{self.name}: {self.url} ended a watch: {self._shown(message)}")
        return bool(kind != "BOOKMARK")

    def _get(self, kind: str, verb: str, seconds: float, query: Mapping[str, str]) -> BaseHTTPResponse:
        """Return the answer to a request, of which nothing is read yet; raises ClusterError."""
        headers = {"Accept": "application/json", "User-Agent": f"openstack-prep/{__version__}"}
        if self._authorization:
            headers["Authorization"] = self._authorization.reveal()
        response = self._pool.request(
            "GET",
            f"{self.url}/api/v1/{PLURALS[kind]}",
            fields=query,
            headers=headers,
            timeout=urllib3.Timeout(connect=CONNECT, read=seconds),
            redirect=False,  # it would get the credentials, too
            preload_content=False,
        )
        if response.status == 200:
            return response
        message = self._shown(_message(response.read(MOST_OF_REFUSAL)))
        why = _refusal(response.status, message, f"{verb} {PLURALS[kind]}")
        response.close()
        raise ClusterError(f"{self._doing(kind, verb)}: {why}", status=response.status)

    def _doing(self, kind: str, verb: str) -> str:
        return f"{self.name}: cannot {verb} {PLURALS[kind]} of {self.url}"

    @contextlib.contextmanager
    def _explained(self, kind: str, verb: str) -> Iterator[None]:
        """Turn the exceptions of connections into ClusterError."""
        try:
            yield
        except (HTTPError, OSError) as error:
            raise ClusterError(f"{self._doing(kind, verb)}: {_cause(error)}") from None

    def _shown(self, message: object) -> str:
        """Return the beginning of a server's message, without our credentials, which it may repeat."""
        scheme, _, credentials = (self._authorization.reveal() if self._authorization else "").partition(" ")
        login = base64.b64decode(credentials).decode().partition(":")[2] if scheme == "Basic" else ""
        return hide(message, (credentials, login))[:300] if isinstance(message, str) else "without a message"


def _accept_insecure() -> None:
    """Have urllib3 not warn about each connection: the kubeconfig has chosen it."""
    urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)


def _name(item: Raw) -> str:
    metadata = item.get("metadata")
    return f"{metadata.get('namespace')}/{metadata.get('name')}" if isinstance(metadata, dict) else ""


def _text(kind: str, items: list[Raw]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": f"{kind}List", "items": items})


def _whole(response: BaseHTTPResponse, most: int) -> bytes:
    """Return an answer; raises TimeoutError if it takes too long, OSError if it is too long."""
    until = time.monotonic() + ANSWER
    content = bytearray()
    for chunk in response.stream(CHUNK):
        content += chunk
        if len(content) > most:
            raise OSError(f"the list has more than {MOST // 2**20} MiB")
        if time.monotonic() > until:
            raise TimeoutError
    return bytes(content)


def _lines(response: BaseHTTPResponse) -> Iterator[bytes]:
    """Yield the events of a watch, which are one per line; closes it afterwards."""
    rest = b""
    try:
        for chunk in response.stream(CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            yield from filter(None, lines)
            if len(rest) > MOST:
                raise OSError("an event is too long")
    finally:
        response.close()


def _refusal(status: int, message: str, right: str) -> str:
    """Return why an API server refuses, and what to do."""
    if status == 401:
        return "401, it does not accept these credentials; renew the token or certificate, or log in again"
    why = f"{status} {message}".rstrip()
    if status == 403:
        return f"{why}; allow this user to {right} in all namespaces, by a ClusterRole and a ClusterRoleBinding"
    return f"{why}; check the address of the API server" if status == 404 else why


def _message(body: bytes) -> object:
    """Return the message of a Status of Kubernetes; whatever else a server answers may contain anything."""
    try:
        status = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(status, dict) or status.get("kind") != "Status":
        return ""
    return status.get("message")


def _cause(error: BaseException) -> str:
    """Return why there was no answer, in the words of the innermost exception that has some."""
    chain = list(_chain(error))
    for each in chain:
        if isinstance(each, ssl.SSLCertVerificationError):
            return f"its certificate is not accepted: {each.verify_message}"
        if isinstance(each, NameResolutionError):
            return "the name of the server does not resolve"
    for each in chain:
        if isinstance(each, ssl.SSLError) and each.reason:
            return f"TLS fails: {each.reason.lower().replace('_', ' ')}"
        if isinstance(each, OSError) and each.errno and each.strerror:
            return each.strerror.lower()
    kinds = {"it does not answer in time": (NoAnswer, TimeoutError), "the connection broke": (ProtocolError,)}
    for words, types in kinds.items():
        if any(isinstance(each, types) for each in chain):
            return words
    return str(chain[-1]) if type(chain[-1]) is OSError else f"the connection failed ({type(error).__name__})"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and those that led to it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        inner = [getattr(error, "reason", None), *error.args, error.__cause__, error.__context__]
        error = next((each for each in inner if isinstance(each, BaseException) and id(each) not in seen), None)


# --- cluster ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunningCluster:
    """A running cluster; nothing is read before it is opened, and everything is read again each time."""

    kubeconfig: Path
    context: str | None = None
    """Default: the current context of the kubeconfig."""

    def __str__(self) -> str:
        return f"context {self.context} of {self.kubeconfig}" if self.context else str(self.kubeconfig)

    @contextmanager
    def open(self) -> Iterator[ApiServer]:
        """Connect; raises SpecError and ConfigError for a kubeconfig that cannot work."""
        server = ApiServer(kubeconfig.read(self.kubeconfig, self.context))
        try:
            yield server
        finally:
            server.close()
