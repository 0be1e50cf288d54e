"""What a token says about whose it is, what for, and where the services are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, cast


class OwnToken(ABC):
    """Base of clouds: what the token of an identity says; the first question requests it."""

    @abstractmethod
    def _access(self) -> Any:
        """Return the token as keystoneauth has read it; raises NotAllowed, CloudError."""

    @property
    def project_id(self) -> str:
        """The id of the project that the connection is scoped to."""
        return str(self._access().project_id)

    @property
    def has_project(self) -> bool:
        """Whether the token is one for a project, and not for a domain or the system."""
        return bool(self._access().project_scoped)

    @property
    def project_name(self) -> str:
        """The name of that project."""
        return str(self._access().project_name)

    @property
    def project_domain_name(self) -> str:
        """The name of the domain of that project."""
        return str(self._access().project_domain_name)

    @property
    def user_id(self) -> str:
        """The id of the user."""
        return str(self._access().user_id)

    @property
    def domains(self) -> dict[str, str]:
        """Ids by name of the domains that our own token names."""
        access = self._access()
        own = {access.project_domain_name: access.project_domain_id}
        found = {access.user_domain_name: access.user_domain_id} | own
        return {name: domain_id for name, domain_id in found.items() if name and domain_id}

    @property
    def user(self) -> tuple[str, str]:
        """Names of our user and of its domain."""
        access = self._access()
        return str(access.username), str(access.user_domain_name)

    @property
    def roles(self) -> frozenset[str]:
        """Names of the roles of our token."""
        return frozenset(self._access().role_names)

    @property
    def role_ids(self) -> dict[str, str]:
        """Ids by name of the roles of our token."""
        access = self._access()
        return dict(zip(access.role_names, access.role_ids, strict=True))

    @property
    def application_credential_id(self) -> str | None:
        """The application credential of our token, if any."""
        return cast("str | None", self._access().application_credential_id)

    @property
    def is_restricted(self) -> bool:
        """Whether our token is of an application credential that can create neither such credentials nor trusts."""
        return bool(self.application_credential_id and self._access().application_credential.get("restricted", True))

    @property
    def endpoints(self) -> list[dict[str, str]]:
        """The catalogue: endpoints with type, interface, region and url."""
        catalog = self._access().service_catalog.catalog
        return [
            {"type": service["type"], **{name: each.get(name) or "" for name in ("interface", "region", "url")}}
            for service in catalog
            for each in service["endpoints"]
        ]

    @property
    def only_region(self) -> str | None:
        """The region of all endpoints; None if there are several."""
        regions = {endpoint["region"] for endpoint in self.endpoints} - {""}
        return regions.pop() if len(regions) == 1 else None
