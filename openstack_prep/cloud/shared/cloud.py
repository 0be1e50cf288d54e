"""A cloud whose reads many plans share, and the users of projects who log in to it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Self, cast

from openstack_prep.base.errors import PrepError
from openstack_prep.base.raw import Raw
from openstack_prep.base.secret import Secret
from openstack_prep.cloud.connection import Cloud, UserCloud
from openstack_prep.cloud.service import Service, client_of
from openstack_prep.cloud.shared import everybodys
from openstack_prep.cloud.shared.kept import Kept
from openstack_prep.cloud.shared.service import SharedService, TenantService
from openstack_prep.cloud.shared.shapes import PAGE
from openstack_prep.cloud.shared.whole import MOST, PER_SPEC


class SharedCloud(Cloud):
    """A cloud as one identity sees it, during one phase of planning; thread-safe.

    ``cloud`` is the connection. Apply uses that alone, and plans again with it what is not empty. ``specs`` is how many
    plans there will be: for a few of them, lists of all projects of a large cloud are not worth reading.
    """

    def __init__(self, cloud: Cloud, specs: int) -> None:
        self._own, self._connection, self.session = cloud.own, cloud.connection, cloud.session
        self.chosen_region, self.most = cloud.chosen_region, min(MOST, max(PAGE, PER_SPEC * specs))
        self.services: dict[str, Service] = {}
        self.lock = threading.Lock()
        self.kept = Kept()

    @property
    def own(self) -> Cloud:
        return self._own

    def allow_parallel(self, requests: int) -> Self:
        """Leave the connections alone, which all plans share; whoever runs the plans allows as many as they need."""
        return self

    def open(self, service_type: str, **options: Any) -> Service:
        return SharedService(client_of(self.own, service_type, **options), self.kept, self.most)

    def lacks_project(self, name: str) -> bool:
        """Whether no project of any domain has this name; if in doubt, False."""
        self.authenticate()
        return cast(SharedService, self.identity).lacks("/projects", name=name)

    def has(self, service_type: str) -> bool:
        return self.kept.once(("has", service_type), lambda: self.own.has(service_type))

    def bare_client(self, service_type: str) -> Any:
        return self.kept.once(("client", service_type), lambda: self.own.bare_client(service_type))

    def known_limits(self, service_type: str, project_id: str) -> Raw:
        """Return a project's quotas from Neutron's list of all projects with quotas of their own."""
        if service_type != "network":
            return {}
        return self.kept.once((Cloud.known_limits, service_type), self._limits).get(project_id, {})

    def _limits(self) -> Mapping[str, Raw]:
        try:
            return {each["project_id"]: each for each in self.own.network.list("/quotas", "quotas")}
        except PrepError:  # each plan reads its own project's then
            return {}

    def as_user(self, *, username: str, password: Secret, user_domain: str, project_id: str | None = None) -> Cloud:
        """Return the cloud as another user sees it; plans that need the same login share it."""
        who = (username, password, user_domain, project_id)
        return self.kept.once(who, lambda: SharedTenant(self, *who))


class SharedTenant(UserCloud):
    """A shared cloud as a user of a project sees it."""

    def __init__(self, of: SharedCloud, username: str, password: Secret, domain: str, project_id: str | None) -> None:
        super().__init__(of, username, password, domain, project_id)
        self._shared = of

    def open(self, service_type: str, **options: Any) -> Service:
        found = super().open(service_type, **options)
        if service_type not in everybodys.LISTS:
            return found
        path, read = everybodys.LISTS[service_type]
        return TenantService(
            found, path, lambda: self._shared.kept.once((everybodys, path), lambda: read(self._shared)), self.project_id
        )
