"""Builds the archives of a release, twice, checks them and describes what they need: ``tox -e release``.

Both builds start from the commit that is checked out, in folders of their own; everything lands in ``dist/``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from openstack_prep.version import __version__

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
NAME = f"openstack_prep-{__version__}"
IN_WHEEL = (
    f"{NAME}.dist-info/entry_points.txt",
    f"{NAME}.dist-info/licenses/LICENSE",
    f"{NAME}.data/data/share/man/man1/openstack-prep.1",
    f"{NAME}.data/data/share/bash-completion/completions/openstack-prep",
    f"{NAME}.data/data/share/zsh/site-functions/_openstack-prep",
    f"{NAME}.data/data/share/fish/vendor_completions.d/openstack-prep.fish",
)
PYTHON = [sys.executable, "-m"]
REQUIRED = """\
from importlib.metadata import requires
print(*(each for each in requires("openstack_prep") if "extra ==" not in each), sep="\\n")
"""
"""A program that prints what the installed wheel requires without an extra."""


def run(*command: str | Path, **environment: str) -> str:
    """Run a program in the repository; its failure ends this one."""
    print("+", *command, flush=True)
    process = subprocess.run(
        [str(word) for word in command], cwd=ROOT, env=os.environ | environment, stdout=subprocess.PIPE, text=True
    )
    if process.returncode:
        sys.exit(f"{process.stdout}{command[0]} exited with {process.returncode}")
    return process.stdout


def check_tag() -> None:
    """The tag of the commit, if it has one, is the version: version.py is the only place that has it."""
    tags = run("git", "tag", "--points-at", "HEAD").split()
    if tags and f"v{__version__}" not in tags:
        sys.exit(f"the commit has the tag {tags[0]}, but openstack_prep/version.py has {__version__}; make them agree")


def build(folder: Path, commit: str) -> dict[str, bytes]:
    """Build both archives from a commit, as a front end of PEP 517 does, and return them."""
    source, out = folder / "source", folder / "dist"
    source.mkdir(parents=True)
    time = run("git", "log", "-1", "--format=%ct", commit).strip()
    run("git", "archive", "--output", folder / "source.tar", commit)
    shutil.unpack_archive(folder / "source.tar", source)
    run(*PYTHON, "build", "--outdir", out, source, SOURCE_DATE_EPOCH=time)
    return {path.name: path.read_bytes() for path in out.iterdir()}


def check_contents(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    if missing := [name for name in IN_WHEEL if name not in names]:
        sys.exit(f"{wheel.name} lacks {', '.join(missing)}")


def describe(folder: Path) -> None:
    """Write the bill of materials of an environment in which only the wheel of dist/ was installed."""
    run(*PYTHON, "venv", folder)
    python = folder / "bin" / "python"
    # not by its path, which the bill would contain; nor from an index, where its name may be somebody else's
    wheel = ("--no-deps", "--no-index", "--find-links", DIST, f"openstack_prep=={__version__}")
    run(python, "-m", "pip", "install", "--quiet", *wheel)
    run(python, "-m", "pip", "install", "--quiet", *run(python, "-c", REQUIRED).splitlines())
    print(run(folder / "bin" / "openstack-prep", "--version").strip())
    run(python, "-m", "pip", "uninstall", "--quiet", "--yes", "pip", "setuptools")
    out = DIST / f"{NAME}.cdx.json"
    run("cyclonedx-py", "environment", python, "--output-reproducible", "--output-file", out)


def main() -> None:
    check_tag()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        commit = run("git", "rev-parse", "HEAD").strip()
        first, second = build(folder / "first", commit), build(folder / "another", commit)
        if differing := [name for name in first if first[name] != second.get(name)]:
            sys.exit(f"two builds of one commit differ: {', '.join(differing)}")
        shutil.rmtree(DIST, ignore_errors=True)
        DIST.mkdir()
        for name, content in first.items():
            (DIST / name).write_bytes(content)
        archives = sorted(DIST.iterdir())
        (wheel,) = DIST.glob("*.whl")
        run(*PYTHON, "twine", "check", "--strict", *archives)
        run("check-wheel-contents", wheel)
        check_contents(wheel)
        describe(folder / "venv")
    changes = run("towncrier", "build", "--draft", "--version", __version__)
    print(f"{len(changes.splitlines())} lines of changes; both builds are equal; see {DIST}")


if __name__ == "__main__":
    main()
