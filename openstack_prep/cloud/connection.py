"""Connections to OpenStack, one identity each, and the choice of a cloud.

This module, ``login``, ``service`` and ``translation`` are the only ones that import openstacksdk and
keystoneauth, which takes 0.4 s. Whatever a spec is read with imports them for type checkers only, as do the kinds.
"""

from __future__ import annotations

import contextlib
import copy
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import openstack
import tenacity
from keystoneauth1 import exceptions as ksa
from openstack import exceptions as sdk
from openstack.config import OpenStackConfig, loader
from openstack.config.cloud_region import CloudRegion
from openstack.config.defaults import get_defaults
from openstack.connection import Connection
from openstack.proxy import Proxy
from os_service_types import ServiceTypes

from openstack_prep.base.errors import ConfigError, NotAllowed, is_transient
from openstack_prep.base.raw import Raw
from openstack_prep.base.secret import Secret
from openstack_prep.cloud import entries as cloud_entries
from openstack_prep.cloud import login
from openstack_prep.cloud.entries import MEMBER
from openstack_prep.cloud.service import RETRIES, Client, Service, client_of
from openstack_prep.cloud.token import OwnToken
from openstack_prep.cloud.translation import translate
from openstack_prep.version import __version__

if TYPE_CHECKING:
    from openstack_prep.download.spool import Contents

PAUSE = 0.5  # seconds before a login is retried; doubled each time
ADDRESSES = 32  # to which connections stay open: of a further one, urllib3 closes those of another
TIMEOUT = 60.0  # seconds without data from a service; clouds.yaml's api_timeout overrides it
# the OpenShift installer also requests 2.64 (Rocky): flavor descriptions (2.55), server group policy (2.64)
COMPUTE_MICROVERSION = "2.64"


class Cloud(OwnToken):
    """A cloud as one identity sees it: one authentication, one client per service; thread-safe.

    ``contents`` are those of images that its runs share with others, if any.
    """

    contents: Contents | None = None
    _received: tuple[Any, float] | None = None
    """The present token, and when it was first seen: keystoneauth does not record when it came."""
    _earlier: Any = None
    """The token that the connection had from the first, if any."""

    def __init__(self, connection: Connection, chosen_region: str | None = None) -> None:
        self._connection = connection
        self.session = connection.session
        self.session.timeout = self.session.timeout or TIMEOUT
        login.prepare(self.session)
        self._earlier = getattr(self.session.auth, "auth_ref", None)
        self.services: dict[str, Service] = {}
        self.lock, self.parallel, self.chosen_region = threading.Lock(), 0, chosen_region

    def allow_parallel(self, requests: int) -> Self:
        """Keep that many connections to each service open, or more if another run on this connection has asked."""
        if requests > self.parallel:
            self.parallel = requests
            for adapter in self.session.session.adapters.values():
                cast(Any, adapter).init_poolmanager(max(requests, ADDRESSES), requests)
        return self

    @property
    def connection(self) -> Connection:
        """The SDK's connection, for what the clients here do not offer."""
        return self._connection

    @property
    def own(self) -> Cloud:
        """The connection itself, which reads everything as it is at that moment: see SharedCloud."""
        return self

    def open(self, service_type: str, **options: Any) -> Service:
        """Return a new client of a service."""
        return Service(self.connection, service_type, **options)

    identity = Client("identity")
    compute = Client("compute", microversion=COMPUTE_MICROVERSION)
    network = Client("network")
    image = Client("image")
    volume = Client("block-storage", version="3")
    object_store = Client("object-store")
    load_balancer = Client("load-balancer")
    orchestration = Client("orchestration")
    dns = Client("dns")
    placement = Client("placement")

    @property
    def name(self) -> str:
        """The name of the clouds.yaml entry."""
        return str(self.connection.config.name)

    @cached_property
    def region(self) -> str | None:
        """The region of the entry; None if the catalogue has a single one."""
        return self.connection.config.get_region_name("identity")

    @cached_property
    def interface(self) -> str | None:
        """The kind of endpoints in use: public, internal or admin; None for the default, public."""
        chosen = self.connection.config.get_interface()
        return chosen if isinstance(chosen, str) else None

    @property
    def auth_url(self) -> str:
        """The address of Keystone."""
        return str(self.connection.config.config["auth"]["auth_url"])

    @property
    def tls(self) -> cloud_entries.Tls:
        """How the connection uses TLS; variables such as REQUESTS_CA_BUNDLE, which replace its CAs, do not count."""
        return cloud_entries.Tls.of(*self.connection.config.get_requests_verify_args())

    @property
    def reached(self) -> cloud_entries.Reached:
        """How the connection reaches the cloud, for entries that other clients use; the region may need a login."""
        return cloud_entries.Reached(
            auth_url=self.auth_url,
            region=self.connection.config.get_region_name() or self.only_region,
            interface=self.interface,
            tls=self.tls,
            service_settings=cloud_entries.service_settings(
                self._own_settings(), get_defaults(), ServiceTypes().is_known
            ),
        )

    def _own_settings(self) -> Raw:
        """Return the settings without the versions that neither the entry, its profile nor a variable has.

        Each plugin of python-openstackclient adds the version that it prefers, by which other clients are not bound.
        """
        files: Any = getattr(self.connection.config, "_openstack_config", None)
        is_read = files and (files.config_filename or self.name == files.envvar_key)  # else a program has made it
        entry = files.cloud_config["clouds"].get(self.name) if is_read else None
        if not isinstance(entry, dict) or "profile" in entry or "cloud" in entry:
            return self.config
        declared = {str(name).replace("-", "_") for name in entry} | {
            name[3:].lower() for name in os.environ if name.startswith("OS_")
        }
        return {
            name: value for name, value in self.config.items() if name in declared or not name.endswith("_api_version")
        }

    @property
    def config(self) -> Raw:
        """The clouds.yaml entry as the SDK has interpreted it; it contains secrets."""
        return cast("Raw", self.connection.config.config)

    def authenticate(self) -> Self:
        """Get a token now; temporary failures of Keystone are retried.

        Raises NotAllowed if these credentials are refused; that is not retried, because some clouds lock users out.
        """
        patient = tenacity.Retrying(
            retry=tenacity.retry_if_exception(is_transient),
            stop=tenacity.stop_after_attempt(1 + RETRIES),
            wait=tenacity.wait_exponential(PAUSE),
            reraise=True,
        )
        patient(self._access)
        return self

    def now(self) -> datetime:
        """Return the time by Keystone's clock, by which credentials expire: that of this machine may be wrong.

        How old a token of somebody else is, such as one of the SDK's cache, only the clock of this machine tells.
        """
        access = self._access()
        received = self._received[1] if self._received else time.monotonic()
        found = cast(datetime, access.issued) + timedelta(seconds=time.monotonic() - received)
        return max(found, min(datetime.now(UTC), access.expires)) if access is self._earlier else found

    @property
    def expires(self) -> datetime:
        """When the token ends by which it is logged in now."""
        return cast(datetime, self._access().expires)

    def _access(self) -> Any:
        try:
            access = cast(Any, self.session.auth).get_access(self.session)
            if self._received is None or self._received[0] is not access:
                self._received = access, time.monotonic()
            return access
        except Exception as error:  # noqa: BLE001 - translate returns what is not a cloud's error as it is
            doing = f"authenticate to {self.auth_url} as cloud {self.name!r}"
            if isinstance(error, AttributeError):  # a plugin of keystoneauth that needs no Keystone
                raise ConfigError(f"{doing}: its auth_type has no login at Keystone; use another one") from None
            if type(error) is Exception:  # raised by keystoneauth for an entry without a password
                raise ConfigError(f"{doing}: {error}; {login.CHECK_ENTRY}, and secure.yaml") from None
            fix = "; ".join(filter(None, (login.fix_of(error), self._secured())))
            raise translate(error, doing, fix=fix, refused=NotAllowed) from None

    def _secured(self) -> str:
        """Return which file holds a part of the entry that goes before that of clouds.yaml; empty if there is none."""
        files = getattr(self.connection.config, "_openstack_config", None)
        path = getattr(files, "secure_config_filename", None)
        found = cloud_entries.entries_in(path).get(self.name) if path else None
        auth = found.get("auth") if isinstance(found, dict) else None
        names = ", ".join(auth) if isinstance(auth, dict) else ""
        return f"{path} has a part of that entry ({names}), which goes before that of clouds.yaml" if names else ""

    @contextlib.contextmanager
    def reading(self, fix: str = MEMBER) -> Iterator[None]:
        """Add the identity in use to errors about missing permissions; raises NotAllowed."""
        try:
            yield
        except NotAllowed as error:
            entry = f"entry {self.name!r} of clouds.yaml has no permission to read this"
            raise NotAllowed(f"{error}; {entry}: {fix}", status=error.status) from error

    def has(self, service_type: str) -> bool:
        """Whether the catalogue contains that service."""
        try:
            return self.bare_client(service_type).get_endpoint() is not None
        except ksa.EndpointNotFound:
            return False
        except Exception as error:
            raise translate(error, f"find {service_type} in the catalogue") from error

    def bare_client(self, service_type: str) -> Any:
        """Return a client of the SDK's that looks an endpoint up and requests nothing."""
        client = self.connection.config.get_session_client(service_type)
        # else a version document is requested; Swift answers with the account and its keys, which would be logged
        client.version = client.min_version = client.max_version = None
        return client

    def known_limits(self, service_type: str, project_id: str) -> Raw:
        """Return a project's quotas as far as they are known without a request for this project alone."""
        return {}

    def of_entry(self, entry: str) -> Cloud:
        """Return the cloud of another entry of clouds.yaml, in the region that was chosen for this one, if any."""
        return connect(entry, region=self.chosen_region)

    def in_region(self, region: str) -> Cloud:
        """Return the same cloud as the same identity sees it in another region."""
        settings = {**self.config, "region_name": region}
        config = CloudRegion(name=self.name, region_name=region, config=settings, session=self.session)
        made = Cloud(Connection(config=config), region)
        made.services["identity"] = self.identity  # Keystone need not have an endpoint in each region
        return made

    def list_regions(self) -> list[str]:
        """Return the regions of the catalogue other than the one in use."""
        return sorted({endpoint["region"] for endpoint in self.endpoints} - {"", self.region or ""})

    def endpoint_of(self, service_type: str) -> str | None:
        """Return the URL of a service by the catalogue; None if that does not contain it."""
        return self.bare_client(service_type).get_endpoint() if self.has(service_type) else None

    def hidden_by(self, path: Path) -> str | None:
        """Return the clouds.yaml of this entry if a new file at ``path`` would hide it from all clients."""
        file = os.environ.get("OS_CLIENT_CONFIG_FILE")
        return cloud_entries.hidden_by(path, self.name, file, loader.CONFIG_FILES)

    def as_user(self, *, username: str, password: Secret, user_domain: str, project_id: str | None = None) -> Cloud:
        """Return the same cloud as another user sees it, scoped to a project or unscoped."""
        return UserCloud(self, username, password, user_domain, project_id)


class UserCloud(Cloud):
    """A cloud as another user sees it, scoped to a project or unscoped; thread-safe.

    Only its token is its own: it shares the open connections to the services, and its clients are copies of those of
    the cloud that it comes from. To create them takes the SDK longer than a user's requests take.
    """

    def __init__(self, of: Cloud, username: str, password: Secret, domain: str, project_id: str | None) -> None:
        self._of = of
        self.session = copy.copy(of.session)
        self.session._session = None  # which it would close, although it is the other's, too
        self.session.auth = login.by_password(of.auth_url, username, password, domain, project_id)
        login.prepare(self.session)
        self._earlier = getattr(self.session.auth, "auth_ref", None)
        self.services: dict[str, Service] = {}
        self.lock, self.chosen_region = threading.Lock(), of.chosen_region

    @cached_property
    def connection(self) -> Connection:
        settings = {key: value for key, value in self._of.config.items() if key not in ("auth", "auth_type")}
        auth = {"auth_type": "v3password", "auth": {"auth_url": self._of.auth_url}}
        region = CloudRegion(
            name=self._of.name,
            region_name=self._of.region,
            config={**settings, **auth},
            auth_plugin=self.session.auth,
            session=self.session,
        )
        return Connection(config=region)

    def allow_parallel(self, requests: int) -> Self:
        self._of.allow_parallel(requests)
        return self

    def open(self, service_type: str, **options: Any) -> Service:
        return client_of(self._of.own, service_type, **options).of_session(self.session)

    def bare_client(self, service_type: str) -> Any:
        client = copy.copy(self._of.bare_client(service_type))
        client.session = self.session
        return client


def connect(
    cloud: str | None = None,
    *,
    connection: Connection | None = None,
    clouds_file: Path | None = None,
    region: str | None = None,
) -> Cloud:
    """Return the cloud of a clouds.yaml entry, of OS_CLOUD, of OS_* variables, or of an SDK ``connection``.

    ``cloud`` is the name of an entry. With ``clouds_file`` it is taken from there, and OS_* variables are ignored, as
    the OpenShift installer does. ``region`` is chosen in place of the entry's own. No request is sent yet.
    Raises ConfigError for a missing or incomplete entry.
    """
    if connection is not None:
        return Cloud(connection)
    chosen = None
    try:
        _check_files(clouds_file)
        chosen = _chosen(cloud, clouds_file)
        if chosen is not None:
            chosen.refuse(cloud_entries.find_malformed(chosen.settings))
        return _check_settings(Cloud(opened(cloud, clouds_file, region), region))
    except (sdk.ConfigException, ksa.ClientException, ksa.OptionError, OSError) as error:
        _refuse_login(chosen)
        raise ConfigError(_explain(cloud, str(error), clouds_file)) from error
    except (AttributeError, ImportError, LookupError, TypeError, ValueError) as error:  # of the SDK, for odd settings
        _refuse_login(chosen)
        raise ConfigError(_explain(cloud, "openstacksdk cannot interpret its settings", clouds_file)) from error
    except _keyring_errors() as error:
        what = f"the keyring of cache.auth has failed ({error}); unlock it, or set cache.auth to false"
        raise ConfigError(_explain(cloud, what, clouds_file)) from error


def _keyring_errors() -> tuple[type[Exception], ...]:
    """Return what keyrings raise, if openstacksdk has loaded them: it only expects that none is there (RuntimeError).

    Source: openstacksdk 4.22.0, config/cloud_region.py, _fetch_auth_state; keyring 25.7.0, errors.py.
    """
    loaded = sys.modules.get("keyring.errors")
    return (loaded.KeyringError,) if loaded is not None else ()


def _chosen(cloud: str | None, clouds_file: Path | None) -> cloud_entries.ChosenEntry | None:
    """Return the entry that the SDK will use, as its files have it; None for OS_* variables, and if there is none."""
    files = clouds_file or os.environ.get("OS_CLIENT_CONFIG_FILE"), loader.CONFIG_FILES
    name = cloud if clouds_file else cloud_entries.in_use(cloud, *files)
    # with a file of the caller's, the SDK reads no variables
    secure = None if clouds_file else os.environ.get("OS_CLIENT_SECURE_FILE"), loader.SECURE_FILES
    return cloud_entries.find_chosen(name, files, secure) if name else None


def _refuse_login(chosen: cloud_entries.ChosenEntry | None) -> None:
    """Raise ConfigError with the keys of an entry because of which the SDK has failed, as far as they are known."""
    if chosen is not None and isinstance(chosen.settings, dict):
        chosen.refuse(login.find_mistakes(chosen.settings))


def connect_entry(name: str, entry: Raw) -> Cloud:
    """Return the cloud of an entry that is in no file; neither files nor variables count. No request is sent yet.

    Raises ConfigError for an entry that openstacksdk cannot use.
    """
    files = OpenStackConfig(
        [], [], secure_files=[], load_envvars=False, app_name="openstack_prep", app_version=__version__
    )
    files.cloud_config = {"clouds": {name: dict(entry)}}
    try:
        return _check_settings(Cloud(_without_empty(Connection(config=files.get_one(name)))))
    except (sdk.ConfigException, ksa.ClientException, ksa.OptionError, OSError) as error:
        raise ConfigError(f"cloud {name!r}: {error}") from error


def find_mistakes(entry: Raw) -> Iterator[cloud_entries.EntryMistake]:
    """Yield the keys of an entry because of which openstacksdk cannot use it, or Keystone refuses what it sends."""
    found = [*cloud_entries.find_malformed(entry)]
    yield from found or login.find_mistakes(entry)


def _check_settings(made: Cloud) -> Cloud:
    """Return a cloud whose settings openstacksdk can use; raises ConfigError."""
    verify = made.connection.config.get_requests_verify_args()
    # of this entry: to choose another one is no answer
    if mistakes := [*cloud_entries.mistakes(made.config, made.interface, verify)]:
        raise ConfigError(f"cloud {made.name!r}: {'; '.join(mistakes)}")  # envvars: of OS_* variables
    return made


@dataclass(frozen=True)
class FoundByClient:
    """An entry of a clouds.yaml as a client in its folder finds it."""

    cloud: Cloud
    """The connection of the client; no request was sent yet."""
    secure_file: Path | None = None
    """The secure.yaml that a client in that folder reads, too: its settings go before those of clouds.yaml."""
    secured: Raw = field(default_factory=dict)
    """What it has for the entry."""


def found_by_client(path: Path, name: str, entry: Raw, options: Mapping[str, str] | None = None) -> FoundByClient:
    """Return an entry of a file as openstacksdk reads it in the file's folder, without the variables of this process.

    ``entry`` is what the file has, or will have. ``options`` go before everything else, as those of a command line do.
    Raises ConfigError for an entry that no client can use.
    """
    folder = Path(os.path.abspath(path)).parent
    secure_files, vendor_files = (_beside(folder, usual) for usual in (loader.SECURE_FILES, loader.VENDOR_FILES))
    if what := cloud_entries.unreadable(None, secure_files):
        raise ConfigError(what)
    try:
        # clouds.yaml itself is not read by the SDK, whose parser is slow: it may have an entry per cluster
        files = OpenStackConfig(
            [],
            vendor_files,
            secure_files=secure_files,
            load_envvars=False,
            app_name="openstack_prep",
            app_version=__version__,
        )
        secure_file = files.secure_config_filename
        secured = files.cloud_config["clouds"].get(name) or {} if secure_file else {}
        read = cloud_entries.merge(cloud_entries.merge(entry, secured), options or {})
        read = cloud_entries.as_openstack_client_reads(read)
        files.cloud_config, files.config_filename = {"clouds": {name: read}}, str(path)
        region = files.get_one(name)
        region.config |= {
            setting: str(folder / Path(value).expanduser())
            for setting in cloud_entries.TLS_FILES
            if isinstance(value := region.config.get(setting), str)
        }
        cloud = _check_settings(Cloud(Connection(config=region)))
    except (sdk.ConfigException, ksa.ClientException, ksa.OptionError, OSError) as error:
        raise ConfigError(f"entry {name} of {path}: {error}") from error
    except (AttributeError, LookupError, TypeError, ValueError) as error:  # of the SDK, for an unexpected format
        raise ConfigError(f"entry {name} of {path}: openstacksdk cannot interpret its settings") from error
    return FoundByClient(cloud, Path(secure_file) if secure_file else None, secured)


def _beside(folder: Path, usual: Sequence[str]) -> list[str]:
    """Return where the SDK looks for a file when it runs in a folder; it knows the one in which it was imported."""
    per_folder = len(usual) // len(loader.CONFIG_SEARCH_PATH)
    return [*(str(folder / Path(each).name) for each in usual[:per_folder]), *usual[per_folder:]]


def chosen_entry(name: str | None) -> tuple[str | None, str, str]:
    """Return the entry that ``connect`` would use, its region and the address of Keystone, as far as files say so."""
    files = os.environ.get("OS_CLIENT_CONFIG_FILE"), loader.CONFIG_FILES
    entry = cloud_entries.in_use(name, *files)
    return entry, *cloud_entries.described(entry, *files)


def _without_empty(connection: Connection) -> Connection:
    """Return a connection for which empty settings, as of ``export OS_INTERFACE=``, are unset ones.

    An empty interface is any one for keystoneauth, and an empty ``verify`` turns verification off (openstacksdk
    4.22.0, cloud_region.py, get_requests_verify_args).
    """
    config: Any = connection.config.config
    defaults = {"verify": True, "interface": "public"}
    for name in [name for name, value in config.items() if value in ("", None)]:
        if name in cloud_entries.TLS_FILES or name.endswith("interface"):
            config[name] = defaults.get(name)
    return connection


def opened(cloud: str | None, clouds_file: Path | None = None, region: str | None = None) -> Connection:
    """Return the connection of an entry as the SDK makes it, unexamined; raises what the SDK raises."""
    # this cache of the SDK keeps clients of former connections, and their sockets (openstacksdk 4.22.0)
    cast(Any, Proxy)._extract_name.cache_clear()
    chosen: Any = {"region_name": region} if region else {}
    if clouds_file is None:
        made = openstack.connect(cloud=cloud, app_name="openstack_prep", app_version=__version__, **chosen)
        return _without_empty(made)
    files = OpenStackConfig([str(clouds_file)], load_envvars=False, app_name="openstack_prep", app_version=__version__)
    return _without_empty(Connection(config=files.get_one(cloud, **chosen)))


def _check_files(clouds_file: Path | None) -> None:
    """Refuse files that the SDK would log in part and pass over, or that would end the process."""
    named = (clouds_file or os.environ.get("OS_CLIENT_CONFIG_FILE"), os.environ.get("OS_CLIENT_SECURE_FILE"))
    for first, usual in zip(named, (loader.CONFIG_FILES, loader.SECURE_FILES), strict=True):
        if what := cloud_entries.unreadable(first, usual):
            raise ConfigError(what)


def _explain(cloud: str | None, reason: str, clouds_file: Path | None) -> str:
    return cloud_entries.explain(
        cloud, reason, clouds_file or os.environ.get("OS_CLIENT_CONFIG_FILE"), loader.CONFIG_FILES
    )
