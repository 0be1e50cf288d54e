"""The script that mounts the volume of an RKE2 server, on a real disk image; it needs root and a loop device."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

TEMPLATES = Path(__file__).parents[2] / "heat_templates"
VOLUME = "4f3c9c6a-1111-4222-8333-444455556666"
VIRTIO, SCSI = f"virtio-{VOLUME[:20]}", f"scsi-0QEMU_QEMU_HARDDISK_{VOLUME}"
SERVER = "/var/lib/rancher/rke2/server"
NODE = """
set -eu
mkdir -p /dev/disk
mount --bind "$0/etc" /etc
mount --bind "$0/lib" /var/lib
mount --bind "$0/disk" /dev/disk
PATH=$0/bin:$PATH sh "$1" "$2"
eval "$3"
"""
"""What runs in a mount namespace of its own: a node with its own /etc and /var/lib, and the volume's device."""


@pytest.fixture
def device(tmp_path: Path) -> Iterator[str]:
    """A loop device of 60 MiB that contains nothing."""
    image = tmp_path / "volume"
    with image.open("wb") as file:
        file.truncate(60 * 2**20)
    if os.geteuid() != 0 or not shutil.which("mkfs.ext4"):
        pytest.fail("it needs root and mkfs.ext4 (Debian: e2fsprogs)")
    made = subprocess.run(["losetup", "--find", "--show", image], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.fail(f"there is no loop device: {made.stderr}")
    yield made.stdout.strip()
    subprocess.run(["losetup", "--detach", made.stdout.strip()], check=True)


def run(root: Path, device: str, link: str, then: str) -> subprocess.CompletedProcess[str]:
    """Run the script on a new node, and then commands; ``systemctl`` is a stand-in."""
    for each in ("etc", f"lib{SERVER.removeprefix('/var/lib')}/manifests", "bin", "disk/by-id"):
        (root / each).mkdir(parents=True)
    (root / "etc" / "fstab").touch()
    (root / "etc" / "mtab").symlink_to("/proc/mounts")
    (root / "lib" / "rancher/rke2/server/manifests/kube-vip.yaml").write_text(f"of {root.name}\n")
    (root / "disk" / "by-id" / link).symlink_to(device)
    (root / "bin" / "systemctl").write_text("#!/bin/sh\n")
    (root / "bin" / "systemctl").chmod(0o700)
    script = TEMPLATES / "rke2-volume.sh"
    command = ["unshare", "--mount", "sh", "-c", NODE, root, script, VOLUME, then]
    return subprocess.run([str(each) for each in command], capture_output=True, text=True)


def test_a_new_server_finds_the_data_of_the_old_one(device: str, tmp_path: Path) -> None:
    """Formatted once; the password, etcd and the newest manifests are there."""
    first = run(tmp_path / "old", device, VIRTIO, f"echo word >/etc/rancher/node/password; mkdir -p {SERVER}/db/etcd")
    assert first.returncode == 0, first.stderr
    read = f"cat /etc/rancher/node/password {SERVER}/manifests/kube-vip.yaml; ls {SERVER}/db; cat /etc/fstab"
    second = run(tmp_path / "new", device, SCSI, read)
    assert second.returncode == 0, second.stderr
    said = second.stdout.splitlines()
    assert said[-4:-1] == ["word", "of new", "etcd"]
    assert said[-1] == f"/dev/disk/by-id/{SCSI} {SERVER} ext4 defaults,nofail 0 2"
    drop_in = tmp_path / "new" / "etc/systemd/system/rke2-server.service.d/10-volume.conf"
    assert drop_in.read_text() == f"[Unit]\nRequiresMountsFor={SERVER}\n"


def test_what_is_on_the_volume_is_never_formatted(device: str, tmp_path: Path) -> None:
    """A partition table is not a file system, but somebody has put it there."""
    table = bytes(446) + bytes([0x80, 0, 1, 0, 0x83, 0, 2, 0, 1, 0, 0, 0, 0xFF, 0, 0, 0]) + bytes(48) + b"\x55\xaa"
    Path(device).write_bytes(table)
    refused = run(tmp_path / "node", device, VIRTIO, "true")
    assert refused.returncode != 0
    with open(device, "rb") as disk:
        assert disk.read(512) == table
    assert (tmp_path / "node" / "etc" / "fstab").read_text() == ""
