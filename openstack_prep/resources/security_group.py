"""Security groups and their rules.

Source: Networking API v2.0, "Security groups", "Security group rules" (bulk creation).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from openstack_prep.fields import Name
from openstack_prep.model import Change, Observed, Resource
from openstack_prep.resources.neutron import NetworkResource
from openstack_prep.resources.security_group_rule import SELF, SecurityGroupRule, in_words
from openstack_prep.site import Site

Raw = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class SecurityGroup(NetworkResource):
    """A security group of the project, which may be its "default", and rules to have in it.

    Rules of ours that are no longer declared are removed; those of others, and the egress rules
    that Neutron makes, stay.  Two groups whose rules name each other cannot both be declared.
    """

    kind: ClassVar[str] = "security_group"
    collection: ClassVar[str] = "security-groups"
    member: ClassVar[str] = "security_group"

    name: Name
    """Name of the group, unique in its project."""
    stateful: bool | None = None
    """Whether answers pass without a rule of their own; made so by default."""
    rules: tuple[SecurityGroupRule, ...] | None = None
    """Rules to have."""

    def references(self) -> Iterable[Resource]:
        yield from super().references()
        yield from self._remote_groups().values()

    def _remote_groups(self) -> dict[str, SecurityGroup]:
        names = {rule.remote_group for rule in self.rules or () if rule.remote_group} - {SELF, self.name}
        return {name: self.sibling(SecurityGroup, name) for name in sorted(names)}

    # --- rules in words ---------------------------------------------------------------------

    def _declared(self) -> dict[str, SecurityGroupRule]:
        return {in_words(rule.body(), self._remote(rule)): rule for rule in self.rules or ()}

    def _remote(self, rule: SecurityGroupRule) -> str | None:
        return SELF if rule.remote_group == self.name else rule.remote_group

    def _present(self, site: Site, raw: Raw) -> dict[str, Raw]:
        """Return the rules that a group has, by what they say in our words."""
        names = {found.id: name for name, group in self._remote_groups().items() if (found := site.look(group))}
        names[raw["id"]] = SELF

        def remote(rule: Raw) -> str | None:
            group_id = rule["remote_group_id"]
            return names.get(group_id, group_id)

        return {in_words(rule, remote(rule)): rule for rule in raw["security_group_rules"]}

    def desired(self) -> dict[str, Any]:
        values = super().desired()
        if self.rules is not None:
            values["rules"] = frozenset(self._declared())
        return values

    def values(self, site: Site, raw: Raw) -> dict[str, Any]:
        declared = self._declared()
        present = self._present(site, raw) if self.rules is not None else {}
        concerns = (words for words, rule in present.items() if words in declared or self._is_ours(site, rule))
        return super().values(site, raw) | {"rules": frozenset(concerns)}

    def _is_ours(self, site: Site, rule: Raw) -> bool:
        return site.mark.owns(rule["description"])

    # --- the verbs --------------------------------------------------------------------------

    def observe(self, site: Site, raw: Raw) -> Observed:
        observed = super().observe(site, raw)
        ours = observed.ours or any(self._is_ours(site, rule) for rule in raw["security_group_rules"])
        return replace(observed, ours=ours)

    def body(self, site: Site, values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in values.items() if name != "rules"}

    def create(self, site: Site) -> Observed:
        return self._ensure_rules(site, super().create(site))

    def update(self, site: Site, observed: Observed, changes: Sequence[Change]) -> Observed:
        own = [change for change in changes if change.field != "rules"]
        if own:
            observed = super().update(site, observed, own)
        return self._ensure_rules(site, observed)

    def _ensure_rules(self, site: Site, observed: Observed) -> Observed:
        """Add the missing rules by one request, then take ours back that are no longer declared."""
        if self.rules is None:
            return observed
        declared, present = self._declared(), self._present(site, observed.handle)
        missing = [rule for words, rule in declared.items() if words not in present]
        cloud, owner = site.worker(self.owner)
        if missing:
            bodies = [self._rule_body(site, observed.id, rule) | owner for rule in missing]
            cloud.network.post("/security-group-rules", {"security_group_rules": bodies})
        for words, rule in present.items():
            if words not in declared and self._is_ours(site, rule):
                cloud.network.delete(f"/security-group-rules/{rule['id']}")
        return replace(observed, values={**observed.values, "rules": frozenset(declared)})

    def _rule_body(self, site: Site, group_id: str, rule: SecurityGroupRule) -> dict[str, Any]:
        remote = self._remote(rule)
        remote_id = group_id if remote == SELF else remote and site.id(self.sibling(SecurityGroup, remote))
        return rule.body() | {
            "security_group_id": group_id,
            "remote_group_id": remote_id,
            "description": site.mark.describe(self.name, rule.description),
        }

    def delete(self, site: Site, observed: Observed) -> None:
        """Delete it, or, when others made it, the rules of ours in it."""
        if site.mark.owns(observed.handle["description"]):
            super().delete(site, observed)
            return
        cloud, _ = site.worker(self.owner)
        for rule in observed.handle["security_group_rules"]:
            if self._is_ours(site, rule):
                cloud.network.delete(f"/security-group-rules/{rule['id']}")
