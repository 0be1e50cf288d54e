"""Exposures claim addresses: on the ports of an address pool in a real Neutron, and in pool files."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import PlanRefused, SpecError
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import OwnershipTag
from openstack_prep.exposures.endpoint import ExposedPort, ExposureTarget
from openstack_prep.exposures.exposure import Exposure
from openstack_prep.exposures.pool_file import PoolFile
from openstack_prep.exposures.register.neutron import NeutronRegister
from openstack_prep.exposures.register.pool import ClaimRefused, ClaimRequest
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.subnet import Subnet
from openstack_prep.spec import Spec
from openstack_prep.verbs import api
from tests.functional.conftest import Prep
from tests.functional.lab import Lab
from tests.unit.exposures.register.claiming import claim_one

SUBNET = (
    Network(name="nodes"),
    Subnet(name="nodes", network="nodes", cidr="10.1.0.0/24", allocation_pools=("10.1.0.10-10.1.0.199",)),
)
POOL = AddressPool(name="lb", subnet="nodes", addresses=("10.1.0.100-10.1.0.103",))
SPEC: dict[str, Any] = {
    "project": {"name": ""},
    "users": [{"name": "", "password": {"env": "PREP_PASSWORD"}}],
    "role_assignments": [{"role": "member", "user": ""}],
    "networks": [{"name": "nodes"}],
    "subnets": [{"name": "nodes", "network": "nodes", "cidr": "10.1.0.0/24"}],
    "address_pools": [{"name": "lb", "subnet": "nodes", "addresses": ["10.1.0.100-10.1.0.109"]}],
    "pool_files": [
        {
            "name": "libvirt",
            "path": "pools/libvirt.yaml",
            "cidr": "192.168.122.0/24",
            "gateway": "192.168.122.1",
            "addresses": ["192.168.122.100-192.168.122.149"],
        }
    ],
    "exposures": [
        {
            "name": "shop",
            "cluster": "a",
            "target": {"service": "shop/frontend"},
            "ports": [{"port": 443}],
            "how": "metallb",
            "pool": "lb",
        },
        {
            "name": "vm",
            "cluster": "a",
            "target": {"virtual_machine": "shop/db"},
            "ports": [{"port": 5432}],
            "how": "bridge",
            "pool": "lb",
            "address": "10.1.0.105",
        },
        {
            "name": "okd",
            "cluster": "b",
            "target": {"host": "services"},
            "ports": [{"port": 6443}],
            "how": "service-host",
            "pool": "libvirt",
        },
    ],
}


def spec(name: str, **changed: Any) -> dict[str, Any]:
    """Return the spec with a project and a user of its own."""
    named = {
        "name": name,
        "project": {"name": name},
        "users": [SPEC["users"][0] | {"name": name}],
        "role_assignments": [{"role": "member", "user": name}],
    }
    return SPEC | named | changed


def exposure(name: str = "web", **fields: Any) -> Exposure:
    given: dict[str, Any] = {
        "cluster": "a",
        "target": ExposureTarget(service="shop/web"),
        "ports": (ExposedPort(port=443),),
        "how": "metallb",
        "pool": "lb",
    }
    return Exposure(name=name, **given | fields)


def claims(lab: Lab) -> dict[str, str]:
    """Return what the descriptions of reserving ports record, by address."""
    found = lab.admin.network.ports(project_id=lab.project_id, device_owner="openstack-prep:reserved")
    return {each.fixed_ips[0]["ip_address"]: OwnershipTag.strip(each.description) for each in found}


def refusal(lab: Lab, *wanted: Any) -> str:
    with pytest.raises((SpecError, PlanRefused)) as caught:
        lab.run(*wanted)
    return str(caught.value)


def test_a_spec_from_plan_to_destroy(prep: Prep) -> None:
    """By the command: addresses on ports and in a file; the second apply is empty; destroy releases everything."""
    prep.write(spec("exposing"))
    assert {key: step for key, step in prep.plan().items() if "exposure" in key or "pool" in key} == {
        "address_pool/lb": "create",
        "pool_file/libvirt": "create",
        "exposure/shop": "create",
        "exposure/vm": "create",
        "exposure/okd": "create",
    }
    done = prep.apply()
    outputs = {name: done[f"exposure/{name}"]["outputs"] for name in ("shop", "vm", "okd")}
    assert outputs["shop"] == {"address": "10.1.0.100"}
    assert outputs["vm"]["address"] == "10.1.0.105"
    assert outputs["vm"]["mac"].startswith("d2:")
    assert outputs["okd"] == {"address": "192.168.122.100"}
    file = prep.folder / "pools" / "libvirt.yaml"
    assert "  exposing/okd: {address: 192.168.122.100}\n" in file.read_text()
    assert prep.changes() == set()

    fewer = [each for each in SPEC["exposures"] if each["name"] == "vm"]
    prep.write(spec("exposing", exposures=fewer))
    assert prep.changes() == set()  # without --prune they are only named
    assert {key for key in prep.apply("--prune") if key.startswith(("exposure/shop", "exposure/okd"))} == {
        "exposure/shop (lb)",
        "exposure/okd (libvirt)",
    }
    assert "claims: {}" in file.read_text()
    prep.destroy()
    assert not file.exists()


def test_two_specs_share_a_pool_file_at_once(prep: Prep, tmp_path: Path) -> None:
    """Both are applied at the same time; neither loses a claim, and the file goes with the last one."""
    many = [SPEC["exposures"][2] | {"name": f"e{each}"} for each in range(6)]
    paths = []
    for name in ("first", "second"):
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump({"exposures": many} | spec(name, address_pools=[], exposures=many)))
        paths.append(path)
    runs = [prep.start("apply", "--yes", path.name) for path in paths]
    ended = [(*run.communicate(timeout=300), run.returncode) for run in runs]
    assert [code for _, _, code in ended] == [0, 0], ended
    file = yaml.safe_load((tmp_path / "pools" / "libvirt.yaml").read_text())
    assert sorted(file["users"]) == ["first", "second"]
    assert sorted(file["claims"]) == [f"{name}/e{each}" for name in ("first", "second") for each in range(6)]
    assert len({each["address"] for each in file["claims"].values()}) == 12
    for path in paths:
        assert prep.run("plan", "--detailed-exitcode", path.name).returncode == 0
        prep.run("destroy", "--yes", path.name)
        assert (tmp_path / "pools" / "libvirt.yaml").exists() == (path == paths[0])


def test_a_claim_is_written_on_the_port_and_moves_with_its_exposure(lab: Lab, tmp_path: Path) -> None:
    lab.apply(*SUBNET, POOL, exposure())
    assert claims(lab)["10.1.0.100"] == "exposure web"
    assert lab.apply(*SUBNET, POOL, exposure(address="10.1.0.102")) == {"exposure/web": "update"}
    assert [each for each in claims(lab).items() if each[1]] == [("10.1.0.102", "exposure web")]
    assert lab.apply(*SUBNET, POOL, exposure()) == {}
    assert lab.apply(*SUBNET, POOL, exposure(how="bridge")) == {"exposure/web": "update"}
    assert claims(lab)["10.1.0.102"].startswith("exposure web d2:")

    file = PoolFile(name="ext", path=str(tmp_path / "ext.yaml"), cidr="192.0.2.0/24", addresses=("192.0.2.9",))
    moved = exposure(pool="ext", how="bridge")
    assert lab.apply(*SUBNET, POOL, file, moved) == {"pool_file/ext": "create", "exposure/web": "update"}
    assert set(claims(lab).values()) == {""}
    text = Path(file.path).read_text()
    assert f"  {lab.name}/web: {{address: 192.0.2.9, mac: 'd2:" in text
    assert lab.project_id in text
    assert lab.destroy(POOL, file, moved) == {"address_pool/lb", "pool_file/ext", "exposure/web"}
    assert not Path(file.path).exists()


def test_a_pool_is_not_taken_from_its_exposures(lab: Lab) -> None:
    lab.apply(*SUBNET, POOL, exposure(address="10.1.0.103"))
    smaller = replace(POOL, addresses=("10.1.0.100-10.1.0.102",))
    assert "would be removed from the pool, but is claimed by exposure web" in refusal(lab, *SUBNET, smaller)
    lab.declared.pop(next(key for key in lab.declared if key.kind == "exposure"))
    with pytest.raises(PlanRefused, match="is claimed by exposure web; delete that exposure first"):
        lab.destroy(POOL)
    assert lab.destroy(POOL, exposure(address="10.1.0.103")) == {"address_pool/lb", "exposure/web"}


def test_what_cannot_be_claimed_is_refused_by_the_plan(lab: Lab) -> None:
    lab.apply(*SUBNET, POOL, exposure("a", address="10.1.0.100"))
    neutron = lab.as_user().connection.network
    subnet = neutron.find_subnet("nodes", ignore_missing=False)
    fixed = {"subnet_id": subnet.id, "ip_address": "10.1.0.230"}
    port = neutron.create_port(name="x", network_id=subnet.network_id, fixed_ips=[fixed], device_owner="someone:else")
    found = refusal(
        lab,
        *SUBNET,
        POOL,
        exposure("g", pool=None, address="10.1.0.255"),
        exposure("j", pool=None, address="198.51.100.1"),
        exposure("l", pool=None, address="198.51.100.1", ports=(ExposedPort(port=80),)),
        exposure("o"),
        exposure("p"),
        exposure("q"),
        exposure("r"),
        exposure("s"),
    )
    for line in (  # what needs no cloud comes first
        "exposure/g: 10.1.0.255 is the broadcast address",
        "address_pool/lb has 4 free addresses, but 5 exposures need one",
    ):
        assert line in found, f"{line}\n{found}"
    assert "exposure/l" not in found
    found = refusal(
        lab,
        *SUBNET,
        POOL,
        exposure("b", address="10.1.0.100"),
        exposure("e", pool=None, address="10.1.0.150"),
        exposure("f", pool=None, address="10.1.0.1"),
        exposure("h", pool=None, address="10.1.0.230"),
    )
    for line in (
        "exposure/f: 10.1.0.1 is the gateway",
        "exposure/b: 10.1.0.100 of address_pool/lb is claimed by exposure/a",
        "exposure/e: 10.1.0.150 is in the allocation pool 10.1.0.10-10.1.0.199",
        f"exposure/h: 10.1.0.230 is used by port x {port.id} (someone:else)",
    ):
        assert line in found, f"{line}\n{found}"
    neutron.delete_port(port)


def test_what_needs_no_cloud_is_refused_before_anything_is_read(lab: Lab) -> None:
    with pytest.raises(SpecError) as caught:
        lab.run(*SUBNET, POOL, exposure("c", address="10.1.0.99"), exposure("d", pool="none"))
    assert [(each.where, each.code) for each in caught.value.mistakes] == [
        ("exposure/c", Code.SPEC_CONTRADICTION),
        ("exposure/d", Code.SPEC_UNRESOLVED),
    ]


def registers(lab: Lab, count: int) -> list[NeutronRegister]:
    """Return registers of runs of their own, as in processes of their own."""
    found = []
    for _ in range(count):
        run = CloudRun(lab.cloud, OwnershipTag(lab.name), tenant=lab.as_user())
        found.append(NeutronRegister(run=run, project=lab.project, pool="lb"))
    return found


def test_writers_that_race_for_ports_never_share_an_address(lab: Lab) -> None:
    """Names of their own, and one name that all of them claim."""
    lab.apply(*SUBNET, replace(POOL, addresses=("10.1.0.100-10.1.0.109",)))
    outcomes: dict[int, list[Any]] = {}

    def claim(number: int, register: NeutronRegister) -> None:
        own = [ClaimRequest(name=f"e{number}-{each}", mac=True) for each in range(2)]
        outcomes[number] = [*register.claim(own).items(), ("all", claim_one(register, "all"))]

    racers = registers(lab, 4)
    threads = [threading.Thread(target=claim, args=each) for each in enumerate(racers)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(outcomes) == 4
    found = {name: one for each in outcomes.values() for name, one in each}
    (register,) = registers(lab, 1)
    assert register.held() == found
    assert len(found) == 9
    assert len({one.address for one in found.values()}) == 9
    assert len({one.mac for one in found.values() if one.mac}) == 8
    with pytest.raises(ClaimRefused, match="no free address"):
        registers(lab, 1)[0].claim([ClaimRequest(name="x"), ClaimRequest(name="y")])
    assert registers(lab, 1)[0].held() == found  # all or none
    register.release(["all", "unknown"])
    assert sum(not claimed for claimed in claims(lab).values()) == 2
    register.release(list(found))
    assert set(claims(lab).values()) == {""}


def test_a_claimed_port_is_not_deleted_by_a_run_that_read_it_before(lab: Lab) -> None:
    """Judged at the moment of writing: the plan to destroy was made before the claim."""
    lab.apply(*SUBNET, POOL)
    pool = lab.spec(POOL).resources[len(lab.base) :]
    made = api.plan_destroy(lab.cloud, Spec(lab.name, pool))
    claim_one(registers(lab, 1)[0], "web")
    (result,) = api.destroy(lab.cloud, made).failed
    assert "is claimed by exposure web" in str(result.error)
    assert sorted(claims(lab).values()) == ["", "", "", "exposure web"]  # no port of the pool is deleted
    registers(lab, 1)[0].release(["web"])
