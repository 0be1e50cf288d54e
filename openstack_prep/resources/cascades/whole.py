"""Lists of a whole cloud: one in place of one list per deletion, where a service has no filter for several.

A deletion reads such a list again and again (see ``executor.FRESH``), so only a short one is read, and only for several
deletions. Otherwise each deletion has a list of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from openstack_prep.base.errors import CloudError
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.run import fact

SEVERAL = 4
"""Deletions from which on a whole list is worth its request."""


@dataclass(frozen=True, kw_only=True)
class WholeList:
    """A list of a service: ``service`` is the connection's attribute, ``member`` the answer's.

    ``most`` is how many rows count as short. ``has_limit``: the service has the parameter limit, so that no more are
    read to know that. ``secret`` is the member of a row that is neither logged nor kept.
    """

    service: str
    path: str
    member: str
    most: int = 2000
    params: tuple[tuple[str, object], ...] = ()
    has_limit: bool = False
    secret: str = ""

    def of(self, **params: object) -> Self:
        return replace(self, params=(*self.params, *params.items()))

    def at(self, thing_id: str) -> Self:
        return replace(self, path=self.path.format(thing_id))

    def read_for(self, run: CloudRun, kind: str, thing_id: str) -> Sequence[Raw] | None:
        """Return all rows, in which those of one deletion are; None if it has to read a list of its own."""
        return self.rows(run) if len(run.companions_of(kind, thing_id)) >= SEVERAL else None

    def rows(self, run: CloudRun) -> Sequence[Raw] | None:
        """Return all rows; None if they are too many, or these credentials may not read them."""
        return run.read_once(self, lambda: self._read(run))

    def give_up(self, run: CloudRun) -> None:
        """Do not read it again in this run."""
        _given_up(run).add(self)

    def _read(self, run: CloudRun) -> Sequence[Raw] | None:
        if self in _given_up(run):
            return None
        params: Values = dict(self.params) | ({"limit": self.most + 1} if self.has_limit else {})
        rows: list[Raw] = []
        try:
            service = getattr(run.admin, self.service)
            for page in service.pages(self.path, self.member, params, log=not self.secret, once=True):
                rows += map(self._without_secret, page[self.member])
                # keystone 30.0.0, server/flask/common.py, wrap_collection: truncated, after list_limit rows
                if len(rows) > self.most or page.get("truncated"):
                    self.give_up(run)
                    return None
        except CloudError:  # only its own parts may be read, or all are too many in time: each deletion says what fails
            self.give_up(run)
            return None
        return rows

    def _without_secret(self, raw: Raw) -> Raw:
        return {name: value for name, value in raw.items() if name != self.secret}


@fact
def _given_up(run: CloudRun) -> set[WholeList]:
    """Return the lists that are of no use in this cloud."""
    return set()
