"""Address pairs on a port that the spec no longer declares."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import ClassVar

from openstack_prep.base.errors import NotFound
from openstack_prep.base.fields import Name
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Observed
from openstack_prep.resources.addresses import pair_writing
from openstack_prep.resources.addresses.pair_records import PortShares, Share, recorded_pairs
from openstack_prep.resources.identity.in_project import ByProjectUser
from openstack_prep.resources.network.port import ports_of


@dataclass(frozen=True, kw_only=True)
class LeftPairs(ByProjectUser):
    """The recorded pairs of one port, which is found by id: a port may have no name, or a name that is not unique."""

    kind: ClassVar[str] = "address_pairs"
    declarable: ClassVar[bool] = False

    name: Name
    port_id: str

    def find_one(self, run: CloudRun) -> Observed | None:
        for port in ports_of(run, run.find_project_id(self.owner)):
            mine = recorded_pairs(run.ownership, port)
            if mine and port.id == self.port_id:
                return Observed(id=port.id, ours=True, record=PortShares((Share(port, mine, mine=mine),)))
        return None

    def delete(self, run: CloudRun, observed: Observed) -> None:
        network = run.creator_of(self.owner)[0].network
        for share in observed.record_as(PortShares).shares:
            with contextlib.suppress(NotFound):  # the port was deleted together with its pairs
                pair_writing.update_pairs(network, run.ownership, replace(share, wanted=frozenset(), stale=share.mine))
