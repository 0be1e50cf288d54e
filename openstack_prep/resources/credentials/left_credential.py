"""Application credentials that the spec no longer declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Key, Observed
from openstack_prep.resources.credentials.application_credential import ApplicationCredential
from openstack_prep.resources.credentials.credential_record import Credentials


@dataclass(frozen=True, kw_only=True)
class LeftCredential(ApplicationCredential):
    """The credentials of one removed declaration, found by id: it is not known which file holds the entry."""

    declarable: ClassVar[bool] = False

    clouds_yaml: str = ""
    cloud: str = ""
    ids: frozenset[str]

    @classmethod
    def find(cls, run: CloudRun, wanted: Sequence[Self]) -> Mapping[Key, Observed]:
        found = {}
        for each in wanted:
            listed = (record for record in each._listed(run) if record.id in each.ids)
            mine = tuple(record for record in listed if run.ownership.owns(record.description, each.name))
            if mine:
                known = Credentials(live=None, mine=mine, lost=(), kept=None, begun=False)
                ids = frozenset(record.id for record in mine)
                found[each.key] = Observed(id=mine[0].id, ours=True, record=known, contained_ids=ids)
        return found
