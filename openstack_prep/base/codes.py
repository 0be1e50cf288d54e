"""Codes of mistakes that every part of the package reports; codes.yaml explains each of them."""

from __future__ import annotations

from enum import StrEnum


class Code(StrEnum):
    """What is wrong, by a name that does not change, for ``openstack-prep explain``."""

    ADDRESS_IN_USE = "address.in-use"
    ADDRESS_MULTICAST = "address.multicast"
    CAPACITY_SHORT = "capacity.short"
    ENTRY_LOGIN = "clouds-yaml.login"
    ENTRY_OVERRIDDEN = "clouds-yaml.overridden"
    LEASE_HELD = "lease.held"
    MISSING_LOGIN = "access.missing-login"
    MISSING_RIGHT = "access.missing-right"
    OWN_CONNECTION = "plan.own-connection"
    PAIRS_MISSING = "pairs.missing"
    PLAN_ADOPTS = "plan.adopts"
    PLAN_CHANGED = "plan.changed"
    PLAN_FOREIGN = "plan.foreign"
    PLAN_LOSES = "plan.loses"
    PLAN_OTHER_SPEC = "plan.other-spec"
    PLAN_REPLACES = "plan.replaces"
    PLAN_UNAPPROVED = "plan.unapproved"
    QUOTA_SHORT = "quota.short"
    SECRET_MISSING = "secret.missing"
    SECRET_READABLE = "secret.readable"
    SPEC_CONTRADICTION = "spec.contradiction"
    SPEC_CYCLE = "spec.cycle"
    SPEC_DUPLICATE_KEY = "spec.duplicate-key"
    SPEC_DUPLICATE_NAME = "spec.duplicate-name"
    SPEC_INVALID_VALUE = "spec.invalid-value"
    SPEC_MISSING_KEY = "spec.missing-key"
    SPEC_UNKNOWN_KEY = "spec.unknown-key"
    SPEC_UNREADABLE = "spec.unreadable"
    SPEC_UNRESOLVED = "spec.unresolved-reference"
    SPEC_VARIABLE = "spec.variable"
    STACK_PARAMETER = "stack.invalid-parameter"
    STACK_REFUSED = "stack.refused"
    STILL_USED = "plan.still-used"
