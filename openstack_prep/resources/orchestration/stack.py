"""Stacks: what Heat creates from a template.

Source: Orchestration API v1, "Stacks"; Heat Orchestration Template specification.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

from openstack_prep.base import secret_forms
from openstack_prep.base.errors import CloudError, Loss, Mistake, NotAllowed, Overtaken
from openstack_prep.base.raw import Raw, Values
from openstack_prep.base.secret import HIDDEN, Secret
from openstack_prep.cloud.cloud_run import BY_PASSWORD, NO_TRUSTS, CloudRun
from openstack_prep.core.deletion_loss import Deletion, DeletionLoss, Finding, Unchecked
from openstack_prep.core.model import COPIED, Change, Context, Key, Observed, OwnershipTag, Resource, UpdateEffects
from openstack_prep.core.resource import LeavesContent
from openstack_prep.core.text import counted
from openstack_prep.resources.cascades.row import find_losses
from openstack_prep.resources.compute.quota import Quota
from openstack_prep.resources.heat.flow import Flow, list_kept
from openstack_prep.resources.heat.operation import ResourceTypes, ServerActions, Signals, Waiting, in_progress
from openstack_prep.resources.heat.package import Package, digest
from openstack_prep.resources.heat.preview import Effect, Refused, preview_update
from openstack_prep.resources.heat.refusals import hide_altered
from openstack_prep.resources.heat.secret_outputs import looks_secret, secret_outputs
from openstack_prep.resources.heat.stacks import SERVER, VOLUME, HeatResource, HeatStack, stack_of, stacks_of
from openstack_prep.resources.image.glance import ID, NAME, SPEC
from openstack_prep.resources.orchestration import checks
from openstack_prep.resources.orchestration.checks import QuotaCheck
from openstack_prep.resources.orchestration.inputs import Inputs, StackNeighbours
from openstack_prep.resources.orchestration.losses import StackLosses, list_undeclared
from openstack_prep.resources.orchestration.record import PENDING, StackRecord, group_names
from openstack_prep.resources.orchestration.update_losses import taken_by_update

COMPARED = ("template", "parameters", "environment", "tags", "status")
DONE = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "CHECK_COMPLETE")
SETTLED = ("CREATE_COMPLETE", "CREATE_FAILED", "UPDATE_COMPLETE", "ROLLBACK_COMPLETE")
"""When no resource is left as an earlier template had it: an update that failed did not reach all of them."""
NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Stack(Inputs, LeavesContent):
    """A Heat stack. The ownership tag is a tag of the stack.

    It comes after all other project-scoped resources of the spec, because only its template shows what it uses. The
    plan shows what Heat reports for an update, and Heat is asked again right before the update; replacing resources or
    wiping disks in place needs --allow-replace. Servers and ports that no longer exist are created again; servers that
    have lost their last port are replaced, which also needs --allow-replace. The needs of a new stack are first checked
    against the project's quotas, together with the other stacks of the spec in that project. Apply waits for a stack
    that is in progress. After a failure the next apply continues with the same stack.
    """

    def resolve(self, context: Context) -> Sequence[Resource]:
        if self.neighbours != StackNeighbours():
            return (self,)
        quotas = self.of_project(context.declared(Quota))
        known, after = self._with_values(context), self._comes_after(context)
        images = known._list_secrets_images(after, for_apply=context.for_apply)
        if images:
            named = {image.parameter: image.name for image in images}
            known = replace(known, parameters={**(known.parameters or {}), **named})
        quota = next(iter(quotas), None)
        resolved = replace(known, neighbours=StackNeighbours((*after, *images), quota, images))
        return (resolved, *images)

    def list_mistakes(self, context: Context) -> Iterable[Mistake]:
        resolved = self.resolve(context)[0]
        assert isinstance(resolved, Stack)
        return checks.declared(resolved)

    def list_warnings(self, context: Context) -> Iterable[str]:
        if not isinstance(self.package, Package):
            return
        known, images = self, self.neighbours.secrets_images
        if not images:
            known = self._with_values(context)
            images = known._list_secrets_images(self._comes_after(context), for_apply=False)
        yield from checks.list_shown(known, self.package, images)

    def _with_values(self, context: Context) -> Stack:
        """Return the stack with what other resources of the spec provide for its parameters."""
        parameters, secrets = self._completed(context)
        return replace(self, parameters=parameters, secret_parameters=secrets)

    # --- existing state -------------------------------------------------------------------

    @classmethod
    def find(cls, run: CloudRun, wanted: Sequence[Self]) -> Mapping[Key, Observed]:
        found = {}
        for owner, mine in cls.by_project(wanted).items():
            for each in mine:
                seen = stack_of(run, owner, each.name)
                if seen is not None:
                    found[each.key] = each._observed(run, HeatStack(seen[0], each.name, seen[1]["id"]))
            QuotaCheck.of(run, owner).register((each, found.get(each.key)) for each in mine)
        return found

    @classmethod
    def scan(cls, run: CloudRun, owner: Resource | None) -> Iterator[tuple[Self, Observed]]:
        """Yield the stacks of a project, without their inputs, which only Heat stores."""
        cloud = run.find_tenant(owner)
        if cloud is None or not cloud.has("orchestration"):
            return
        for raw in stacks_of(run, cloud):
            if raw.get("project") in (None, cloud.project_id) and not raw.get("parent"):
                stack = HeatStack(cloud, raw["stack_name"], raw["id"])
                tags = raw.get("tags") or ()
                ours, doubt = _judged(run, stack, tags)
                declared = cls(name=raw["stack_name"], template="", **cls.placing(owner))
                contained_ids = stack.contained_ids if ours else NOTHING
                record = StackRecord(stack=stack, status=raw["stack_status"])
                owned = _other_specs(run, tags)
                found = Observed(id=raw["id"], ours=ours, managed_by=owned, record=record, doubt=doubt)
                yield declared, replace(found, contained_ids=contained_ids)

    def _observed(self, run: CloudRun, stack: HeatStack) -> Observed:
        raw = stack.show()
        tags = frozenset(raw.get("tags") or ())
        ours, doubt = _judged(run, stack, tags)
        status = "complete" if raw["stack_status"] in DONE else raw["stack_status"]
        missing = {} if in_progress(raw) else stack.missing()
        cut_off = stack.cut_off() if not in_progress(raw) and SERVER in stack.types else {}
        values: Values = {"status": status, "tags": tags & frozenset(self.tags or ())}
        record = StackRecord(
            stack=stack,
            status=raw["stack_status"],
            tags=tags,
            missing=missing | cut_off,
            cut_off=frozenset(cut_off),
            outdated={} if in_progress(raw) else self._outdated(run, stack),
        )
        private = NOTHING
        if isinstance(self.package, Package):
            template, files, environment = stack.inputs()
            values["template"] = digest(template, files)
            if values["template"] != digest(self.package.template, self.package.files):
                private = secret_outputs(Package(template, files, environment))
            values["environment"] = self.package.settings(environment)
            given = environment.get("parameters") or {}
            values["parameters"] = self.package.visible({k: v for k, v in given.items() if k not in self.hidden})
            if not record.in_progress and not record.deleting:
                record = self._preview(run, record, values, ours)
            elif not record.in_progress:  # an update first deletes what a failed deletion has left
                record = replace(record, taken=tuple(StackLosses(run, stack).find()))
        conditions = dict.fromkeys(missing, "") | dict.fromkeys(cut_off, " without a port")
        values["missing"] = frozenset(f"{place} {record.missing[place].id}{what}" for place, what in conditions.items())
        values["outdated"] = frozenset(f"{place} {each.id}" for place, each in record.outdated.items())
        values[PENDING] = frozenset(map(str, record.preview))
        outputs, secrets = self._outputs(raw, private)
        return Observed(
            id=raw["id"],
            ours=ours,
            managed_by=_other_specs(run, tags),
            values=values,
            outputs=outputs,
            secrets=secrets,
            record=record,
            contained_ids=stack.contained_ids,
            doubt=doubt,
        )

    def _outdated(self, run: CloudRun, stack: HeatStack) -> dict[str, HeatResource]:
        """Return, by place, the volumes that were not made of the present images of secrets, or of what follows them.

        Heat knows these images by name, so it keeps such a volume, also for the successor of its server. A volume made
        of a copy of such an image is not one of them.
        """
        present = {image.name: image.find_present(run) for image in self.neighbours.secrets_images}
        return {
            place: volume
            for place, (volume, origin) in (stack.made_of_images() if present else {}).items()
            if origin.get(SPEC) == run.ownership.spec
            and origin.get(NAME) in present
            and origin.get(ID) == origin.get("image_id") != present[origin[NAME]]
        }

    def _preview(self, run: CloudRun, record: StackRecord, values: Raw, ours: bool) -> StackRecord:
        """Ask Heat what an update would do, if the stack differs and all resources that it refers to exist."""
        wanted = self.desired()
        same = all(values.get(name) == wanted[name] for name in COMPARED if name in wanted)
        same = same and not record.missing and not record.outdated
        if (same and (ours or not self.takes_over)) or not isinstance(self.package, Package) or not self.askable(run):
            return record
        body, secrets = self.body(record.tags, absent=self.absent_images(run))
        before, names = values["parameters"], sorted(self.given.keys() - self.package.hidden)
        try:
            found = preview_update(
                record.stack, body, secrets, before, names, record.missing, is_settled=record.status in SETTLED
            )
        except Refused as error:
            return replace(record, asked=True, refused=hide_altered(str(error), self.package))
        known = {effect.place for effect in found}
        found += [Effect("replace", place, VOLUME) for place in record.outdated if place not in known]
        package = self.package
        registry = package.environment.get("resource_registry") or {}
        kept = list_kept(package.template, package.files, registry, before, package.visible(self.given))
        record = replace(record, asked=True, preview=tuple(sorted(found)), kept=tuple(kept))
        taken = tuple(dict.fromkeys(taken_by_update(run, record.stack, found)))
        named = group_names(package.template, package.visible({**before, **self.given}))
        return replace(record, taken=taken, group_names=named)

    def _outputs(self, raw: Raw, private: Collection[str] = ()) -> tuple[dict[str, str], dict[str, Secret]]:
        """Return the stack's outputs as text, with stars for those that are secrets, and these.

        ``private`` are those that are secrets by another template, which Heat has.
        """
        values = {output["output_key"]: output.get("output_value") for output in raw.get("outputs") or ()}
        texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in values.items()}
        known = [secret.reveal() for secret in self.secrets.values() if secret.ready]  # so they are fetched from now on
        secrets = {
            name: Secret(text)
            for name, text in texts.items()
            if values[name] is not None
            and (
                name in private
                or self.is_secret_output(name)
                or looks_secret(text)
                or secret_forms.contains(text, known)
            )
        }
        return dict(sorted((texts | dict.fromkeys(secrets, HIDDEN)).items())), secrets

    # --- checks ---------------------------------------------------------------------------

    def quota_need(self, run: CloudRun, changes: Sequence[Change] | None) -> Mapping[str, int]:
        return QuotaCheck.of(run, self.owner).need(self)

    def list_unchecked(self, run: CloudRun, changes: Sequence[Change] | None) -> Iterator[str]:
        if number := QuotaCheck.of(run, self.owner).unjudged_servers(run, self):
            yield f"capacity for {counted(number, 'server')}"

    def check(self, run: CloudRun, observed: Observed | None) -> Iterator[Mistake]:
        yield from checks.against(self, run, observed)
        yield from QuotaCheck.of(run, self.owner).shortages(run, self)
        yield from QuotaCheck.of(run, self.owner).lack_of_room(run, self)

    def _differs(self, observed: Observed) -> bool:
        return any(observed.values.get(name) != value for name, value in self.desired().items() if name != PENDING)

    @classmethod
    def find_losses(cls, run: CloudRun, deletions: Sequence[Deletion], going: frozenset[str]) -> Iterator[Finding]:
        """Yield what goes that is not the spec's, and what services take from others with the resources of stacks."""
        for deletion in deletions:
            record = deletion.observed.record_as(StackRecord)
            yield from ((deletion.key, loss) for loss in list_undeclared(record))
            yield from ((deletion.key, finding) for finding in StackLosses(run, record.stack, going).find())
        yield from find_losses(run, deletions, going)

    def list_taken(self, observed: Observed) -> Iterable[DeletionLoss | Unchecked]:
        return observed.record_as(StackRecord).taken

    def list_losses(self, observed: Observed) -> Iterable[Loss]:
        return checks.list_losses(self, observed)

    def update_effects(self, observed: Observed) -> UpdateEffects | None:
        return observed.record_as(StackRecord).effects

    def is_foreseen(self, observed: Observed) -> bool:
        record = observed.record_as(StackRecord)
        return record.asked and not record.refused

    # --- the verbs ------------------------------------------------------------------------

    def is_settled(self, observed: Observed) -> bool:
        return not observed.record_as(StackRecord).in_progress

    def settle(self, run: CloudRun, observed: Observed) -> bool:
        """Wait until an operation that a killed run or somebody else has started is complete."""
        if self.is_settled(observed):
            return False
        self._waiting(run, observed.record_as(StackRecord).stack, 0, is_own=observed.ours).end(self.timeout)
        return True

    def create(self, run: CloudRun) -> Observed:
        QuotaCheck.of(run, self.owner).ensure_quota(run, self, None)
        # a stack that the user could not see before has other secrets than this run would generate
        if any(secret.is_to_generate for secret in self.secrets_for_heat.values()) and self.find(run.fresh(), [self]):
            raise Overtaken(f"{self.key}: was created before, or could not be read", retryable=True)
        cloud = run.tenant(self.owner)
        body, secrets = self.body(_tags(run, HeatStack(cloud, self.name, "")))
        try:
            made = cloud.orchestration.post("/stacks", {"stack_name": self.name, **body}, secrets=secrets)["stack"]
        except NotAllowed as error:
            if cloud.application_credential_id is None:
                raise
            # Heat's answer is 403 without any reason (Heat 27.0.1, common/wsgi.py)
            raise NotAllowed(f"{error}; {NO_TRUSTS}; {BY_PASSWORD}", status=error.status) from error
        return self._finished(run, HeatStack(cloud, self.name, made["id"]))

    def update(self, run: CloudRun, observed: Observed, changes: Sequence[Change]) -> Observed:
        record = observed.record_as(StackRecord)
        if record.deleting:
            self.delete(run, observed)
            return self.create(run)
        tagged = observed.ours or self.takes_over
        if tagged == observed.ours and not self._differs(observed):
            return observed
        if record.refused:
            raise CloudError(f"Heat refuses the update: {record.refused}; correct the cause")
        if missing := [secret for secret in self.secrets_for_heat.values() if secret.is_to_generate]:
            for secret in missing:  # the plan has shown that they are new
                secret.reveal()
            raise CloudError("its secrets were generated, so Heat can preview the update now", retryable=True)
        if not record.asked:  # nobody knows what it would delete
            raise CloudError(
                "Heat cannot preview the update, because something that it refers to no longer exists; plan again"
            )
        QuotaCheck.of(run, self.owner).ensure_quota(run, self, observed)
        if record.kept:
            run.note(self.key, record.kept_text)
        stack = record.stack
        for each in record.missing.values():
            stack.mark_unhealthy(each, "the resource or its port no longer exists")
        for each in record.outdated.values():
            stack.mark_unhealthy(each, "the secrets on it have changed")
        body, secrets = self.body(record.tags | (_tags(run, stack) if tagged else NOTHING))
        stack.cloud.orchestration.request("PUT", stack.path, json=body, secrets=secrets, once=True)
        return self._finished(run, replace(stack))  # what was read of it before is outdated

    def take_over(self, run: CloudRun, observed: Observed) -> Observed:
        """Add the ownership tag, unless the update has already done so."""
        return observed if observed.ours else self.update(run, observed, ())

    def delete(self, run: CloudRun, observed: Observed) -> None:
        record = observed.record_as(StackRecord)
        stack = record.stack
        if record.status != "DELETE_IN_PROGRESS":
            stack.cloud.orchestration.delete(stack.path)
        waiting = self._waiting(run, stack)
        waiting.raise_for_failure(waiting.end(self.timeout))

    def _waiting(
        self,
        run: CloudRun,
        stack: HeatStack,
        patience: float | None = None,
        *,
        cancels: bool = False,
        is_own: bool = True,
    ) -> Waiting:
        """Return what waits for the stack, and reports what it waits for: signals only if the template has any."""
        heat = stack.cloud.orchestration
        types = ResourceTypes(heat, stack.path)
        signals = Signals(types) if isinstance(self.package, Package) and self.package.may_wait else None
        servers = ServerActions(types, (run.admin, stack.cloud))
        return Waiting(
            heat,
            stack.path,
            lambda text: run.note(self.key, text),
            patience,
            signals,
            servers,
            cancels=cancels,
            is_own=is_own,
            hidden=lambda: (secret.reveal() for secret in self.secrets.values() if secret.fetched),
            is_private=partial(self._is_private, stack),
        )

    def _is_private(self, stack: HeatStack, place: str) -> bool:
        """Whether a resource of the stack, or the stack itself, gets a hidden parameter whose value is not known here.

        So does one for which a function of the template makes something else of a hidden parameter.

        The template and the parameters that Heat has decide, because none are declared, or others are.
        """
        try:
            template, hidden = stack.template, stack.hidden
        except CloudError:  # the failure itself is what is reported, without its reason
            return True
        unknown = hidden - {name for name, secret in self.secrets.items() if secret.fetched}
        flow, resource = Flow(template), place.partition(".")[0]
        # a nested template may have others, and a resource that an update removes is in the old template
        if resource not in flow.resources or unknown - (template.get("parameters") or {}).keys():
            return bool(unknown)
        reaching = hidden & flow.into(resource)
        return bool(unknown & reaching) or (bool(reaching) and flow.alters(reaching, resource))

    def _finished(self, run: CloudRun, stack: HeatStack) -> Observed:
        waiting = self._waiting(run, stack, cancels=not self.rollback)
        waiting.raise_for_failure(waiting.end(self.timeout))
        raw = stack.show()  # the other fields are as requested, since Heat reports success
        record = StackRecord(stack=stack, status=raw["stack_status"], tags=frozenset(raw.get("tags") or ()))
        ours, _ = _judged(run, stack, record.tags)
        outputs, secrets = self._outputs(raw)
        values = self.desired()
        return Observed(id=raw["id"], ours=ours, values=values, outputs=outputs, secrets=secrets, record=record)


def _tags(run: CloudRun, stack: HeatStack) -> frozenset[str]:
    """Return the ownership tag, and the one that names the stack."""
    return frozenset({run.ownership.tag, run.ownership.name_tag(*_identity(stack))})


def _identity(stack: HeatStack) -> tuple[str, str, str]:
    return "stack", stack.cloud.project_id, stack.name


def _judged(run: CloudRun, stack: HeatStack, tags: Collection[str]) -> tuple[bool, str]:
    """Return whether a stack with some tags is managed by this spec, and what makes that doubtful."""
    doubt = run.ownership.doubt(tags, *_identity(stack)) if run.ownership.tag in tags else ""
    return run.ownership.tag in tags and doubt != COPIED, doubt


def _other_specs(run: CloudRun, tags: Iterable[str]) -> str:
    """Return the names of the other specs whose ownership tags are among a stack's tags."""
    return ", ".join(name for name in OwnershipTag.specs_in(tags) if name != run.ownership.spec)
