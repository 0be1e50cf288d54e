from __future__ import annotations

import pytest

from openstack_prep.base.diagnostic import Diagnostic
from openstack_prep.kubernetes.cluster.rke_cluster import RkeCluster
from openstack_prep.kubernetes.mesh.from_spec import DeclaredProject, fixed_by_spec
from openstack_prep.resources.addresses.address_pairs import AddressPairs
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.lists.neutron_records import GroupRecord, PortRecord
from openstack_prep.resources.network.security_group import SecurityGroupRules
from openstack_prep.resources.network.security_group_rule import SecurityGroupRule
from tests.unit.kubernetes.mesh.cloud import MINE, group, port, subnet

DECLARED = DeclaredProject(
    RkeCluster(name="one", stack="one", directory="one"),
    [
        AddressPool(name="pool", subnet="one", addresses=("10.1.0.208/29",)),
        AddressPairs(name="one", stack="one", pools=("pool",), addresses=("10.1.0.5",)),
        AddressPairs(name="two", stack="two", addresses=("10.1.0.6",)),
        SecurityGroupRules(
            name="one",
            rules=(
                SecurityGroupRule(protocol="tcp", ports="4240", remote_group="self"),
                SecurityGroupRule(protocol="tcp", ports="4240", remote_group="not-seen"),
            ),
        ),
    ],
)


def test_pairs_of_the_stack_are_added() -> None:
    (found,) = DECLARED.ports([PortRecord.read(port("a", subnet("one", "10.1.0.0/24"), "10.1.0.9"))])
    assert sorted(pair.ip_address for pair in found.allowed_address_pairs) == ["10.1.0.208/29", "10.1.0.5"]


def test_rules_are_added_to_the_groups_of_the_project() -> None:
    far = group("far") | {"name": "one", "project_id": "another"}
    groups = {"one": GroupRecord.read(group("one")), "far": GroupRecord.read(far)}
    found = DECLARED.groups(groups, MINE)
    before = groups["one"].security_group_rules
    (added,) = [rule for rule in found["one"].security_group_rules if rule not in before]
    assert (added.port_range_min, added.remote_group_id) == (4240, "one")
    assert found["far"] == groups["far"]


@pytest.mark.parametrize(("own", "verb"), [(True, "address-pairs sync"), (False, "apply")])
def test_what_is_left_keeps_its_command(own: bool, verb: str) -> None:
    """`address-pairs sync` refuses an administrator, whose connection is in another project."""
    rule, pair, part, route = (
        Diagnostic(code=code, where="one", what="x", why="w", fix="openstack x")
        for code in ("security-group.blocks", "pairs.missing", "pairs.partial", "route.missing")
    )
    assert [each.fix for each in fixed_by_spec([rule, pair, part, route], [route], "'a b.yaml'", own=own)] == [
        "openstack-prep apply 'a b.yaml'",
        f"openstack-prep {verb} 'a b.yaml'",
        f"openstack-prep {verb} 'a b.yaml'",
        "openstack x",
    ]
