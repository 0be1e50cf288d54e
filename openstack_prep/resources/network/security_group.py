"""Security groups and their rules.

Source: Networking API v2.0, "Security groups", "Security group rules" (bulk creation).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self, cast

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import CloudError, Mistake, NotFound
from openstack_prep.base.fields import Name
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud import lease
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Change, Coherent, Context, Key, Observed, OwnershipTag, Resource
from openstack_prep.resources.cascades.row import HasCascades
from openstack_prep.resources.identity.in_project import ByProjectUser
from openstack_prep.resources.lists.neutron_records import GroupRecord, RuleRecord
from openstack_prep.resources.lists.rule_owners import SharedRules, has_any_of, left_records, owners_of
from openstack_prep.resources.network.neutron import LONGEST, NetworkResource
from openstack_prep.resources.network.security_group_rule import SELF, SecurityGroupRule, declared_rule, in_words
from openstack_prep.resources.network.uses import Use, blockers_of_group, of_group, port_text

OF_NEW = frozenset(
    in_words(SecurityGroupRule(direction="egress", ethertype=version).record(), None) for version in ("IPv4", "IPv6")
)
"""The rules that Neutron creates with a group."""


@dataclass(frozen=True, kw_only=True)
class SecurityGroup(HasCascades, NetworkResource[GroupRecord], Coherent):
    """A security group of the project, which may be its "default" group, and its rules.

    Rules of this spec that are no longer declared are deleted, unless another spec declares them, too. Rules of others,
    and the egress rules that Neutron creates, are kept.
    """

    kind: ClassVar[str] = "security_group"
    collection: ClassVar[str] = "security-groups"
    member: ClassVar[str] = "security_group"
    defaults: ClassVar[Values] = {"stateful": True}
    identity: ClassVar[frozenset[str]] = NetworkResource.identity | {"rules"}

    name: Name
    """Name of the group, unique in its project."""
    stateful: bool | None = None
    """Whether replies pass without a rule; created as true by default."""
    rules: tuple[SecurityGroupRule, ...] | None = None
    """Rules to have; a plan shows them as a separate resource."""

    def contradictions(self) -> Iterable[InvalidValue]:
        if self.takes_over and not self.can_be_managed:
            fix = "set adopt: true, or remove it"
            yield InvalidValue("the group default belongs to its project; Neutron deletes it only with that", fix)

    def quota_need(self, run: CloudRun, changes: Sequence[Change] | None) -> Mapping[str, int]:
        return {**super().quota_need(run, changes), "security_group_rules": len(OF_NEW) if changes is None else 0}

    def list_long_texts(self, spec: str) -> Iterable[Mistake]:
        yield from super().list_long_texts(spec)
        for index, rule in enumerate(self.rules or ()):
            text = OwnershipTag(spec).describe(self.name, rule.description)
            if len(text) > LONGEST:
                what = f"description has {len(text)} characters with the ownership tag, and Neutron stores {LONGEST}"
                fix = f"shorten it by {len(text) - LONGEST}"
                yield self.mistake(what, fix, Code.SPEC_INVALID_VALUE, f"rules[{index}]")

    @property
    def can_be_managed(self) -> bool:
        return self.name != "default"

    @classmethod
    def read(cls, raw: Raw) -> GroupRecord:
        return GroupRecord.read(raw)

    def is_ours(self, run: CloudRun, record: GroupRecord) -> bool:
        return self.can_be_managed and super().is_ours(run, record)

    def check_delete(self, run: CloudRun, observed: Observed, going: frozenset[str]) -> Iterable[Mistake]:
        for port in blockers_of_group(run, observed.record_as(GroupRecord), going):
            what = f"{port_text(port)} still uses the group"
            yield self.mistake(what, "remove the group from that port first", Code.STILL_USED)

    @classmethod
    def in_words(cls, run: CloudRun, record: GroupRecord) -> Values:
        return {"rules": None}  # a separate resource

    def use(self, run: CloudRun, record: GroupRecord) -> Use:
        return of_group(run, record)

    def resolve(self, context: Context) -> Sequence[Resource]:
        """Return the group and its rules as two resources: rules may refer to each other's groups."""
        rules = self.own_rules
        return (self,) if rules is None else (replace(self, rules=None), rules)

    @property
    def own_rules(self) -> SecurityGroupRules | None:
        """The rules as a resource; None if none are declared here."""
        if self.rules is None:
            return None
        return cast(SecurityGroupRules, self.sibling(SecurityGroupRules, self.name, rules=self.rules))

    @classmethod
    def declared(cls, run: CloudRun, owner: Resource | None, record: GroupRecord) -> Self:
        """Return the group that a spec would declare, without the leases of runs in its description."""
        return super().declared(run, owner, replace(record, description=lease.strip(record.description)))

    def observe(self, run: CloudRun, record: GroupRecord) -> Observed:
        """Return the existing group, without the leases of runs in the description of "default"."""
        seen = super().observe(run, replace(record, description=lease.strip(record.description)))
        return replace(seen, record=record)

    def put(self, run: CloudRun, observed: Observed, body: Raw) -> GroupRecord:
        if "description" in body:
            before = observed.record_as(GroupRecord).description
            body = {**body, "description": lease.keep(before, body["description"])}
        return super().put(run, observed, body)

    def delete(self, run: CloudRun, observed: Observed) -> None:
        """Delete it unless a rule came in since it was read.

        Its rules are part of its revision, and those that admit another group go with that one, which may be deleted at
        the same time (Neutron 29.0.0, db/models/securitygroup.py, SecurityGroupRule: revises_on_change,
        remote_group_id). A group that has only lost rules is deleted as it is now.
        """
        before = observed.record_as(GroupRecord)
        try:
            super().delete(run, observed)
        except CloudError as error:
            if error.status != 412:
                raise
            now = self.again(self.maker(run)[0], observed)
            if now is None:
                return
            has_only_lost = set(now.security_group_rules) < set(before.security_group_rules)
            if not has_only_lost or now.description != before.description:
                raise
            self.delete(run, replace(observed, record=now))


@dataclass(frozen=True, kw_only=True)
class SecurityGroupRules(ByProjectUser):
    """The rules to have in a security group, created after all groups: rules may refer to each other's groups.

    The spec manages the rules that it has created or recorded (``rule_owners``); a rule goes with its last owner.
    Deleting the group deletes all its rules.
    """

    kind: ClassVar[str] = "security_group_rules"

    name: Name
    """Name of the group."""
    rules: tuple[SecurityGroupRule, ...]
    """Rules to have."""

    @property
    def group(self) -> SecurityGroup:
        return cast(SecurityGroup, self.sibling(SecurityGroup, self.name))

    @property
    def container(self) -> Key:
        return self.group.key

    def references(self) -> Iterable[Resource]:
        return (*super().references(), self.group, *self._remote_groups().values())

    def outlives(self) -> Iterable[Key]:
        """Return also the remote groups: Neutron deletes the rules that name one, and keeps the group with the rules.

        Source: Neutron 29.0.0, db/models/securitygroup.py, SecurityGroupRule.remote_group_id: ondelete CASCADE.
        """
        return (*super().outlives(), *(remote_group.key for remote_group in self._remote_groups().values()))

    def _remote_groups(self) -> dict[str, SecurityGroup]:
        names = {rule.remote_group for rule in self.rules if rule.remote_group} - {SELF, self.name}
        return {name: self.sibling(SecurityGroup, name) for name in sorted(names)}

    # --- rules in words ---------------------------------------------------------------------

    def desired(self) -> Values:
        return {"rules": frozenset(self._declared())}

    def quota_need(self, run: CloudRun, changes: Sequence[Change] | None) -> Mapping[str, int]:
        """Return how many rules are created: those of a new group beyond its own, or those that a group does not have.

        A rule that the group has by another spec is joined, and needs no quota.
        """
        group = None if changes is None else run.look(self.group)
        present = self._present(group.record_as(GroupRecord), self._remote_names(run)) if group else OF_NEW
        return {"security_group_rules": len(self._declared().keys() - present)}

    def _declared(self) -> dict[str, SecurityGroupRule]:
        return {in_words(rule.record(), self.remote_of(rule)): rule for rule in self.rules}

    def remote_of(self, rule: SecurityGroupRule) -> str | None:
        """Return the group that a rule admits; ``self`` for its own, which may also be named."""
        return SELF if rule.remote_group == self.name else rule.remote_group

    def _remote_names(self, run: CloudRun) -> dict[str, str]:
        """Return the names of the groups that the rules admit, by id."""
        return {found.id: name for name, remote in self._remote_groups().items() if (found := run.look(remote))}

    def _present(self, group: GroupRecord, names: Mapping[str, str]) -> dict[str, list[RuleRecord]]:
        """Return the existing rules of a group, by their text in terms of a spec; Neutron may have several per text."""
        names = {**names, group.id: SELF}
        present: dict[str, list[RuleRecord]] = {}
        for rule in group.security_group_rules:
            remote = rule.remote_group_id
            present.setdefault(in_words(rule, remote and names.get(remote, remote)), []).append(rule)
        return present

    # --- the verbs ------------------------------------------------------------------------

    @classmethod
    def find(cls, run: CloudRun, wanted: Sequence[Self]) -> Mapping[Key, Observed]:
        groups = SecurityGroup.find(run, [each.group for each in wanted])
        pairs = ((each, groups.get(each.group.key)) for each in wanted)
        return {
            each.key: each._observed(run, group.record_as(GroupRecord), each._remote_names(run))
            for each, group in pairs
            if group
        }

    @classmethod
    def scan(cls, run: CloudRun, owner: Resource | None) -> Iterator[tuple[Self, Observed]]:
        project_id = run.find_project_id(owner)
        groups = SecurityGroup.listing(run, project_id) if project_id else ()
        names = {group.id: group.name for group in groups}
        for group in groups:
            rules = group.security_group_rules
            declarations = (
                declared_rule(rule, group.id, names, OwnershipTag.strip(rule.description)) for rule in rules
            )
            declared = cls(name=group.name, rules=tuple(filter(None, declarations)), **cls.placing(owner))
            seen = declared._observed(run, group, names)  # of groups that share a name, none can be looked for
            yield declared, replace(seen, ours=has_any_of(run.ownership.spec, group))

    def _observed(self, run: CloudRun, group: GroupRecord, names: Mapping[str, str]) -> Observed:
        """Return the rules of this spec, and the declared ones that others have created by hand.

        A rule that only other specs own goes with them, so it is missing as long as this spec has not recorded it.
        """
        declared, values, ids = self._declared(), set(), set()
        for words, rules in self._present(group, names).items():
            owners = [owners_of(group, rule) for rule in rules]
            if any(run.ownership.spec in each for each in owners) or (words in declared and frozenset() in owners):
                values.add(words)
                ids |= {rule.id for rule, names in zip(rules, owners, strict=True) if names <= {run.ownership.spec}}
        return Observed(
            id=group.id,
            ours=has_any_of(run.ownership.spec, group) or run.ownership.manages(group.name, group.description),
            values={"rules": frozenset(values)},
            record=group,
            contained_ids=frozenset(ids),
        )

    def deleted_ids(self, observed: Observed) -> frozenset[str]:
        return observed.contained_ids  # the group may stay

    def create(self, run: CloudRun) -> Observed:
        group = run.look(self.group)
        if group is None:
            raise NotFound(f"{self.group.key} exists neither in the spec nor in the cloud")
        return self.update(run, self._observed(run, group.record_as(GroupRecord), self._remote_names(run)), ())

    def update(self, run: CloudRun, observed: Observed, changes: Sequence[Change]) -> Observed:
        """Add the missing rules with one request, join those of other specs, and leave those no longer declared."""
        group = observed.record_as(GroupRecord)
        declared, present = self._declared(), self._present(group, self._remote_names(run))
        missing = [rule for words, rule in declared.items() if words not in present]
        cloud, owner = run.creator_of(self.owner)
        if missing:
            bodies = [self._body(run, observed.id, rule) | owner for rule in missing]
            cloud.network.post("/security-group-rules", {"security_group_rules": bodies})
        there = observed.values["rules"]
        if joined := [present[words][0] for words in declared if words in present and words not in there]:
            self._shared(run, group).join(joined)
        going = [rule for words, rules in present.items() if words not in declared for rule in rules]
        self._leave(run, group, going)
        return replace(observed, ours=True, values=self.desired())

    def _body(self, run: CloudRun, group_id: str, rule: SecurityGroupRule) -> Values:
        remote = self.remote_of(rule)
        remote_id = group_id if remote == SELF else remote and run.id(self.sibling(SecurityGroup, remote))
        return rule.body() | {
            "security_group_id": group_id,
            "remote_group_id": remote_id,
            "description": run.ownership.describe(self.name, rule.description),
        }

    def delete(self, run: CloudRun, observed: Observed) -> None:
        group = observed.record_as(GroupRecord)
        if not run.ownership.manages(group.name, group.description):
            self._leave(run, group, group.security_group_rules)

    def _shared(self, run: CloudRun, group: GroupRecord) -> SharedRules:
        cloud, owner = run.creator_of(self.owner)
        return SharedRules(network=cloud.network, spec=run.ownership.spec, group_id=group.id, placing=owner)

    def _leave(self, run: CloudRun, group: GroupRecord, rules: Iterable[RuleRecord]) -> None:
        """Delete those of some rules that only this spec owns; others and their records stay."""
        spec = run.ownership.spec
        going = [rule for rule in rules if spec in owners_of(group, rule)]
        if going or left_records(group, spec):
            self._shared(run, group).leave(going)
