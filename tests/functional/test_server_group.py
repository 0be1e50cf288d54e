"""Server groups on a real Nova."""

from __future__ import annotations

import pytest

from openstack_prep.base.errors import PlanRefused
from openstack_prep.resources.compute.server_group import ServerGroup
from tests.devcloud.faults import Fault
from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional.lab import Lab

MASTERS = ServerGroup(name="masters", policy="anti-affinity", max_server_per_host=2)
WORKERS = ServerGroup(name="workers", policy="soft-anti-affinity")


def names(lab: Lab) -> list[str]:
    groups = lab.admin.compute.server_groups(all_projects=True)
    return sorted(group.name for group in groups if group.project_id == lab.project_id)


def test_from_create_to_destroy(lab: Lab) -> None:
    lab.apply(MASTERS, WORKERS)
    assert names(lab) == ["masters", "workers"]
    assert lab.destroy(MASTERS, WORKERS) == {"server_group/masters", "server_group/workers"}
    assert names(lab) == []


def test_another_policy_needs_consent(lab: Lab) -> None:
    lab.apply(MASTERS)
    other = ServerGroup(name="masters", policy="affinity")
    with pytest.raises(PlanRefused, match="policy 'anti-affinity' -> 'affinity'"):
        lab.run(other)
    lab.run(other, allow_replace=True).raise_for_failures()
    assert not lab.plan(other)


def test_a_lost_answer_makes_no_second_one(lab: Lab, devcloud: Devcloud) -> None:
    with devcloud.faults(Fault("nova", method="POST", path_regex="os-server-groups$", drop_answer=True)):
        lab.apply(WORKERS)
    assert names(lab) == ["workers"]
