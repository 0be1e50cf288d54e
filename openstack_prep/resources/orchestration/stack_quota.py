"""Check that a project's quotas suffice for all new stacks of a spec together, before the first one is created.

Heat is asked what it would create, because only Heat can evaluate a template. Amounts that an update releases are not
counted as free: Heat creates the new resources before it deletes the old ones.

Source: Orchestration API v1, "Preview stack"; quota details of Compute, Networking and Block Storage.
"""

from __future__ import annotations

import shlex
import threading
from collections.abc import Iterable, Iterator, Mapping

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, NotAllowed, NotFound, QuotaExceeded
from openstack_prep.base.raw import Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Key, Observed, Resource
from openstack_prep.core.run import query
from openstack_prep.resources.compute import quota_stores
from openstack_prep.resources.compute.quota_stores import EACH, QuotaUsage
from openstack_prep.resources.heat import heat_need
from openstack_prep.resources.heat.heat_need import Need
from openstack_prep.resources.heat.heat_preview import Refused, preview
from openstack_prep.resources.heat.heat_standing import standing
from openstack_prep.resources.lists import queries
from openstack_prep.resources.orchestration.stack_inputs import Inputs
from openstack_prep.resources.orchestration.stack_record import StackRecord

OTHER = "-as-it-would-be"  # Heat does not preview a new stack if its name exists


def planned(run: CloudRun, stack: Inputs, suffix: str = "") -> list[Values]:
    """Return the resources that Heat would create from its inputs, requested once per run; raises Refused."""

    def ask() -> list[Values]:
        body, secrets = stack.body((), absent=stack.absent_images(run))
        return preview(run.tenant(stack.owner).orchestration, stack.name + suffix, body, secrets)

    return run.read_once((planned, stack.key, suffix), ask)  # by key: the inputs are not hashable


class QuotaCheck:
    """The needs of all stacks of one project; each stack is counted once, together with those that wait with it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted: dict[Key, tuple[Inputs, Observed | None]] = {}
        self._shortages: dict[Key, list[Mistake]] = {}
        self._first: set[Key] = set()  # the stack that reports for those counted together

    @classmethod
    def of(cls, run: CloudRun, owner: Resource | None) -> QuotaCheck:
        return _quota_check(run, owner)

    def register(self, stacks: Iterable[tuple[Inputs, Observed | None]]) -> None:
        """Register stacks, and the existing stack of each."""
        with self._lock:
            for stack, observed in stacks:
                self._wanted.setdefault(stack.key, (stack, observed))

    def shortages(self, run: CloudRun, stack: Inputs) -> list[Mistake]:
        """Return the quotas that are too small, as far as known so far; one stack reports for those counted with it."""
        with self._lock:
            self._count(run)
            return self._shortages.get(stack.key, []) if stack.key in self._first else []

    def ensure_quota(self, run: CloudRun, stack: Inputs, observed: Observed | None) -> None:
        """Raise QuotaExceeded if a stack does not fit; stacks that the plan could not count are counted now."""
        with self._lock:
            if stack.key not in self._shortages:
                self._wanted[stack.key] = (stack, observed)
                self._count(run.fresh())
            short = self._shortages.get(stack.key)
        if short:
            raise QuotaExceeded("nothing was created: " + "; ".join(f"{each.what}; {each.fix}" for each in short))

    def _count(self, run: CloudRun) -> None:
        uncounted = [each for key, each in self._wanted.items() if key not in self._shortages]
        ready = [(stack, seen) for stack, seen in uncounted if _settled(seen) and stack.askable(run)]
        if not ready:
            return
        known = {stack.key: _need(run, stack, observed) for stack, observed in ready}
        needs = {key: need for key, need in known.items() if need is not None}
        if not needs:
            return
        short = list(_shortages(run, ready[0][0], needs))
        self._shortages |= {key: [each for each in short if need] for key, need in needs.items()}
        self._first.add(next((key for key, need in needs.items() if need), ready[0][0].key))


def _settled(observed: Observed | None) -> bool:
    """Whether an existing stack will not change until this run changes it."""
    record = observed.record_as(StackRecord) if observed else None
    return record is None or not (record.in_progress or record.deleting)


@query
def _quota_check(run: CloudRun, owner: Resource | None) -> QuotaCheck:
    return QuotaCheck()


def _need(run: CloudRun, stack: Inputs, observed: Observed | None) -> Need | None:
    """Return how much of each quota a stack needs; empty if Heat refuses its inputs, which is reported elsewhere.

    None if Heat refuses them while resources of the spec are still to come: a plain parameter may name one of these, so
    Heat is asked again before the stack is created.
    """
    record = observed.record_as(StackRecord) if observed else None
    if observed and record and not record.preview and not record.missing and observed.values["status"] == "complete":
        return {}
    root = stack.name + (OTHER if observed else "")
    try:
        wants = heat_need.wants(planned(run, stack, root.removeprefix(stack.name)), root, queries.flavors(run))
    except Refused as error:
        if stack.awaits(run):
            return None
        run.note(stack.key, f"not checked against the quotas: {error}")
        return {}
    existing = standing(record.stack, record.missing, record.preview) if record else {}
    return heat_need.difference(wants, existing)


def _shortages(run: CloudRun, stack: Inputs, needs: Mapping[Key, Need]) -> Iterator[Mistake]:
    """Yield each quota that the stacks exceed together; ``stack`` is any of them."""
    declared = stack.quota.desired() if stack.quota else {}
    total = heat_need.together(needs.values())
    for name, quota in _quotas(run, stack, total).items():
        number = total[name]
        quota = QuotaUsage(declared.get(name, quota.limit), quota.used)
        if quota.allows(number):
            continue
        users = [key for key, need in needs.items() if need.get(name)]
        left = f"{quota.limit} are allowed" if name in EACH else f"{quota.left} are left of {quota.limit}"
        word = "needs" if len(users) == 1 else "need together"
        enough = quota.used + number
        field = f"raise quota.{name} in the spec to {enough}"
        project = stack.owner.name if stack.owner else run.admin.project_id
        command = f"raise the quota: {shlex.join(quota_stores.set_command(name, enough, project))}"
        what = f"{word} {number} {heat_need.label(name)}, {left}"
        yield Mistake.about(users, what, field if name in declared else command, code=Code.QUOTA_SHORT)


def _quotas(run: CloudRun, stack: Inputs, total: Need) -> dict[str, QuotaUsage]:
    """Return the affected quotas, in the order of ``total``, without those of services that do not report them."""
    found: dict[str, QuotaUsage | None] = {}
    project_id = run.id(stack.owner) if stack.owner else run.admin.project_id
    for store in quota_stores.STORES:
        names = [name for name in total if quota_stores.store_of(name) is store]
        if not names:
            continue
        try:
            answer = quota_stores.read(run.admin, store, project_id)
        except (NotAllowed, NotFound) as error:
            run.note(
                stack.key,
                f"{', '.join(names)}: not checked, because the credentials in use may not read these quotas: {error}",
            )
            continue
        found |= {name: quota_stores.quota_usage(name, answer) for name in names}
    return {name: quota for name in total if (quota := found.get(name)) is not None}
