"""A cluster of rke2-cluster.yaml whose servers are replaced, one after the other, by updates of its stack."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from openstack_prep.resources.orchestration.stack import Stack
from tests.functional.lab import Lab
from tests.functional.rke2_cluster import KEY, Cluster


@pytest.fixture(scope="module")
def cluster(project: Lab, images: tuple[str, str]) -> Rolled:
    """Three servers that are ready; each test leaves them so, with what it has changed."""
    made = Rolled(project, images)
    with made.applied(made.stack()):
        made.until(lambda: len(made.active()) == 3)
        for each in made.active().values():
            made.signal(each)
    return made


class Rolled(Cluster):
    """A cluster that remembers its parameters from test to test, and how many servers were away at once."""

    def __init__(self, lab: Lab, images: tuple[str, str]) -> None:
        super().__init__(lab, images[0])
        self.images = images
        self.given: dict[str, Any] = {}
        self.away = 0
        """How many servers were not in service at once, at most, since the last ``stack``."""

    @property
    def other_image(self) -> str:
        """The image that the servers do not have."""
        return self.images[self.given["server_image"] == self.images[0]]

    def stack(self, **parameters: Any) -> Stack:  # type: ignore[override]
        """Return the cluster as it shall be from now on."""
        self.given |= parameters
        self.away, self.report = 0, None
        made = super().stack(**self.given)
        self.given = dict(made.parameters or {})
        return made

    def active(self) -> dict[str, Any]:
        found = super().active()
        self.away = max(self.away, 3 - len(found))
        return found

    def flavors(self) -> dict[str, str]:
        return {number: each.flavor.name for number, each in sorted(self.active().items())}

    def actions(self, server: str) -> list[str]:
        """Return what Nova has done to a server."""
        listed = self.lab.admin.compute.get(f"/servers/{server}/os-instance-actions").json()["instanceActions"]
        return [each["action"] for each in listed]

    def roll(self, before: dict[str, str], numbers: str = "210") -> None:
        """Signal for each server as soon as it has been replaced, in this order."""
        for number in numbers:
            self.until(partial(self.is_replaced, number, before))
            assert self.ids().items() >= {each: before[each] for each in "012" if each < number}.items()
            self.signal(self.active()[number])

    def spec(self, stack: Stack) -> dict[str, Any]:
        """Return the lab's spec as a file has it, with this stack."""
        name = self.lab.name
        return {
            "name": name,
            "project": {"name": name},
            "users": [{"name": name, "password": {"env": "PREP_PASSWORD"}}],
            "role_assignments": [{"user": name, "role": "member"}],
            "networks": [{"name": "nodes"}],
            "subnets": [{"name": "nodes", "network": "nodes", "cidr": "10.0.0.0/24"}],
            "keypairs": [{"name": "key", "public_key": KEY}],
            "stacks": [
                {"name": stack.name, "template": stack.template, "parameters": self.given, "timeout": stack.timeout}
            ],
        }
