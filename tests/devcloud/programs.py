"""Programs of the data plane, unpacked below one folder: no root, and nothing is installed.

apt says which packages this machine lacks, with all that they need, and fetches them; its lists and archives lie in
folders of ours.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.devcloud.layout import DevcloudError, Layout
from tests.devcloud.progress import timed

PACKAGES = (
    *("openvswitch-switch", "ovn-central", "ovn-host", "keepalived", "haproxy", "ethtool", "iproute2"),
    *("openssh-client", "openssh-server", "bind9", "bind9-dnsutils", "frr"),
)
FOLDERS = ("usr/sbin", "usr/bin", "sbin", "bin", "usr/lib/openvswitch-switch", "usr/lib/frr")


def is_there(folder: Path) -> bool:
    """Whether the packages were unpacked, all of them: the list is written last."""
    try:
        return (folder / "packages").read_text().split() == list(PACKAGES)
    except OSError:
        return False


def unpack(layout: Layout) -> None:
    """Fetch the packages that this machine lacks, and unpack them; raises DevcloudError."""
    target = layout.programs
    work = target.with_name("programs.new")
    shutil.rmtree(work, ignore_errors=True)
    lists, archives = work / "apt/lists", work / "apt/archives"
    for each in (lists, archives):
        (each / "partial").mkdir(parents=True)
    apt = ["apt-get", "-qq", "-y", "-o", f"Dir::State::lists={lists}", "-o", f"Dir::Cache={work / 'apt'}"]
    apt += ["-o", f"Dir::Cache::archives={archives}", "-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User="]
    # whatever is installed is fetched once more: its files are where the distribution's own start scripts need them
    install = ["install", "--reinstall", "--no-install-recommends", "--download-only", *PACKAGES]
    with timed("fetched the programs of the data plane"):
        _run(*apt, "update")
        _run(*apt, *install)
        for package in archives.glob("*.deb"):
            _run("dpkg", "-x", str(package), str(work))
    shutil.rmtree(work / "apt")
    (work / "packages").write_text("\n".join(PACKAGES))
    shutil.rmtree(target, ignore_errors=True)
    work.rename(target)


def _run(*command: str) -> None:
    try:
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
    except FileNotFoundError:
        raise DevcloudError(
            f"{command[0]} is not here: a cloud with packets needs Debian, or a system like it"
        ) from None
    if ended.returncode:
        raise DevcloudError(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stderr.strip()}")
