"""Whole files of each form: data/exposures/external-ips-*.txt; OPENSTACK_PREP_STORE=1 writes them again."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from openstack_prep.base.secret import HIDDEN
from openstack_prep.exposures.endpoint import Exposed, ExposedPort, ExposureTarget, PlacedExposure
from openstack_prep.exposures.external_ips import (
    ExternalIPs,
    files,
    mistakes,
)
from openstack_prep.exposures.external_ips.settings import carried, hops
from tests.unit import kubernetes_schemas
from tests.unit.exposures.external_ips.declared import ALL, FORMS, NODES, PLAIN, placed

SHELLCHECK = Path(sys.executable).with_name("shellcheck")


@pytest.mark.parametrize("name", FORMS)
def test_whole_files(name: str, stored: Callable[[str, str], None]) -> None:
    assert not list(mistakes(FORMS[name], ALL))
    texts = files(FORMS[name], ALL)
    assert "hush" not in "".join(files(FORMS[name], ALL, openly=False).values())
    stored(f"exposures/external-ips-{name}.txt", "\n".join(f"# --- {each}\n{text}" for each, text in texts.items()))


@pytest.mark.parametrize("name", FORMS)
def test_the_order_of_exposures_does_not_matter(name: str) -> None:
    alike = {key: sorted(text.splitlines()) for key, text in files(FORMS[name], ALL[::-1]).items()}
    assert alike == {key: sorted(text.splitlines()) for key, text in files(FORMS[name], ALL).items()}


def test_services_are_valid() -> None:
    (service,) = yaml.safe_load_all(files(PLAIN, ALL)["external-ip-services.yaml"])
    kubernetes_schemas.validate(service, "1.36")
    assert service["spec"]["externalIPs"] == ["200.1.1.1", "2001:db8:1::1"]


def test_passwords_are_only_revealed_openly() -> None:
    for name in ("frr", "frr-k8s"):
        assert "hush" in "".join(files(FORMS[name], ALL).values())
        assert HIDDEN in "".join(files(FORMS[name], ALL, openly=False).values())


def test_nothing_is_rendered_without_addresses() -> None:
    for settings in FORMS.values():
        assert files(settings, ALL[3:]) == {}


def test_one_node_carries_an_address_and_stays_when_others_go() -> None:
    many = [placed(f"e{number}", f"200.1.1.{number}") for number in range(1, 100)]
    before = carried(PLAIN, many)
    assert sorted(address for held in before.values() for address in held) == sorted(
        each.address or "" for each in many
    )
    assert min(map(len, before.values())) > 15
    after = carried(ExternalIPs(nodes=NODES[:2], interface="eth0"), many)
    for node in ("k8s5", "k8s6"):
        assert {*before[node]} <= {*after[node]}


def test_all_nodes_carry_and_the_router_of_neutron_needs_no_script() -> None:
    settings = FORMS["script-dummy"]
    everything = ["200.1.1.1", "200.1.1.2", "2001:db8:1::1"]
    assert carried(settings, ALL) == dict.fromkeys(("k8s5", "k8s6", "k8s9"), everything)
    found = {each.destination: each.next_hops for each in hops(settings, ALL)}
    assert found["200.1.1.1/32"] == ("192.168.200.25", "192.168.200.26", "192.168.200.29")
    assert found["2001:db8:1::1/128"][0] == "2001:db8:200::25"
    assert "routes.sh" not in files(settings, ALL, on_openstack=True)
    assert "routes.sh" in files(settings, ALL)


# --- scripts run --------------------------------------------------------------------------

IP = """\
#!/bin/sh
echo "ip $*" >> "$LOG"
case "$1 $2" in
"link show") exit 1 ;;
esac
"""
KUBECTL = """\
#!/bin/sh
case "$*" in
*get*) echo "$FOUND" ;;
*) for each in "$@"; do printf '<%s>' "$each" >> "$LOG"; done; echo >> "$LOG" ;;
esac
"""


def run(folder: Path, script: str, *words: str, **programs: str) -> subprocess.CompletedProcess[str]:
    """Run a script with other programs in place of ip and kubectl, which log their words."""
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    (folder / "script").write_text(script)
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "LOG": str(folder / "log"), "FOUND": "200.1.1.2"}
    return subprocess.run(
        ["sh", "script", *words], cwd=folder, env=environment, text=True, capture_output=True, check=False
    )


def test_the_script_of_a_node(tmp_path: Path) -> None:
    script = files(FORMS["script-dummy"], ALL)["addresses-k8s5.sh"]
    assert run(tmp_path, script, "up", ip=IP).returncode == 0
    assert (tmp_path / "log").read_text().splitlines() == [
        "ip link show dev vips",
        "ip link add vips type dummy",
        "ip link set vips up",
        *(f"ip address replace {each} dev vips" for each in ("200.1.1.1/32", "200.1.1.2/32", "2001:db8:1::1/128")),
    ]
    assert run(tmp_path, script, "down", ip=IP).returncode == 0
    assert run(tmp_path, script, ip=IP).returncode == 2


def test_the_script_of_the_router(tmp_path: Path) -> None:
    script = files(FORMS["script-dummy"], ALL)["routes.sh"]
    assert run(tmp_path, script, "up", ip=IP).returncode == 0
    via = "nexthop via 192.168.200.25 nexthop via 192.168.200.26 nexthop via 192.168.200.29"
    assert (tmp_path / "log").read_text().splitlines()[0] == f"ip route replace 200.1.1.1/32 {via}"


def test_the_script_that_patches(tmp_path: Path) -> None:
    script = files(PLAIN, ALL)["patch-external-ips.sh"]
    assert run(tmp_path, script, kubectl=KUBECTL).returncode == 0
    assert (tmp_path / "log").read_text() == (
        "<-n><on><patch><service><dns><--type><merge><-p>" + '<{"spec": {"externalIPs": ["200.1.1.2"]}}>' + "\n"
    )
    (tmp_path / "log").unlink()
    refused = run(tmp_path, script.replace("200.1.1.2", "200.1.1.3"), kubectl=KUBECTL)
    assert refused.returncode == 1
    assert "200.1.1.2" in refused.stderr
    assert not (tmp_path / "log").exists()


def test_words_of_a_patch_are_quoted() -> None:
    """Names that Python code may give and a spec may not."""
    target = ExposureTarget(service="a b/$(reboot)'\n")
    exposure = Exposed(name="e", cluster="c", target=target, ports=(ExposedPort(port=1),), how="external-ip")
    script = files(PLAIN, [PlacedExposure(exposure=exposure, address="200.1.1.1")])["patch-external-ips.sh"]
    words = shlex.split(script[script.index("kubectl -n 'a b'") :])
    assert words[2] == "a b"
    assert words[5] == "$(reboot)'\n"
    assert json.loads(words[-1]) == {"spec": {"externalIPs": ["200.1.1.1"]}}


@pytest.mark.parametrize("name", FORMS)
def test_shellcheck_finds_nothing(name: str, tmp_path: Path) -> None:
    scripts = {key: text for key, text in files(FORMS[name], ALL).items() if key.endswith(".sh")}
    for key, text in scripts.items():
        (tmp_path / key).write_text(text)
    checked = subprocess.run([SHELLCHECK, *scripts], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert not checked.stdout
