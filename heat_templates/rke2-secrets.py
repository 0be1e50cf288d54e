#!/usr/bin/env python3
"""Write secrets into the files of a node; the argument is the id of the volume that holds them.

Heat shows to every reader of a project what it is given for a server. So the files have placeholders, and a volume made
from a private image has the values, as openstack-prep writes them: a line, and JSON whose member "secrets" maps each
placeholder to its value in the notation of JSON. cloud-init needs Python, so each node has it.
"""

import glob
import json
import os
import stat
import sys
import time

HEAD = b"openstack-prep secrets 1\n"
FOLDERS = ("/etc/rancher/rke2", "/etc/rancher/rke2/config.yaml.d", "/var/lib/rancher/rke2/server/manifests")


def find_device(volume):
    """Return the device: virtio-ID or scsi-0QEMU_QEMU_HARDDISK_ID, with as much of the id as Nova gives disks."""
    for _ in range(180):  # Heat attaches the volume when the server runs; a predecessor may still have it
        for device in sorted(glob.glob(f"/dev/disk/by-id/*{volume[:20]}*")):
            if stat.S_ISBLK(os.stat(device).st_mode):
                return device
        time.sleep(10)
    sys.exit(f"volume {volume} is not attached: no *{volume[:20]}* in /dev/disk/by-id")


def read(device):
    with open(device, "rb") as disk:
        if disk.readline(len(HEAD)) != HEAD:
            sys.exit(f"{device} has no secrets: its first line is not {HEAD.decode().strip()!r}")
        text = b""
        while b"\0" not in text and (more := disk.read(1 << 16)):
            text += more
    return json.loads(text.partition(b"\0")[0].decode())["secrets"]


def fill(path, secrets):
    """Put the secrets into a file, which then has mode 0600."""
    with open(path, encoding="utf-8") as file:
        text = before = file.read()
    for placeholder, value in secrets.items():
        text = text.replace(placeholder, value)
    if text != before:
        with open(path + ".new", "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(text)
        os.replace(path + ".new", path)


if __name__ == "__main__":
    values = read(find_device(sys.argv[1]))
    for folder in FOLDERS:
        for found in sorted(glob.glob(folder + "/*.yaml")):
            fill(found, values)
