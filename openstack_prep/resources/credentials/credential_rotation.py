"""Rotation of application credentials: a new credential replaces the one in use, whether it differs or not."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

from openstack_prep.base.raw import Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Observed
from openstack_prep.core.resource import Undeclarable
from openstack_prep.resources.credentials.application_credential import ApplicationCredential
from openstack_prep.resources.credentials.credential_record import CredentialRecord


@dataclass(frozen=True, kw_only=True)
class RotatedCredential(ApplicationCredential, Undeclarable):
    """A credential that must differ from the one that was in use when the rotation was planned.

    So a second run has nothing left to do, and the next run continues after a run that was killed.
    """

    identity: ClassVar[frozenset[str]] = ApplicationCredential.identity | {"retired"}

    retired: str
    """Id of the credential to replace."""

    @staticmethod
    def of(credential: ApplicationCredential, observed: Observed, keep_old: bool) -> RotatedCredential:
        given = {each.name: getattr(credential, each.name) for each in fields(ApplicationCredential)}
        made = RotatedKeepingOld if keep_old else RotatedCredential
        return made(**given, retired=observed.id)

    def desired(self) -> Values:
        return super().desired() | {"rotated": True}

    def values(self, run: CloudRun, record: CredentialRecord) -> Values:
        return super().values(run, record) | {"rotated": record.id != self.retired}


@dataclass(frozen=True, kw_only=True)
class RotatedKeepingOld(RotatedCredential):
    """A rotated credential whose predecessor stays in use elsewhere, stored in the entry CLOUD-old."""

    keeps_old: ClassVar[bool] = True
