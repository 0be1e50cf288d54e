"""Whole files of a services machine: data/service_host-*; OPENSTACK_PREP_STORE=1 writes them."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
import yaml

from openstack_prep.dns.zone import serial_of
from openstack_prep.exposures.endpoint import PlacedExposure
from openstack_prep.exposures.service_host import ExternalInterface, KubeInit, ServiceHost, files, without_mac
from openstack_prep.exposures.service_host.files import command
from tests.unit.exposures.service_host.declared import API, APPS, GAME, MACS, OKD, PLAIN, TODAY

Stored = Callable[[str, str], None]
DATA = "../exposures/data/service_host"
BOTH = [("okd", OKD, [API, APPS], MACS), ("plain", PLAIN, [GAME], {})]


@pytest.mark.parametrize(("name", "settings", "placed", "macs"), BOTH, ids=["okd", "plain"])
def test_files(
    stored: Stored, name: str, settings: ServiceHost, placed: list[PlacedExposure], macs: dict[str, str]
) -> None:
    for file, text in files(settings, placed, macs=macs, today=TODAY).items():
        stored(f"{DATA}-{name}/{file}", text.rstrip("\n"))


def test_a_second_run_changes_nothing_and_a_changed_zone_alone_gets_a_new_serial() -> None:
    first = files(OKD, [API, APPS], macs=MACS, today=TODAY)
    later = date(2027, 1, 1)
    assert files(OKD, [API, APPS], macs=MACS, previous=first, today=later) == first
    moved = replace(OKD, workers=None)
    second = files(moved, [API, APPS], macs=MACS, previous=first, today=TODAY)
    serials = {name: (serial_of(first[name]), serial_of(second[name])) for name in first if name.endswith(".zone")}
    assert serials == {
        "okdcluster.kubeinit.local.inside.zone": (2026112300, 2026112301),
        "0.0.10.in-addr.arpa.zone": (2026112300, 2026112301),
        "okdcluster.kubeinit.local.outside.zone": (2026112300, 2026112300),
    }


def test_nothing_of_the_inside_is_in_the_zone_for_clients_outside() -> None:
    outside = files(OKD, [API, APPS], macs=MACS, today=TODAY)["okdcluster.kubeinit.local.outside.zone"]
    assert "10.0.0." not in outside
    assert not any(name in outside for name in ("api-int", "-master-", "-worker-", "-bootstrap-", "-service-"))


def test_machine_config_is_never_offered_outside() -> None:
    ports = (*API.exposure.ports, replace(API.exposure.ports[0], port=9000, target=22623))
    wrong = replace(API, exposure=replace(API.exposure, ports=ports))
    config = files(OKD, [wrong], macs=MACS, today=TODAY)["haproxy.cfg"]
    assert "9000" not in config
    assert "10.19.41.157:22623" not in config


def test_two_addresses_with_one_port_share_a_section() -> None:
    other = replace(GAME, address="2001:db8:1::11")
    config = files(PLAIN, [GAME, other], today=TODAY)["haproxy.cfg"]
    assert config.count("bind [2001:db8::100]:8080") == 1
    names = [line for line in config.splitlines() if line.startswith("listen ")]
    assert len(names) == len(set(names)) == 6
    assert "    bind [2001:db8:1::11]:8080\n" in config


def test_files_for_kubeinit_are_optional() -> None:
    assert {"kubeinit.yaml", "ansible-playbook.sh"} <= set(files(OKD, [API], macs=MACS, today=TODAY))
    assert not {"kubeinit.yaml", "ansible-playbook.sh"} & set(files(replace(OKD, kubeinit=None), [API], today=TODAY))


def test_machines_without_a_mac_address_get_a_reserved_one() -> None:
    assert without_mac(OKD) == list(MACS)
    assert without_mac(PLAIN) == []
    inventory = files(OKD, [API], macs=MACS, today=TODAY)["inventory"]
    assert all(f"{name} ansible_host=" in inventory and f"mac={mac} " in inventory for name, mac in MACS.items())


# --- hostile values -----------------------------------------------------------------------

HOSTILE = "'; $(touch /tmp/owned) `id` #\""


def test_values_that_were_not_read_from_a_spec_are_quoted(tmp_path: Path) -> None:
    external = ExternalInterface(nic=HOSTILE, bridge=HOSTILE, device=HOSTILE, gateway="10.19.41.254", prefix_length=24)
    settings = replace(OKD, distribution=HOSTILE, external=external, kubeinit=KubeInit(user=HOSTILE))
    texts = files(settings, [API], macs=MACS, today=TODAY)
    variables = yaml.safe_load(texts["kubeinit.yaml"])["kubeinit_libvirt_external_service_interface"]
    assert (variables["attached"], variables["dev"]) == (HOSTILE, HOSTILE)
    words = command(settings, KubeInit(user=HOSTILE), "x.yaml")
    assert shlex.split(shlex.join(words)) == words
    ansible = tmp_path / "ansible-playbook"
    ansible.write_text("#!/bin/bash\nprintf '%s\\n' \"$@\"\n")
    ansible.chmod(0o755)
    script = tmp_path / "with 'quote" / "run.sh"
    script.parent.mkdir()
    script.write_text(texts["ansible-playbook.sh"])
    done = subprocess.run(
        [shutil.which("bash") or "bash", str(script), "--check"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    given = done.stdout.splitlines()
    assert given[given.index("--user") + 1] == HOSTILE
    assert given[given.index("-e") + 1] == f"@{script.parent}/kubeinit.yaml"
    assert given[-1] == "--check"
    head = texts["bridge.sh"].partition("\nusage()")[0]
    shown = subprocess.run(["bash", "-c", f'{head}\nprintf %s "$NIC"'], capture_output=True, text=True, check=True)
    assert shown.stdout == HOSTILE
    assert not Path("/tmp/owned").exists()
