"""What exposures add to a spec for their names in Designate, and what is wrong with such names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.base.errors import SpecError
from openstack_prep.cloud.no_cloud import NoCloud
from openstack_prep.exposures.exposed_cluster import ExposedCluster
from openstack_prep.exposures.requirements import ExposedRecordset
from openstack_prep.resources.dns.recordset import Recordset
from openstack_prep.resources.identity.project import Project
from openstack_prep.spec.completion import derive
from openstack_prep.spec.resolution import refuse_mistakes
from openstack_prep.spec.spec import Spec, load_spec
from openstack_prep.verbs import exclusion, scan

POOL = {"name": "lb", "subnet": "nodes", "addresses": ["10.1.0.200-10.1.0.203"]}
SIX = {"name": "six", "subnet": "nodes", "addresses": ["2001:db8::10-2001:db8::1f"]}
DESIGNATE = {"zones": ["example.com", "apps.example.com"], "ttl": 60}


def exposure(name: str, **more: Any) -> dict[str, Any]:
    given = {"cluster": "one", "how": "metallb", "target": {"service": "a/b"}, "ports": [{"port": 443}], "pool": "lb"}
    return {"name": name} | given | more


def loaded(tmp_path: Path, *exposures: dict[str, Any], designate: Any = DESIGNATE, **sections: Any) -> Spec:
    cluster = {"name": "one", "directory": "one", "names": {"designate": designate}}
    spec = {"name": "s", "address_pools": [POOL, SIX], "exposures": [*exposures], "exposed_clusters": [cluster]}
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(spec | sections))
    return load_spec(tmp_path / "s.yaml")


def recordsets(spec: Spec) -> dict[str, Recordset]:
    return {each.key.name: each for each in spec.resources if isinstance(each, Recordset)}


def test_the_project_of_the_zones_is_not_the_home_project(tmp_path: Path) -> None:
    """Specs of other people, perhaps of the same name, have recordsets there as well."""
    infra = DESIGNATE | {"project": "infra"}
    alone = loaded(tmp_path, exposure("a", names=["a.example.com"]), designate=infra)
    assert scan.homes_of(alone.resources) == (None,)
    assert scan.projects_of(alone.resources) == (None, Project(name="infra"))
    assert exclusion._home(alone.resources) == (None, False)


def test_each_name_gets_a_recordset(tmp_path: Path) -> None:
    floating = [{"name": "web", "external_network": "external"}]
    spec = loaded(
        tmp_path,
        exposure("given", address="10.1.0.200", names=["given.example.com", "two.example.com"]),
        exposure("chosen", names=["chosen.example.com", "*.apps.example.com"]),
        exposure("outside", how="floating-ip", pool=None, floating_ip="web", names=["web.example.com"]),
        exposure("six", pool="six", names=["six.example.com"]),
        floating_ips=floating,
    )
    found = recordsets(spec)
    assert found.keys() == {
        "given.example.com/A",
        "two.example.com/A",
        "six.example.com/AAAA",
        "chosen.example.com/A",
        "*.apps.example.com/A",
        "web.example.com/A",
    }
    given, chosen = found["two.example.com/A"], found["chosen.example.com/A"]
    assert isinstance(chosen, ExposedRecordset)
    assert (given.records, given.zone, given.ttl) == (("10.1.0.200",), "example.com", 60)
    assert (chosen.records, chosen.exposures) == ((), ("chosen",))
    assert found["*.apps.example.com/A"].zone == "apps.example.com"
    assert found["web.example.com/A"].floating_ips == ("web",)
    assert all(spec.places[each.key].rpartition(":")[0].endswith("s.yaml") for each in found.values())
    assert derive(spec.resources, {}) == list(spec.resources)
    refuse_mistakes(spec)


def test_one_name_of_both_ip_versions_has_two_recordsets(tmp_path: Path) -> None:
    six = exposure("six", names=["a.example.com"], pool=None, address="2001:db8::1")
    spec = loaded(tmp_path, exposure("chosen", names=["a.example.com"]), six)
    assert recordsets(spec).keys() == {"a.example.com/A", "a.example.com/AAAA"}
    refuse_mistakes(spec)


def test_the_chosen_address_is_named_until_it_is_known(tmp_path: Path) -> None:
    from openstack_prep.core.model import Context

    spec = loaded(tmp_path, exposure("chosen", names=["a.example.com"]))
    (recordset,) = recordsets(spec).values()
    (resolved,) = recordset.resolve(Context(resources=spec.resources, cloud=NoCloud.as_cloud()))
    assert resolved.desired()["records"] == {"address of exposure/chosen"}
    assert [each.name for each in resolved.follows()] == ["chosen"]
    assert resolved.key == recordset.key


def test_what_the_spec_declares_is_not_added(tmp_path: Path) -> None:
    own = {"name": "a.example.com", "zone": "example.com", "type": "A", "records": ["192.0.2.1"]}
    (found,) = recordsets(loaded(tmp_path, exposure("a", names=["a.example.com"]), recordsets=[own])).values()
    assert found.records == ("192.0.2.1",)


def test_zones_of_another_project(tmp_path: Path) -> None:
    spec = loaded(tmp_path, exposure("a", names=["a.example.com"]), designate=DESIGNATE | {"project": "infra"})
    assert [each.project for each in recordsets(spec).values()] == ["infra"]


def test_without_designate_there_are_none(tmp_path: Path) -> None:
    assert not recordsets(loaded(tmp_path, exposure("a", names=["a.example.com"]), designate=None))


@pytest.mark.parametrize(
    "wrong",
    [
        exposure("a", names=["a.example.org"]),
        exposure("a", names=["a.example.com"], how="node-port", pool=None, ports=[{"port": 443, "node_port": 30443}]),
        exposure("a", names=["a.example.com"], pool="mixed"),
    ],
)
def test_names_without_a_recordset(wrong: dict[str, Any], tmp_path: Path) -> None:
    mixed = POOL | {"name": "mixed", "addresses": ["10.1.0.210", "2001:db8::20"]}
    spec = loaded(tmp_path, wrong, address_pools=[POOL, mixed])
    with pytest.raises(SpecError) as caught:
        refuse_mistakes(spec)
    (mistake,) = [each for each in caught.value.mistakes if "names[0]" in each.what]
    assert mistake.keys[0].kind == ExposedCluster.kind
