"""One service's API whose reads are answered from what was read for other specs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.answers import Answer
from openstack_prep.cloud.service import Service
from openstack_prep.cloud.shared import whole
from openstack_prep.cloud.shared.kept import Kept
from openstack_prep.cloud.shared.shapes import ONE, SAME, WHOLE

Rows = list[Values]
Groups = Mapping[str, Sequence[Values]]
"""Rows by the id of their project."""


class SharedService(Service):
    """A service of the administrator, in one phase of planning. All requests but known reads are sent as they are."""

    def __init__(self, own: Service, kept: Kept, most: int) -> None:
        vars(self).update(vars(own))
        self._kept, self._most = kept, most
        self._wholes, self._same = WHOLE.get(self.type, {}), SAME.get(self.type)

    def ask(self, method: str, path: str, **options: Any) -> Answer:
        def single() -> Answer:
            return Service.ask(self, method, path, **options)

        params = options.get("params") or {}
        if method != "GET" or not options.keys() <= {"params"}:
            return single()
        if self._is_same(path):
            return self._kept.once((self.type, path, _hashable(params)), single)
        return (None if params else self._one(path)) or single()

    def list(
        self, path: str, name: str, /, *, log: bool = True, headers: Mapping[str, str] | None = None, **params: object
    ) -> list[Values]:
        def single() -> Rows:
            return Service.list(self, path, name, log=log, headers=headers, **params)

        if headers or not log:
            return single()
        found: Sequence[Values] | None = self._select(path, params)
        if found is None and self._is_same(path):
            found = self._kept.once((self.type, path, name, _hashable(params)), single)
        return [*found] if found is not None else single()

    def lacks(self, path: str, **params: object) -> bool:
        """Whether a list of all projects has no row with these values; the service may know one all the same."""
        rows = self._rows(path, params)
        return rows is not None and not rows.matching(params)

    def _select(self, path: str, params: Raw) -> Sequence[Answer] | None:
        """Return the part of a list of all projects; None if there is no such list."""
        rows = self._rows(path, params)
        return rows.select(params) if rows is not None else None

    def _rows(self, path: str, params: Raw) -> whole.Rows | None:
        shape = self._wholes.get(path)
        if shape is None or not whole.answers(shape, params):
            return None
        name = (self.type, path, *(params[each] for each in shape.per))
        return self._kept.once(name, lambda: whole.read(self, path, shape, params, self._most))

    def _one(self, path: str) -> Answer | None:
        """Return a resource that a list of all projects contains; None if it is not there."""
        pattern, member = ONE.get(self.type, (None, ""))
        found = pattern.fullmatch(path) if pattern else None
        rows = self._select(found[1], {"id": found[2]}) if found else None
        return Answer({member: rows[0]}, rows[0].origin) if rows else None

    def _is_same(self, path: str) -> bool:
        return self._same is not None and self._same.fullmatch(path) is not None


class TenantService(Service):
    """A service as a project's user sees it; of one path, the administrator's list of all projects has its part."""

    def __init__(self, own: Service, path: str, by_project: Callable[[], Groups | None], project_id: str) -> None:
        vars(self).update(vars(own))
        self._path, self._by_project, self._project_id = path, by_project, project_id

    def list(
        self, path: str, name: str, /, *, log: bool = True, headers: Mapping[str, str] | None = None, **params: object
    ) -> list[Values]:
        groups = None if path != self._path or headers or params else self._by_project()
        if groups is None:
            return Service.list(self, path, name, log=log, headers=headers, **params)
        return list(groups.get(self._project_id, ()))


def _hashable(params: Raw) -> Hashable:
    return tuple(sorted((name, str(value)) for name, value in params.items()))
