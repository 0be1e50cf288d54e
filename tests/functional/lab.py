"""A project of a test's own, with a user, to which the test adds what it is about."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from openstack.connection import Connection

from openstack_prep.base.secret import Secret
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.model import Key, Resource, Status
from openstack_prep.core.plan import Plan, Report
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.identity.role_assignment import RoleAssignment
from openstack_prep.resources.identity.user import User
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.subnet import Subnet
from openstack_prep.resources.orchestration.stack import Stack
from openstack_prep.spec import Spec
from openstack_prep.spec.python import spec_from
from openstack_prep.verbs import api
from tests.devcloud.pytest_devcloud import Devcloud

NODES = (Network(name="nodes"), Subnet(name="nodes", network="nodes", cidr="10.0.0.0/24"))
"""A network for the servers of a test."""


class Lab:
    """Applies resources within its project, as the administrator whose spec makes project and user."""

    def __init__(self, devcloud: Devcloud) -> None:
        self.devcloud = devcloud
        self.name = f"lab{secrets.token_hex(3)}"
        self.cloud = Cloud(devcloud.admin)
        self.project = Project(name=self.name)
        self.base = (
            self.project,
            User(name=self.name, password=Secret("of-the-lab")),
            RoleAssignment(role="member", user=self.name, project=self.name),
        )
        self.declared: dict[Key, Resource] = {each.key: each for each in self.base}

    @property
    def admin(self) -> Connection:
        return self.devcloud.admin

    @property
    def project_id(self) -> str:
        return str(self.admin.identity.find_project(self.name, ignore_missing=False).id)

    def as_user(self) -> Cloud:
        """The cloud as the project's user sees it."""
        user = {"username": self.name, "password": Secret("of-the-lab"), "user_domain": "Default"}
        return self.cloud.as_user(**user, project_id=self.project_id)  # type: ignore[arg-type]

    def spec(self, *more: Resource) -> Spec:
        spec = spec_from(Spec(self.name, (*self.base, *more)))
        self.declared |= {each.key: each for each in spec.resources}
        return spec

    def plan(self, *more: Resource) -> Plan:
        return api.plan(self.cloud, self.spec(*more))

    def run(self, *more: Resource, **options: Any) -> Report:
        return api.apply(self.cloud, self.spec(*more), **options)

    def apply(self, *more: Resource, **options: Any) -> dict[str, str]:
        """Apply, insist that it went well and that nothing is left to do, and return what was done."""
        report = self.run(*more, **options)
        report.raise_for_failures()
        left = self.plan(*more)
        assert not left, str(left)
        return {str(result.step.key): result.step.action.value for result in report.changed}

    def failure(self, *more: Resource) -> str:
        """Apply, insist that one step failed, and return why."""
        report = self.run(*more)
        (result,) = [each for each in report.results if each.status is Status.FAILED]
        return str(result.error)

    def destroy(self, *only: Resource) -> set[str]:
        """Take back what a test declared, or only some of it; return what went."""
        spec = self.spec(*only) if only else Spec(self.name, tuple(self.declared.values()))
        if only:  # the base is read: it has the home project, which the ownership tags name
            spec = replace(spec, only=frozenset(each.key for each in spec.resources[len(self.base) :]))
        report = api.destroy(self.cloud, spec)
        report.raise_for_failures()
        if not only:
            self.declared = {each.key: each for each in self.base}
        return {str(result.step.key) for result in report.changed}

    def clear(self) -> None:
        """Take back what was declared beside the project and its user."""
        base = {each.key: each for each in self.base}
        added = tuple(each for key, each in self.declared.items() if key not in base)
        if added:
            api.destroy(self.cloud, Spec(self.name, added)).raise_for_failures()
        self.declared = base

    def destroy_stacks(self, *only: Stack, allow_loss: Collection[str] = ()) -> set[str]:
        """Take back all stacks, or only some of them, as the project's own user, whom other tests need still."""
        stacks = only or tuple(each for each in self.declared.values() if isinstance(each, Stack))
        wanted = Spec(self.name, tuple(replace(each, project=None) for each in stacks))
        report = api.destroy(self.as_user(), wanted, allow_loss=allow_loss)
        report.raise_for_failures()
        for each in stacks:
            self.declared.pop(each.key, None)
        return {str(result.step.key) for result in report.changed}
