"""Scripts with hostile names: a shell reads each as it was meant, and shellcheck finds nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.model import OwnershipTag
from openstack_prep.exposures import external_ips, service_host
from openstack_prep.exposures import services as exposed_services
from openstack_prep.exposures.endpoint import ExposureTarget, PlacedExposure
from openstack_prep.exposures.external_ips import ExternalIPNode
from openstack_prep.exposures.service_host import KubeInit
from openstack_prep.kubernetes.rke2 import kubeconfig_hint
from openstack_prep.resources.files.env_file import EnvFile
from tests.fuzz.mutating import OWNED, TEXTS
from tests.unit.exposures.external_ips.declared import ALL, FORMS
from tests.unit.exposures.service_host.declared import API, EXTERNAL, MACS, OKD, TODAY

BASH = shutil.which("bash") or "bash"
SHELLCHECK = str(Path(sys.executable).with_name("shellcheck"))
ROOT = Path(__file__).parents[2]
NAMES = st.sampled_from([each for each in TEXTS if each and "\0" not in each and "\ud800" not in each]) | st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=20
)
"""Names that a file can hold; NUL and half characters no file of text can."""


def of_service_host(name: str) -> dict[str, str]:
    outside = replace(EXTERNAL, nic=name, bridge=name, device=name)
    settings = replace(OKD, distribution=name, external=outside, kubeinit=KubeInit(user=name, hypervisor=name))
    return service_host.files(settings, [API], macs=MACS, today=TODAY)


def of_services(name: str) -> dict[str, str]:
    return exposed_services.files([_placed(each, name, "metallb") for each in ALL])


def of_external_ips(form: str) -> Callable[[str], dict[str, str]]:
    def render(name: str) -> dict[str, str]:
        nodes = [ExternalIPNode(name=f"n{number}", addresses=("192.0.2.1",)) for number in range(2)]
        settings = replace(FORMS[form], interface=name, nodes=tuple(nodes))
        return external_ips.files(settings, [_placed(each, name, "external-ip") for each in ALL])

    return render


def _placed(placed: PlacedExposure, name: str, how: Any) -> PlacedExposure:
    target = ExposureTarget(service=f"{name}/{name}")
    return replace(placed, exposure=replace(placed.exposure, name=name, target=target, how=how))


RENDERED: Mapping[str, Callable[[str], dict[str, str]]] = {
    "service_host": of_service_host,
    "services": of_services,
    "script": of_external_ips("script"),
    "script-dummy": of_external_ips("script-dummy"),
}


def check(scripts: Iterable[Path], *spared: str) -> None:
    """Have bash parse scripts, and shellcheck look for what would be expanded or split."""
    paths = [str(each) for each in scripts]
    assert paths
    for path in paths:
        done = subprocess.run([BASH, "-n", path], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    # SC2016, SC1003: an expression or a backslash in single quotes, which is what is wanted; SC2034 is a name not used
    words = [
        SHELLCHECK,
        "--severity",
        "warning",
        "--exclude",
        ",".join(("SC2016", "SC1003", "SC2034", *spared)),
        *paths,
    ]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("kind", RENDERED)
@settings(max_examples=max(4, settings.default.max_examples // 4))  # shellcheck takes its time
@given(name=NAMES)
def test_a_hostile_name_in_a_script(kind: str, name: str, tmp_path: Path) -> None:
    texts = {each: text for each, text in RENDERED[kind](name).items() if text.startswith("#!")}
    paths = []
    for number, text in enumerate(texts.values()):
        path = tmp_path / f"{number}.sh"
        path.write_text(text, newline="")
        paths.append(path)
    check(paths)


@given(name=NAMES)
def test_a_hostile_value_in_an_env_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / "lab.env"
    run = CloudRun(cast(Cloud, None), OwnershipTag("lab"))
    EnvFile(path=str(path), cloud=name, kubeconfig=f"/{name}", variables={"A": name}).create(run)
    printed = sourced(path, 'printf "%s\\0" "$OS_CLOUD" "$A"', tmp_path)
    assert printed == f"{name}\0{name}\0".encode()


@given(name=NAMES)
def test_a_hostile_name_in_a_command_for_a_person(name: str, tmp_path: Path) -> None:
    """Its programs are stand-ins that do nothing."""
    hint = kubeconfig_hint(name, name, name, "kubeconfig", name)
    command = tmp_path / "command.sh"
    command.write_text(f"ssh() {{ :; }}\nsed() {{ :; }}\nkubectl() {{ :; }}\n{hint}\n", newline="")
    sourced(command, ":", tmp_path)


def sourced(path: Path, then: str, folder: Path) -> bytes:
    """Return what a shell prints after it has read a file; it finds `touch`, and nothing else."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    if not (programs / "touch").exists():
        (programs / "touch").symlink_to(shutil.which("touch") or "/usr/bin/touch")
    words = [BASH, "-euc", f'. "$1"; {then}', "bash", str(path)]
    done = subprocess.run(words, cwd=folder, env={"PATH": str(programs)}, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert not (folder / OWNED).exists()
    return done.stdout


def test_shipped_scripts() -> None:
    """Heat fills in values before a node runs them; what remains of its marks is quoted."""
    check((ROOT / "heat_templates").glob("*.sh"), "SC2050")  # %index% != 0
