"""What is shipped: the files of the wheel and of the source distribution, and that they work by themselves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from openstack_prep.version import __version__

ROOT = Path(__file__).parents[2]
INFO = f"openstack_prep-{__version__}.dist-info"
SHARED = f"openstack_prep-{__version__}.data/data/share"
MUST = {
    f"{SHARED}/man/man1/openstack-prep.1",
    f"{SHARED}/bash-completion/completions/openstack-prep",
    f"{SHARED}/zsh/site-functions/_openstack-prep",
    f"{SHARED}/fish/vendor_completions.d/openstack-prep.fish",
    "openstack_prep/__init__.py",
    "openstack_prep/py.typed",
    "openstack_prep/cli/main.py",
    "openstack_prep/base/codes.yaml",
    "openstack_prep/exposures/codes.yaml",
    "openstack_prep/exposures/service_host/bridge.sh",
    "openstack_prep/kubernetes/codes.yaml",
    "openstack_prep/openshift/codes.yaml",
    "openstack_prep/resources/extension.py",
    "openstack_prep/kubernetes/cilium/names.yaml",
    "openstack_prep/kubernetes/keys/schema.yaml",
    "openstack_prep/openshift/install_config/paths.yaml",
    "openstack_prep/resources/identity/project.py",
    "openstack_prep/heat_templates/__init__.py",
    "openstack_prep/install_configs/__init__.py",
    "openstack_prep/install_configs/minimal.yaml",
    "openstack_prep/install_configs/openshift-lab.yaml",
    f"{INFO}/licenses/LICENSE",
    f"{INFO}/entry_points.txt",
    *(str(path.relative_to(ROOT)) for path in (ROOT / "openstack_prep").rglob("*.py")),
}


def build(what: str, source: Path, out: Path) -> Path:
    """Build a wheel or an sdist as any front end would, without the network."""
    script = f"from setuptools import build_meta; print(build_meta.build_{what}({str(out)!r}))"
    process = subprocess.run([sys.executable, "-c", script], cwd=source, capture_output=True, text=True, check=True)
    return out / process.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dist")


@pytest.fixture(scope="module")
def sdist(folder: Path) -> Path:
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    for name in filter(os.path.exists, (str(ROOT / line) for line in names.stdout.splitlines())):
        copy = folder / "source" / Path(name).relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(name, copy)
    return build("sdist", folder / "source", folder)


@pytest.fixture(scope="module")
def wheel(folder: Path, sdist: Path) -> Path:
    """A wheel built from the source distribution, as installers do."""
    shutil.unpack_archive(sdist, folder / "unpacked")  # TarFile's filters came with 3.11.4
    (source,) = (folder / "unpacked").iterdir()
    return build("wheel", source, folder)


def files_of(wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


def packaged() -> set[str]:
    """Return what the packages of the repository hold, as the wheel should name it."""
    package = ROOT / "openstack_prep"
    kinds = ("*.py", "*.yaml", "*.sh", "*.css", "*.js")
    found = {str(path.relative_to(ROOT)) for kind in kinds for path in package.rglob(kind)}
    for name in ("heat_templates", "install_configs"):
        found |= {f"openstack_prep/{name}/{path.name}" for path in (ROOT / name).iterdir() if path.is_file()}
    return found | {"openstack_prep/py.typed"}


def test_the_wheel_holds_what_it_must(wheel: Path) -> None:
    assert files_of(wheel) >= MUST


def test_the_wheel_holds_every_file_of_the_packages_and_nothing_else(wheel: Path) -> None:
    assert {name for name in files_of(wheel) if not name.startswith((INFO, SHARED))} == packaged()


def test_the_generated_files_name_the_commands(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for name in sorted(name for name in archive.namelist() if name.startswith(SHARED)):
            assert "address-pairs" in archive.read(name).decode().replace("\\-", "-"), name


def test_the_source_distribution_holds_what_builds_and_describes_it(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names >= {"setup.cfg", "pyproject.toml", "LICENSE", "README.md", "install_configs/minimal.yaml"}
    assert not [name for name in names if name.startswith((".", "tests/devcloud"))]


SHIPPED = """
import importlib.resources, importlib.util, openstack_prep
from openstack_prep.cli.main import main
print(openstack_prep.__file__)
print((importlib.resources.files("openstack_prep.heat_templates") / "__init__.py").is_file())
print([name for name in ("tests", "heat_templates", "install_configs") if importlib.util.find_spec(name)])
main(["example"])
"""


def test_it_works_where_it_is_installed(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    process = subprocess.run(
        [sys.executable, "-c", SHIPPED],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout.splitlines() == [
        str(tmp_path / "site/openstack_prep/__init__.py"),
        "True",
        "[]",
        *sorted(path.stem for path in (ROOT / "install_configs").glob("*.yaml")),
        "fleet",
    ]
