"""Who owns a rule of a security group: the specs that declare it.

Neutron has equal rules only once per group, and neither tags a rule nor changes its description (Neutron 29.0.0:
``_check_for_duplicate_rules`` in db/securitygroups_db.py; no ``tag_support`` of ``SecurityGroupRule`` in
db/models/securitygroup.py). The description of a rule names the spec that created it. When another spec declares the
rule, too, tags of the group record all its owners, the first one included, and from then on only these records count:
``openstack-prep:SPEC~rules~ID.ID``, with the first 13 characters of the ids. A group has at most 50 tags, so one tag
records several rules.

A spec records a rule before it relies on it, and deletes the record after the rule. Each writer reads the group again
after it has written: of two specs that come and go at the same time, at least one sees the other.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Set
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from openstack_prep.base.errors import CloudError, NotFound
from openstack_prep.base.raw import Values
from openstack_prep.core.model import OwnershipTag
from openstack_prep.resources.lists.neutron_records import GroupRecord, RuleRecord

if TYPE_CHECKING:
    from openstack_prep.cloud.service import Service

RECORD = re.compile(r"openstack-prep:(.+)~rules~([0-9a-z.-]+)")
LENGTH = 13
"""Characters of an id in a record; no two rules of a group share them by chance."""
LONGEST = 255
"""Most characters of a tag (Neutron 29.0.0, extensions/tagging.py, MAX_TAG_LEN)."""


def owners_of(group: GroupRecord, rule: RuleRecord) -> frozenset[str]:
    """Return the names of the specs that declare a rule; none for a rule that no spec has created.

    A rule whose description names another group is a copy, made with a copy of that group.
    """
    creator = OwnershipTag.spec_in(rule.description)
    if creator is None or OwnershipTag.name_in(rule.description) not in (None, group.name):
        return frozenset()
    return _recorded(group, rule) or frozenset({creator})


def left_records(group: GroupRecord, spec: str) -> frozenset[str]:
    """Return what a spec's records name although no such rule exists any more."""
    return _ids_of(group, spec) - {*map(_short, group.security_group_rules)}


def has_any_of(spec: str, group: GroupRecord) -> bool:
    """Whether a group has a rule of a spec, or a record that an interrupted run of it has left."""
    return any(spec in owners_of(group, rule) for rule in group.security_group_rules) or bool(left_records(group, spec))


def _recorded(group: GroupRecord, rule: RuleRecord) -> frozenset[str]:
    return frozenset(spec for _, spec, ids in _records(group) if _short(rule) in ids)


def _ids_of(group: GroupRecord, spec: str) -> frozenset[str]:
    return frozenset().union(*(ids for _, owner, ids in _records(group) if owner == spec))


def _records(group: GroupRecord) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Yield the tag, the name of the spec and the shortened ids of each record."""
    for found in filter(None, map(RECORD.fullmatch, group.tags)):
        yield found[0], unquote(found[1]), frozenset(found[2].split("."))


def _short(rule: RuleRecord) -> str:
    return rule.id[:LENGTH]


def _tags(spec: str, ids: Set[str]) -> Iterator[str]:
    """Yield the tags that record rules for a spec."""
    ordered, start = sorted(ids), f"{OwnershipTag(spec).tag}~rules~"
    size = max(1, (LONGEST - len(start) + 1) // (LENGTH + 1))
    for first in range(0, len(ordered), size):
        yield start + ".".join(ordered[first : first + size])


@dataclass(frozen=True, kw_only=True)
class SharedRules:
    """The rules of one security group, as one of the specs that declare them joins and leaves them.

    ``placing`` are the owner fields of a new rule's body.
    """

    network: Service
    spec: str
    group_id: str
    placing: Values

    def join(self, wanted: Collection[RuleRecord]) -> None:
        """Record this spec as an owner of rules that other specs have created.

        Raises CloudError (412) if one of them is deleted meanwhile: then the step is decided again.
        """
        group, ids = self._read(), {each.id for each in wanted}
        there = [
            security_group_rule for security_group_rule in group.security_group_rules if security_group_rule.id in ids
        ]
        unrecorded = [each for each in there if not _recorded(group, each)]
        written: set[str] = set()
        for creator in sorted({spec for each in unrecorded for spec in owners_of(group, each)} - {self.spec}):
            written |= self._record(creator, {_short(each) for each in unrecorded if creator in owners_of(group, each)})
        self._record(self.spec, {*map(_short, there)} - _ids_of(group, self.spec))
        now = self._read()
        if not ids <= {security_group_rule.id for security_group_rule in now.security_group_rules}:
            self._withdraw(now, written)
            what = f"GET network{self._path}: rules of other specs were deleted concurrently"
            raise CloudError(what, status=412, retryable=True)

    def leave(self, going: Iterable[RuleRecord]) -> None:
        """Delete the rules that only this spec still owns, and its records."""
        ids = {each.id for each in going}
        try:
            before = self._read()
            mine = [
                security_group_rule
                for security_group_rule in before.security_group_rules
                if security_group_rule.id in ids and self._owns(before, security_group_rule)
            ]
            last = [each for each in mine if owners_of(before, each) == {self.spec}]
            self._delete(last)
            self._forget(before, {*map(_short, mine)} | left_records(before, self.spec))
            if not mine:
                return
            now = self._read()
            # other owners have left at the same time, and kept the rule for this spec
            self._delete(
                security_group_rule
                for security_group_rule in now.security_group_rules
                if security_group_rule in mine and not _recorded(now, security_group_rule)
            )
            self._restore(now, last)
            self._forget(now, left_records(now, self.spec))
        except NotFound:  # the group itself is gone, and its rules and records with it
            return

    def _owns(self, group: GroupRecord, rule: RuleRecord) -> bool:
        return self.spec in owners_of(group, rule)

    def _restore(self, group: GroupRecord, deleted: Iterable[RuleRecord]) -> None:
        """Create rules again that another spec has joined between the reading of the group and the deletion."""
        records: dict[str, set[str]] = {}
        for each in deleted:
            owners = sorted(_recorded(group, each) - {self.spec})
            if owners:
                text = OwnershipTag.strip(each.description)
                made = self._create(each, OwnershipTag(owners[0]).describe(group.name, text))
                for spec in owners if len(owners) > 1 else ():
                    records.setdefault(spec, set()).add(_short(made))
        for spec, ids in sorted(records.items()):
            self._record(spec, ids)

    # --- requests -------------------------------------------------------------------------

    @property
    def _path(self) -> str:
        return f"/security-groups/{self.group_id}"

    def _read(self) -> GroupRecord:
        return GroupRecord.read(self.network.get(self._path)["security_group"])

    def _create(self, rule: RuleRecord, description: str) -> RuleRecord:
        """Create a rule once more, with another description; fields without a value may need an extension."""
        values = asdict(replace(rule, id="", normalized_cidr=None, description=description))
        body = {name: value for name, value in values.items() if value not in ("", None)}
        body |= {**self.placing, "security_group_id": self.group_id}
        answer = self.network.post("/security-group-rules", {"security_group_rule": body})
        return RuleRecord.read(answer["security_group_rule"])

    def _delete(self, rules: Iterable[RuleRecord]) -> None:
        for each in rules:
            self.network.delete(f"/security-group-rules/{each.id}")

    def _record(self, spec: str, ids: Set[str]) -> Set[str]:
        """Record rules for a spec; return the tags."""
        tags = frozenset(_tags(spec, ids))
        for tag in sorted(tags):
            self.network.put(f"{self._path}/tags/{quote(tag, safe='')}")
        return tags

    def _withdraw(self, group: GroupRecord, written: Set[str]) -> None:
        """Delete records for other specs of rules that are all gone: these specs may never run again."""
        present = {*map(_short, group.security_group_rules)}
        for tag, _, recorded in _records(group):
            if tag in written and recorded.isdisjoint(present):
                self.network.delete(f"{self._path}/tags/{quote(tag, safe='')}")

    def _forget(self, group: GroupRecord, ids: Set[str]) -> None:
        """Delete records of this spec; a tag that records other rules, too, is replaced by one of these first."""
        for tag, spec, recorded in _records(group):
            if spec == self.spec and recorded & ids:
                self._record(spec, recorded - ids)
                self.network.delete(f"{self._path}/tags/{quote(tag, safe='')}")
