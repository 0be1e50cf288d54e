"""One service's API: requests with retries, pages, and errors as PrepErrors.

Requests go through the SDK's service clients, so that all settings of a clouds.yaml entry (region, interface, endpoint
overrides, retries, CA bundle) apply here, too.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, Self, TypeVar, cast

import requests
import tenacity
from keystoneauth1.exceptions import SSLError, UnknownConnectionError
from openstack.connection import Connection
from requests.exceptions import ChunkedEncodingError

from openstack_prep import tracing
from openstack_prep.base import certificate
from openstack_prep.base.errors import CloudError, ConfigError, NotFound
from openstack_prep.base.invalid import DOTS
from openstack_prep.base.raw import Raw, Values
from openstack_prep.base.secret import Secret
from openstack_prep.cloud import entries, request_log
from openstack_prep.cloud.answers import (
    Answer,
    AnswerOrigin,
    Misshapen,
    in_use,
    next_page,
    page_reader,
    read_list,
    read_object,
)
from openstack_prep.cloud.translation import translate

RETRIES = 4
PAUSE = 0.5  # seconds before the first retry; doubled each time, as keystoneauth does
READ_AGAIN = 2  # retries of a GET whose answer has a wrong shape
RETRIABLE = (429, 502, 503, 504)
READING = ("GET", "HEAD")
NOT_LOGGED = (("orchestration", ""), ("object-store", ""), ("compute", "/servers"))
"""Services, and beginnings of paths, whose requests or answers may hold secrets, in whichever place: templates,
environments, outputs and events of stacks; Temp-URL keys of accounts and containers; user data and metadata of servers.
"""
T = TypeVar("T")


class Service:
    """One API of one cloud, for one identity.

    Requests that may be sent twice are retried by keystoneauth, those that only read also after 500. A POST is not,
    except after 429, which means that nothing was done: its answer may be lost although it succeeded.
    """

    def __init__(
        self, connection: Connection, service_type: str, microversion: str | None = None, **options: Any
    ) -> None:
        def client(connect_retries: int, retriable: Collection[int]) -> Any:
            made = connection.config.get_session_client(
                service_type,
                connect_retries=connect_retries,
                status_code_retries=connection.config.get_status_code_retries(service_type) or RETRIES,
                retriable_status_codes=list(retriable),
                **options,
            )
            made.default_microversion = microversion or made.default_microversion
            if service_type == "identity" and made.endpoint_override:
                made.endpoint_override = entries.of_v3(made.endpoint_override)
            if service_type == "object-store":
                # Swift has no version document; the answer, which would be logged, is
                # the account with its Temp-URL keys
                made.version = made.min_version = made.max_version = None
            return made

        self.type = service_type
        self._repeatable = client(RETRIES, RETRIABLE)
        self._once = client(0, (429,))
        self._lock = threading.Lock()
        self._discovered = False
        self._endpoint: str | None = None

    def of_session(self, session: Any) -> Self:
        """Return the client of another identity of the same cloud, by its session; far faster than a new one."""
        other = copy.copy(self)
        other._repeatable, other._once = copy.copy(self._repeatable), copy.copy(self._once)
        other._repeatable.session = other._once.session = session
        # the catalogue of another identity may have another endpoint
        other._lock, other._discovered, other._endpoint = threading.Lock(), False, None
        return other

    def at(self, endpoint: str) -> Self:
        """Return the client for another part of the service, such as another account of the object store."""
        other = copy.copy(self)
        other._lock, other._discovered, other._endpoint = threading.Lock(), True, endpoint
        return other

    def request(
        self, method: str, path: str, *, secrets: Iterable[Secret] = (), once: bool = False, **options: object
    ) -> requests.Response:
        """Send one request; ``options`` are keystoneauth's (json, data, headers, params, microversion).

        ``once``: it may not be repeated although it is not a POST. With ``secrets``, and for NOT_LOGGED, nothing of the
        request or its answer is logged; the values are removed from an error's text. Raises CloudError.
        """
        hidden = [value for secret in secrets if (value := secret.reveal())]
        client = self._once if once or method == "POST" else self._repeatable
        # keystoneauth logs bodies at level DEBUG, and hides only the secrets that it knows itself
        if hidden or any(self.type == service and path.startswith(start) for service, start in NOT_LOGGED):
            options["log"] = False
        if method in READING and not once:  # 500: nothing was changed, whatever has failed
            options.setdefault("retriable_status_codes", [*RETRIABLE, 500])
        bare_path, known = path.partition("?")[0], in_use()
        if not {*DOTS}.isdisjoint(bare_path.split("/")):  # of a name that somebody else has given
            raise CloudError(f"{method} {self.type}{bare_path}: no request can name '.' or '..'; rename the resource")
        if known is not None:
            known.check(self.type, bare_path)
            if known.retries is not None:
                options |= {"connect_retries": known.retries, "status_code_retries": known.retries}
        with request_log.recorded(method, self.type, path) as asked:
            try:
                with tracing.of_service(self.type):
                    self._discover()
                    response = self._send(client, path, method, raise_exc=True, **options)
            except Exception as error:  # noqa: BLE001 - translate returns what is not a cloud's error as it is
                translated = translate(error, self._asked(method, path), hidden)
                if known is not None and not once:  # who asks once has another way
                    known.note(self.type, bare_path, translated)
                # the text of the original error may contain the request, and so the secret
                raise translated from (None if hidden else error)
            asked.answered(response)
            if response.is_redirect:  # keystoneauth gives up after 30, and returns the last one like a success
                AnswerOrigin.of(response, self._asked(method, path)).refuse("redirects in a circle")
            return response

    def ask(self, method: str, path: str, **options: Any) -> Answer:
        """Send a request, and return the object that answers it; an answer to a GET is never empty."""
        if method == "GET":
            return self._read(path, read_object, **options)
        return read_object(self.request(method, path, **options), self._asked(method, path), may_be_empty=True)

    def ask_list(self, path: str, **options: Any) -> Sequence[Values]:
        """Return the list of objects that answers a GET."""
        return self._read(path, read_list, **options)

    def _read(self, path: str, read: Callable[[requests.Response, str], T], *, once: bool = False, **options: Any) -> T:
        """Return what a GET is answered; unless ``once``, it is sent again after an answer of a wrong shape."""
        patient = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(Misshapen),
            stop=tenacity.stop_after_attempt(1 if once else 1 + READ_AGAIN),
            wait=tenacity.wait_exponential(PAUSE),
            reraise=True,
        )
        return patient(lambda: read(self.request("GET", path, once=once, **options), self._asked("GET", path)))

    def _asked(self, method: str, path: str) -> str:
        return f"{method} {self.type}{path.split('?')[0]}"

    def _send(self, client: Any, path: str, method: str, **options: object) -> requests.Response:
        """Send one request; what may be sent twice is sent again after an answer that broke off.

        keystoneauth only does so when no answer came at all (keystoneauth1 5.18.1, session.py, _send_request).  The
        cache that clouds.yaml may configure is passed over: decisions need the present state.
        """
        known = in_use()
        retries = RETRIES if known is None or known.retries is None else known.retries
        patient = tenacity.Retrying(
            retry=tenacity.retry_if_exception(_broke_off),
            stop=tenacity.stop_after_attempt(1 + retries if client is self._repeatable else 1),
            wait=tenacity.wait_exponential(PAUSE),
            reraise=True,
        )
        if self._endpoint:
            options["endpoint_override"] = self._endpoint
        return cast("requests.Response", patient(client.request, path, method, skip_cache=True, **options))

    def _discover(self) -> None:
        """Read the versions of the API, once: concurrent threads would each read them.

        keystoneauth would look the endpoint up for each request, in a copy of the whole catalogue.
        """
        with self._lock:
            if not self._discovered:
                found = self._repeatable.get_endpoint()
                self._endpoint = found if found and "%" not in found else None  # keystoneauth replaces %(name)s
                self._discovered = True

    def get(self, path: str, **params: object) -> Values:
        return self.ask("GET", path, params=params)

    def post(self, path: str, json: Any, **options: Any) -> Values:
        return self.ask("POST", path, json=json, **options)

    def put(self, path: str, json: Any = None, **options: Any) -> Values:
        return self.ask("PUT", path, json=json, **options)

    def patch(self, path: str, json: Any, **options: Any) -> Values:
        return self.ask("PATCH", path, json=json, **options)

    def delete(self, path: str, **options: Any) -> None:
        """Delete a resource; one that no longer exists counts as deleted, unless the path itself is unknown."""
        try:
            self.request("DELETE", path, **options)
        except NotFound as error:
            if not error.of_resource:
                raise

    def list(
        self, path: str, name: str, /, *, log: bool = True, headers: Mapping[str, str] | None = None, **params: object
    ) -> list[Values]:
        """Return all pages of a list; ``name`` is the member that contains it; raises ConfigError without it.

        A list that Keystone has cut off (its list_limit) decides nothing: raises CloudError.
        """
        options: Values = {"log": log} | ({"headers": dict(headers)} if headers else {})
        found: list[Values] = []
        for page in self.pages(path, name, params, **options):
            found += page[name]
            if page.get("truncated") and not next_page(page, name):
                page.origin.refuse("is truncated, so that the rest is unknown; have list_limit of the service raised")
        return found

    def pages(self, path: str, name: str, params: Raw, **options: Any) -> Iterator[Answer]:
        """Yield the pages of a list as they arrive; ``options`` are keystoneauth's, and ``once``."""
        followed = {""}
        read = page_reader(name)
        page = self._read(path, read, params=params, **options)
        while True:
            if name not in page:
                raise ConfigError(
                    f"{self.endpoint} answers {path} without {name}, so it is not the URL of an API version; "
                    f"correct the endpoint override of {self.type} in clouds.yaml"
                )
            yield page
            following = next_page(page, name)
            if not following:
                return
            # a service that links to the page before would be read for ever
            if following in followed:
                page.origin.refuse("links to the same page again")
            followed.add(following)
            # relative to the endpoint: the host in the link may be one that only the service knows
            page = self._read(f"{path}?{following.partition('?')[2]}", read, **options)

    @property
    def endpoint(self) -> str:
        try:
            return str(self._repeatable.get_endpoint())
        except Exception as error:
            raise translate(error, f"find {self.type} in the catalogue") from error

    @property
    def newest_microversion(self) -> tuple[int, int] | None:
        """The newest microversion of this service; None if it has none. Raises CloudError."""
        try:
            data = self._repeatable.get_endpoint_data()
        except Exception as error:
            raise translate(error, f"read the versions of {self.type}") from error
        return cast("tuple[int, int] | None", data and data.max_microversion)


def _broke_off(error: BaseException) -> bool:
    """Whether an answer ended in its middle, or TLS before it."""
    if isinstance(error, SSLError):
        return certificate.explain(str(error), "") is None
    return isinstance(error, UnknownConnectionError) and isinstance(error.original, ChunkedEncodingError)


class Opens(Protocol):
    """A cloud: it opens the clients of its services."""

    services: dict[str, Service]
    lock: threading.Lock

    def open(self, service_type: str, **options: Any) -> Service: ...


class Client:
    """An attribute of a cloud: the client of one of its services."""

    def __init__(self, service_type: str, **options: Any) -> None:
        self.type, self.options = service_type, options

    def __get__(self, cloud: Opens, owner: type[Opens]) -> Service:
        return client_of(cloud, self.type, **self.options)


def client_of(cloud: Opens, service_type: str, **options: Any) -> Service:
    """Return a cloud's client of a service; raises CloudError."""
    with cloud.lock:  # the SDK creates its clients lazily and without a lock
        if service_type not in cloud.services:
            try:
                cloud.services[service_type] = cloud.open(service_type, **options)
            except Exception as error:
                raise translate(error, f"find {service_type} in the catalogue") from error
        return cloud.services[service_type]
