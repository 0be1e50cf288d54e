"""What stands for a connection where no cloud is asked: in checks of a spec, and for specs that need none."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn, Self, cast

from openstack_prep.base.errors import NotAllowed
from openstack_prep.cloud.entries import Reached
from openstack_prep.cloud.token import OwnToken

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud

NAMES = (
    *("project_id", "project_name", "project_domain_name", "project_domain_id", "username"),
    *("user_domain_name", "user_domain_id", "user_id", "application_credential_id"),
)


class NoService:
    """Stands for a service: whatever is asked of it is refused."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotAllowed("the spec needs no cloud, so no connection was made; name one with --os-cloud")


@dataclass(frozen=True)
class NoCloud(OwnToken):
    """Stands for a connection: what an entry of clouds.yaml takes from it is left open."""

    name: str = ""
    auth_url: str = ""
    region: str | None = None
    interface: str | None = None
    contents: None = None
    reached: Reached = field(default_factory=Reached)
    config: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def as_cloud(cls) -> Cloud:
        return cast("Cloud", cls())

    def _access(self) -> Any:
        """Return a token of nobody."""
        return SimpleNamespace(**dict.fromkeys(NAMES), project_scoped=False, role_names=[], role_ids=[])

    @property
    def project_id(self) -> str:
        """No project: its id is empty."""
        return ""

    @property
    def endpoints(self) -> list[dict[str, str]]:
        return []

    @property
    def own(self) -> Self:
        return self

    def authenticate(self) -> Self:
        return self

    def allow_parallel(self, requests: int) -> Self:
        return self

    @contextlib.contextmanager
    def reading(self, fix: str = "") -> Iterator[None]:
        yield

    identity = compute = network = image = volume = object_store = load_balancer = orchestration = dns = NoService()
