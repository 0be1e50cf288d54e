"""The way to OpenStack: connections, requests with retries, and errors in our words.

The one module that imports openstacksdk and keystoneauth.  Requests go through the SDK's service
clients, so that everything a clouds.yaml entry may say (region, interface, endpoint overrides,
retries, CA bundle) holds here too.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self, cast

from openstack_prep.errors import (
    CloudError,
    ConfigError,
    NotAllowed,
    NotFound,
    QuotaExceeded,
)
from openstack_prep.secret import HIDDEN, Secret
from openstack_prep.version import __version__

if TYPE_CHECKING:
    import requests
    from openstack.connection import Connection

TIMEOUT = 60.0  # seconds without a byte from a service; clouds.yaml's api_timeout overrides it
RETRIES = 4  # with keystoneauth's growing delays: half a second, one, two, four
RETRIABLE = (429, 502, 503, 504)
RETRIABLE_LATER = (409, 412, 429, 500, 502, 503, 504)
# 2.64 (Rocky) is what the OpenShift installer asks for too: flavor descriptions (2.55), server group policy (2.64)
COMPUTE_MICROVERSION = "2.64"


class Service:
    """One API of one cloud, for one identity.

    Requests that may be sent twice are retried by keystoneauth.  A POST is not, except after 429,
    which says that nothing was done: its answer may be lost and its work done all the same.
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
            if service_type == "object-store":
                # Swift has no version document; what answers in its place, and would be logged, is
                # the account with its Temp-URL keys
                made.version = made.min_version = made.max_version = None
            return made

        self.type = service_type
        self._repeatable = client(RETRIES, RETRIABLE)
        self._once = client(0, (429,))

    def request(
        self, method: str, path: str, *, secrets: Iterable[Secret] = (), once: bool = False, **options: Any
    ) -> requests.Response:
        """Send one request; ``options`` are keystoneauth's (json, data, headers, params, microversion).

        ``once``: it may not be repeated although it is no POST.  With ``secrets`` nothing of the request
        or its answer is logged, and the values are blotted out of an error's text.  Raises CloudError or
        one of its kinds.
        """
        hidden = [value for secret in secrets if (value := secret.reveal())]
        client = self._once if once or method == "POST" else self._repeatable
        if hidden:
            options["log"] = False
        try:
            return cast("requests.Response", client.request(path, method, raise_exc=True, **options))
        except Exception as error:  # noqa: BLE001 - translate returns what is not a cloud's error as it is
            raise translate(error, f"{method} {self.type}{path.split('?')[0]}", hidden) from (None if hidden else error)

    def get(self, path: str, **params: Any) -> dict[str, Any]:
        return _body(self.request("GET", path, params=params))

    def post(self, path: str, json: Any, **options: Any) -> dict[str, Any]:
        return _body(self.request("POST", path, json=json, **options))

    def put(self, path: str, json: Any = None, **options: Any) -> dict[str, Any]:
        return _body(self.request("PUT", path, json=json, **options))

    def patch(self, path: str, json: Any, **options: Any) -> dict[str, Any]:
        return _body(self.request("PATCH", path, json=json, **options))

    def delete(self, path: str) -> None:
        """Delete; what is not there any more counts as deleted."""
        with contextlib.suppress(NotFound):
            self.request("DELETE", path)

    def list(self, path: str, name: str, /, **params: Any) -> list[dict[str, Any]]:
        """Return all pages of a list; ``name`` is the member that holds it."""
        found: list[dict[str, Any]] = []
        page = self.get(path, **params)
        while True:
            found += page[name]
            following = _next_page(page, name)
            if not following:
                return found
            page = self.get(_relative(following, path))

    @property
    def endpoint(self) -> str:
        return str(self._repeatable.get_endpoint())


def _body(response: requests.Response) -> dict[str, Any]:
    return cast("dict[str, Any]", response.json()) if response.content else {}


def _next_page(page: Mapping[str, Any], name: str) -> str | None:
    """Return the address of the next page in any service's way of saying it."""
    if isinstance(page.get("next"), str):  # glance
        return cast(str, page["next"])
    links = page.get(f"{name}_links") or page.get("links") or ()  # nova, cinder, neutron; keystone
    if isinstance(links, Mapping):
        return cast("str | None", links.get("next"))
    return next((link["href"] for link in links if link.get("rel") == "next"), None)


def _relative(link: str, path: str) -> str:
    """Return a next-page link as seen from the endpoint: its host may be one that only the service knows."""
    return path + "?" + link.partition("?")[2]


def translate(error: Exception, doing: str, hidden: Iterable[str] = ()) -> Exception:
    """Return our error for one of keystoneauth's or the SDK's: terminal or retryable, decided here once."""
    from keystoneauth1 import exceptions as ksa
    from openstack import exceptions as sdk

    if not isinstance(error, ksa.ClientException | sdk.SDKException):
        return error
    said = _said(error)
    for value in hidden:
        said = said.replace(value, HIDDEN)
    status = getattr(error, "http_status", None) or getattr(error, "status_code", None)
    message = f"{doing}: {status} {said}" if status else f"{doing}: {said}"
    kind, retryable = _sort(error, status, said)
    return kind(message, retryable=retryable, status=status, request_id=getattr(error, "request_id", None))


_STATED_ELSEWHERE = re.compile(r" \(HTTP \d+\)( \(Request-ID: [^)]*\))?$")


def _said(error: Exception) -> str:
    """Return what the service said; keystoneauth passes it on, but not the forms of Neutron's extensions."""
    response = getattr(error, "response", None)
    said = _STATED_ELSEWHERE.sub("", str(getattr(error, "message", None) or error))
    if response is not None and "nrecognized schema" in said:
        said = " ".join(response.text.split())[:500]
        with contextlib.suppress(ValueError, AttributeError, KeyError, TypeError):  # then as it stands
            said = str(next(iter(response.json().values()))["message"])
    return said


# a policy's refusal may name a rule such as update_quota
_OVER_QUOTA = re.compile(r"quota.*exceed|exceed.*quota", re.IGNORECASE | re.DOTALL)


def _sort(error: Exception, status: int | None, said: str) -> tuple[type[CloudError], bool]:
    from keystoneauth1 import exceptions as ksa

    if status in (403, 409, 413) and _OVER_QUOTA.search(said):
        return QuotaExceeded, False
    if status in (401, 403):
        return NotAllowed, False
    if status == 404:
        return NotFound, False
    if status is None:
        unreachable = (ksa.RetriableConnectionFailure, ksa.UnknownConnectionError, ksa.DiscoveryFailure)
        return CloudError, isinstance(error, unreachable) and not isinstance(error, ksa.SSLError)
    return CloudError, status in RETRIABLE_LATER


class Cloud:
    """A cloud as one identity sees it: one authentication, one client a service; safe among threads."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.session = connection.session
        self.session.timeout = self.session.timeout or TIMEOUT
        self._services: dict[str, Service] = {}
        self._lock = threading.Lock()

    def allow_parallel(self, requests: int) -> Self:
        """Keep that many connections to each service open."""
        for adapter in self.session.session.adapters.values():
            cast(Any, adapter).init_poolmanager(requests, requests)
        return self

    def _service(self, service_type: str, **options: Any) -> Service:
        # the SDK fills its clients in lazily and without a lock
        with self._lock:
            if service_type not in self._services:
                try:
                    self._services[service_type] = Service(self.connection, service_type, **options)
                except Exception as error:
                    raise translate(error, f"find {service_type} in the catalogue") from error
            return self._services[service_type]

    @property
    def identity(self) -> Service:
        return self._service("identity")

    @property
    def compute(self) -> Service:
        return self._service("compute", microversion=COMPUTE_MICROVERSION)

    @property
    def network(self) -> Service:
        return self._service("network")

    @property
    def image(self) -> Service:
        return self._service("image")

    @property
    def volume(self) -> Service:
        return self._service("block-storage", version="3")

    @property
    def object_store(self) -> Service:
        return self._service("object-store")

    @property
    def orchestration(self) -> Service:
        return self._service("orchestration")

    @property
    def name(self) -> str:
        """The entry of clouds.yaml."""
        return str(self.connection.config.name)

    @property
    def region(self) -> str | None:
        return self.connection.config.get_region_name("identity")

    @property
    def interface(self) -> str | None:
        chosen = self.connection.config.get_interface()
        return chosen if isinstance(chosen, str) else None

    @property
    def auth_url(self) -> str:
        return str(self.connection.config.config["auth"]["auth_url"])

    @property
    def config(self) -> Mapping[str, Any]:
        """The clouds.yaml entry as the SDK understood it; it holds secrets."""
        return cast("Mapping[str, Any]", self.connection.config.config)

    @property
    def project_id(self) -> str:
        return str(self._access().project_id)

    @property
    def user_id(self) -> str:
        return str(self._access().user_id)

    @property
    def domains(self) -> dict[str, str]:
        """Ids by name of the domains that our own token names."""
        access = self._access()
        found = {
            access.user_domain_name: access.user_domain_id,
            access.project_domain_name: access.project_domain_id,
        }
        return {name: domain_id for name, domain_id in found.items() if name and domain_id}

    def authenticate(self) -> Self:
        """Get a token now; raises NotAllowed when these credentials give none."""
        self._access()
        return self

    def _access(self) -> Any:
        try:
            return cast(Any, self.session.auth).get_access(self.session)
        except Exception as error:  # noqa: BLE001 - as above
            raise translate(error, f"authenticate to {self.auth_url} as cloud {self.name!r}") from None

    def has(self, service_type: str) -> bool:
        """Whether the catalogue lists that service."""
        from keystoneauth1.exceptions import EndpointNotFound

        try:
            return self.connection.config.get_session_client(service_type).get_endpoint() is not None
        except EndpointNotFound:
            return False

    def as_user(self, *, username: str, password: Secret, user_domain: str, project_id: str | None = None) -> Cloud:
        """Return the same cloud as another user sees it, scoped to a project or to nothing."""
        from keystoneauth1.identity import v3
        from openstack.config import cloud_region
        from openstack.connection import Connection

        settings = {key: value for key, value in self.config.items() if key not in ("auth", "auth_type")}
        region = cloud_region.CloudRegion(
            name=self.name,
            region_name=self.region,
            config={**settings, "auth_type": "v3password", "auth": {"auth_url": self.auth_url}},
            auth_plugin=v3.Password(
                self.auth_url,
                username=username,
                password=password.reveal(),
                user_domain_name=user_domain,
                project_id=project_id,
            ),
            app_name="openstack_prep",
            app_version=__version__,
            discovery_cache=self.session._discovery_cache,
        )
        return Cloud(Connection(config=region))


def connect(cloud: str | None = None, *, connection: Connection | None = None) -> Cloud:
    """Return the cloud of a clouds.yaml entry, of OS_CLOUD, of OS_* variables, or of an SDK connection.

    Nothing is asked of the cloud yet.  Raises ConfigError when there is no such entry or it lacks
    something; openstacksdk's documentation says where clouds.yaml is looked for.
    """
    if connection is not None:
        return Cloud(connection)
    import openstack
    from keystoneauth1 import exceptions as ksa
    from openstack import exceptions as sdk

    try:
        return Cloud(openstack.connect(cloud=cloud, app_name="openstack_prep", app_version=__version__))
    except (sdk.ConfigException, ksa.ClientException, ksa.OptionError, OSError) as error:
        raise ConfigError(_explain(cloud, str(error))) from error
    except (AttributeError, TypeError, ValueError) as error:  # what the SDK makes of a file of another form
        raise ConfigError(_explain(cloud, "the SDK cannot make sense of its settings")) from error


def _explain(cloud: str | None, said: str) -> str:
    """Return what is wrong with the choice of a cloud, and what there is to choose from."""
    cloud = cloud or os.environ.get("OS_CLOUD")
    chosen = f"cloud {cloud!r}" if cloud else "the cloud (no --os-cloud, OS_CLOUD or OS_AUTH_URL given)"
    remedy = "choose one by --os-cloud or OS_CLOUD, or name the file in OS_CLIENT_CONFIG_FILE"
    return f"{chosen}: {said.rstrip('.')}; {_entries()}; {remedy}"


def _entries() -> str:
    """Return what clouds.yaml holds, or what is wrong with it: the SDK passes over a broken one."""
    import yaml
    from openstack.config.loader import CONFIG_FILES

    named = os.environ.get("OS_CLIENT_CONFIG_FILE")
    path = next((each for each in [named, *CONFIG_FILES] if each and os.path.exists(each)), None)
    if path is None:
        return "no clouds.yaml was found" + (f", not even {named}" if named else "")
    try:
        with open(path, encoding="utf-8") as file:
            entries = (yaml.safe_load(file) or {}).get("clouds", {})
        broken = [name for name, entry in entries.items() if not isinstance(entry, dict)]
    except (OSError, ValueError, yaml.YAMLError) as error:
        return f"{path} cannot be read: {error}"
    except AttributeError:
        return f"{path} is not a mapping with the clouds under `clouds:`"
    if broken:
        return f"{path}: the entry {broken[0]} is not a mapping"
    return f"{path} has the entries {', '.join(sorted(entries)) or 'none'}"
