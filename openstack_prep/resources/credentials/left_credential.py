"""Application credentials that the spec no longer declares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Observed
from openstack_prep.resources.credentials.application_credential import ApplicationCredential
from openstack_prep.resources.credentials.credential_record import Credentials


@dataclass(frozen=True, kw_only=True)
class LeftCredential(ApplicationCredential):
    """The credentials of one removed declaration, found by id: it is not known which file holds the entry."""

    declarable: ClassVar[bool] = False

    clouds_yaml: str = ""
    cloud: str = ""
    ids: frozenset[str]

    def find_one(self, run: CloudRun) -> Observed | None:
        listed = (record for record in self._listed(run) if record.id in self.ids)
        mine = tuple(record for record in listed if run.ownership.owns(record.description, self.name))
        if not mine:
            return None
        known = Credentials(live=None, mine=mine, lost=(), kept=None, begun=False)
        ids = frozenset(record.id for record in mine)
        return Observed(id=mine[0].id, ours=True, record=known, contained_ids=ids)
