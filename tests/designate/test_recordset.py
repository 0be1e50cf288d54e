"""Recordsets on a real Designate, which answers the questions of its name server."""

from __future__ import annotations

import secrets
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from openstack_prep.base.errors import PlanRefused
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.model import OwnershipTag
from openstack_prep.core.plan import Plan, Report
from openstack_prep.resources.addresses.floating_ip import FloatingIP
from openstack_prep.resources.dns.recordset import Recordset
from openstack_prep.verbs import api
from tests.designate.conftest import Prep, Zone, Zones
from tests.devcloud.faults import Fault
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.tenant import Tenant
from tests.functional.lab import Lab


@pytest.fixture
def zone(lab: Lab, zones: Zones) -> Zone:
    """A zone of the lab's project."""
    lab.apply()
    return zones(lab.project_id)


def a(zone: Zone, name: str = "www", **more: Any) -> Recordset:
    given: dict[str, Any] = {"type": "A", "records": ("192.0.2.10",)} | more
    return Recordset(name=f"{name}.{zone.name}", zone=zone.name, **given)


def test_from_create_to_destroy(lab: Lab, zone: Zone) -> None:
    www = a(zone, ttl=300, description="the shop")
    assert lab.apply(www) == {str(www.key): "create"}
    (found,) = zone.recordsets().values()
    assert (found["status"], found["ttl"], found["project_id"]) == ("ACTIVE", 300, lab.project_id)
    assert OwnershipTag.strip(found["description"]) == "the shop"
    assert OwnershipTag(lab.name).owns(found["description"])
    assert OwnershipTag.home_in(found["description"]) == lab.project_id
    assert zone.answer(www.name) == {"192.0.2.10"}

    zone.request("PUT", f"/recordsets/{found['id']}", {"records": ["192.0.2.66"], "ttl": 30})
    assert lab.apply(www) == {str(www.key): "update"}
    assert zone.answer(www.name) == {"192.0.2.10"}
    more = replace(www, records=("192.0.2.10", "192.0.2.11"))
    assert lab.apply(more) == {str(www.key): "update"}
    assert zone.answer(www.name) == {"192.0.2.10", "192.0.2.11"}
    assert str(www.key) in lab.destroy(more)
    assert not zone.recordsets()


def test_records_of_others_in_one_that_is_no_longer_declared(lab: Lab, zone: Zone) -> None:
    """Pruned without a word are the records alone that a run has written; those of earlier versions are all named."""
    www = a(zone, ttl=300)
    lab.apply(www)
    lab.apply(replace(www, records=("192.0.2.10", "192.0.2.11"), ttl=60))
    (found,) = zone.recordsets().values()
    lab.declared.pop(next(key for key in lab.declared if key.kind == www.kind))

    def lost() -> set[str]:
        (step,) = (each for each in api.plan(lab.cloud, lab.spec(), prune=True) if each.key.kind == www.kind)
        return {loss.id.rpartition("/")[2] for loss in step.deletion_losses}

    assert lost() == set()
    zone.request("PUT", f"/recordsets/{found['id']}", {"records": ["192.0.2.10", "192.0.2.11", "192.0.2.66"]})
    assert lost() == {"192.0.2.10", "192.0.2.11", "192.0.2.66"}
    zone.request("PUT", f"/recordsets/{found['id']}", {"records": ["192.0.2.10", "192.0.2.11"]})
    assert lost() == set()
    former = OwnershipTag(lab.name, home=lab.project_id).describe("")
    zone.request("PUT", f"/recordsets/{found['id']}", {"description": former})
    assert lost() == {"192.0.2.10", "192.0.2.11"}


def test_records_in_the_zone_of_another_project_are_left_behind(
    lab: Lab, devcloud: Devcloud, zones: Zones, tenant: Tenant
) -> None:
    """Those of others in the spec's project, which nobody there can change once the project is gone."""
    lab.apply()
    zone = zones(tenant.project_id)
    zone.share(lab.project_id)
    theirs = zone.create(f"bob.{zone.name}", "A", "192.0.2.7", project_id=lab.project_id)
    plan = api.plan_destroy(lab.cloud, lab.spec())
    lost = [(loss.effect.value, loss.address) for step in plan for loss in step.deletion_losses]
    assert ("orphaned", f"recordset/{theirs['id']}") in lost
    zone.request("DELETE", f"/recordsets/{theirs['id']}", project_id=lab.project_id)


def test_every_type_is_applied_once(lab: Lab, zone: Zone) -> None:
    """The data that Designate stores equal those that are compared, in every form that a spec may have."""
    data = {
        "AAAA": ("2001:DB8:0::10",),
        "CAA": ("0 issue letsencrypt.org",),
        "CNAME": (f"WWW.{zone.name}",),
        "MX": ("10 mail.example.com", "0  ."),
        "NAPTR": ("0 0 S SIP+D2U !^.*$!sip:customer@example.com! _sip._udp.example.com.",),
        "NS": ("ns1.example.com",),
        "PTR": ("host.example.com.",),
        "SSHFP": ("2 1 123456789abcdef67890123456789abcdef67890",),
        "SRV": ("0 5 443 www.example.com",),
        "TLSA": (f"3 1 1 {'ab' * 32}",),
        "TXT": ("v=spf1 -all", 'a "quote" and a \\', "x" * 252 + '"', "x" * 600),
    }
    starts = {"SRV": "_https._tcp.srv", "TLSA": "_443._tcp.tlsa"}
    wanted = [a(zone, starts.get(kind, kind.lower()), type=kind, records=each) for kind, each in data.items()]
    wanted.append(a(zone, "*.apps"))
    assert len(lab.apply(*wanted)) == len(wanted)  # and nothing differs afterwards
    assert zone.answer(f"*.apps.{zone.name}") == {"192.0.2.10"}  # mdns knows no wildcards: name servers do
    assert zone.answer(f"txt.{zone.name}", "TXT") >= {
        '"a \\"quote\\" and a \\\\"',
        f'"{"x" * 253}" "{"x" * 253}" "{"x" * 94}"',
    }


def test_a_foreign_one_of_the_same_name(lab: Lab, zone: Zone) -> None:
    zone.create(f"www.{zone.name}", "A", "198.51.100.1", description="by hand")
    www = a(zone)
    with pytest.raises(PlanRefused, match="adopt"):
        lab.run(www)
    assert lab.apply(replace(www, adopt=True)) == {str(www.key): "adopt"}
    assert zone.answer(www.name) == {"192.0.2.10"}
    lab.destroy(replace(www, adopt=True))
    assert zone.recordsets()[www.name, "A"]["description"] == "by hand"  # it is kept
    assert lab.apply(replace(www, adopt="permanently")) == {str(www.key): "adopt"}
    lab.destroy(www)
    assert not zone.recordsets()


def test_the_address_of_a_floating_ip(lab: Lab, zone: Zone) -> None:
    web = FloatingIP(name="web", external_network="external")
    www = a(zone, records=(), floating_ips=("web",))
    assert lab.apply(web, www) == {str(web.key): "create", str(www.key): "create"}
    (address,) = lab.admin.network.ips(project_id=lab.project_id)
    assert zone.answer(www.name) == {address.floating_ip_address}
    lab.admin.network.delete_ip(address)
    assert lab.apply(web, www) == {str(web.key): "create", str(www.key): "update"}
    (address,) = lab.admin.network.ips(project_id=lab.project_id)
    assert zone.answer(www.name) == {address.floating_ip_address}


def test_a_lost_answer_and_what_a_killed_run_left(lab: Lab, devcloud: Devcloud, zone: Zone) -> None:
    www = a(zone)
    with devcloud.faults(Fault("designate", method="POST", path_regex="/recordsets$", drop_answer=True)):
        lab.apply(www)
    assert list(zone.recordsets()) == [(www.name, "A")]


def test_designate_refuses_after_the_plan(lab: Lab, zone: Zone) -> None:
    many = tuple(f"192.0.2.{number}" for number in range(21))
    assert "413" in lab.failure(a(zone, records=many))  # of 20, by the stock quota
    assert not zone.recordsets()


def test_a_cname_beside_others(lab: Lab, zone: Zone) -> None:
    zone.create(f"www.{zone.name}", "TXT", '"x"')
    with pytest.raises(PlanRefused, match="a CNAME is the only record of its name"):
        lab.run(a(zone, type="CNAME", records=("a.example.com",)))


def test_a_zone_that_is_being_deleted(lab: Lab, zone: Zone) -> None:
    """Designate refuses changes in it, and deletes what it holds: destroy need not."""
    www = a(zone)
    lab.apply(www)
    zone.request("DELETE", "")
    assert lab.destroy() >= {str(lab.project.key)}


def test_a_zone_below(lab: Lab, zone: Zone, zones: Zones) -> None:
    below = zones(lab.project_id, f"apps.{zone.name}")
    with pytest.raises(PlanRefused, match=f"belongs to the zone {below.name}"):
        lab.run(a(zone, "www.apps"))
    lab.apply(a(below))


def test_a_zone_of_another_project(lab: Lab, zones: Zones, tenant: Tenant) -> None:
    """Unknown until it is shared; then both projects see the recordset, and one name belongs to one of them."""
    lab.apply()
    zone = zones(tenant.project_id)
    www, theirs = a(zone), a(zone, "theirs", adopt=True)
    with pytest.raises(PlanRefused, match=f"dns_zone/{zone.name} does not exist"):
        lab.run(www)
    zone.share(lab.project_id)
    zone.create(theirs.name, "A", "198.51.100.1")
    assert lab.apply(www) == {str(www.key): "create"}
    assert zone.recordsets()[www.name, "A"]["project_id"] == lab.project_id
    with pytest.raises(PlanRefused, match="belongs to another project"):
        lab.run(theirs)
    by_administrator = replace(www, name=f"admin.{zone.name}", project=tenant.name)
    assert lab.apply(www, by_administrator) == {str(by_administrator.key): "create"}
    assert zone.recordsets()[by_administrator.name, "A"]["project_id"] == tenant.project_id
    lab.destroy()
    assert list(zone.recordsets()) == [(theirs.name, "A")]
    lab.declared = {each.key: each for each in lab.base}


def test_pruned_exported_and_audited(tenant: Tenant, zones: Zones, prep: Prep) -> None:
    zone = zones(tenant.project_id)
    name = f"t{secrets.token_hex(3)}"
    prep.environment |= {"OS_CLIENT_CONFIG_FILE": str(tenant.clouds_file), "OS_CLOUD": tenant.cloud}
    both = [{"name": f"{each}.{zone.name}", "zone": zone.name, "type": "A", "records": ["192.0.2.1"]} for each in "ab"]
    prep.write({"name": name, "recordsets": both})
    assert len(prep.apply()) == 2
    zone.create(f"hand.{zone.name}", "TXT", '"x"', ttl=60)
    said = prep.run("audit", prep.spec.name, code=1).stdout
    assert f"recordset/hand.{zone.name}/TXT" in said
    exported = prep.run("export", "--kind", "recordset").stdout
    prep.spec.with_name("exported.yaml").write_text(exported)
    assert "nothing to do: 3 unchanged" in prep.run("apply", "--yes", "exported.yaml").stdout

    prep.write({"name": name, "recordsets": both[:1]})
    assert f"recordset/b.{zone.name}/A" in prep.apply("--prune")
    assert sorted(kind for _, kind in zone.recordsets()) == ["A", "TXT"]
    prep.destroy()
    assert [kind for _, kind in zone.recordsets()] == ["TXT"]


def test_runs_that_meet(lab: Lab, zone: Zone) -> None:
    """Without a lease, after plans that saw nothing: Designate itself accepts each name and type once."""
    wanted = [a(zone, f"h{number}") for number in range(5)]

    def meet(run: CloudRun, plan: Plan) -> Report:
        both.wait()
        return executor.execute(plan, run)

    runs = [CloudRun(lab.as_user(), OwnershipTag(lab.name)) for _ in range(3)]
    plans = [planner.plan_apply(lab.name, wanted, observation.observe(run, wanted)) for run in runs]
    assert [len(plan.pending) for plan in plans] == [5, 5, 5]
    both = threading.Barrier(len(runs))
    with ThreadPoolExecutor(len(runs)) as pool:
        for report in pool.map(meet, runs, plans):
            report.raise_for_failures()
    assert sorted(name for name, _ in zone.recordsets()) == [each.name for each in wanted]


def test_two_runs_at_once_and_one_that_was_killed(tenant: Tenant, zones: Zones, prep: Prep) -> None:
    zone = zones(tenant.project_id)
    prep.environment |= {"OS_CLIENT_CONFIG_FILE": str(tenant.clouds_file), "OS_CLOUD": tenant.cloud}
    names = [f"h{number}.{zone.name}" for number in range(6)]
    wanted = [{"name": each, "zone": zone.name, "type": "A", "records": ["192.0.2.1"]} for each in names]
    prep.write({"name": f"t{secrets.token_hex(3)}", "recordsets": wanted})
    killed = prep.start("apply", "--yes", "--jobs", "2", prep.spec.name)
    while not zone.recordsets():
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    runs = [prep.start("apply", "--yes", "--lock-timeout", "60", prep.spec.name) for _ in range(2)]
    said = [run.communicate(timeout=120) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], said
    assert sorted(name for name, _ in zone.recordsets()) == names
    assert prep.changes() == set()
