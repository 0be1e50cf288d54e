"""A plan together with its inputs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.lease import LeaseReading
from openstack_prep.core.plan import Plan
from openstack_prep.spec import Spec

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud


@dataclass(frozen=True, kw_only=True)
class LivePlan(Plan):
    """A plan that can be carried out, and created again.

    ``made`` is when, by the monotonic clock. ``wanted`` is the spec, ``run`` holds what was read, ``lease`` is who was
    at work on the spec before that. ``remake`` creates it again; None: the verbs do.
    """

    wanted: Spec = field(repr=False, compare=False)
    run: CloudRun = field(repr=False, compare=False)
    lease: LeaseReading = field(repr=False, compare=False)
    remake: Callable[[], LivePlan] | None = field(default=None, repr=False, compare=False)
    made: float = field(default_factory=time.monotonic, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        plan: Plan,
        *,
        wanted: Spec,
        run: CloudRun,
        lease: LeaseReading,
        remake: Callable[[], LivePlan] | None = None,
    ) -> Self:
        """Return a plan with its inputs."""
        return cls(**vars(plan), wanted=wanted, run=run, lease=lease, remake=remake)

    @property
    def tenant(self) -> Cloud | None:
        """The connection that the spec names for the project's own work, if any."""
        return self.run.find_tenant(None) if self.wanted.clouds.tenant else None

    @property
    def age(self) -> float:
        """Seconds since the cloud was read for it."""
        return time.monotonic() - self.made
