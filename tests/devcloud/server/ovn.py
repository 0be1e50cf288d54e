"""OVN's databases and its translator (ovn-northd), started beside Neutron, and one machine that they know.

No ovn-controller and no Open vSwitch run: nothing carries traffic, and no port is bound by itself.  Neutron writes
what it wants into the northbound database, ovn-northd makes logical flows of it, and ovn-trace says what these
flows do with a packet (tests/devcloud/ovn.py).
"""

import os
import pathlib
import subprocess
import tempfile
import time

from tests.devcloud.server import lifeline

CHASSIS = "devcloud"
"""Neutron's and Nova's name of the only machine."""
DATABASES = {"nb": "OVN_Northbound", "sb": "OVN_Southbound"}
START_SECONDS = 20


def start(root, folder):
    """Start the programs below ``root``, with their databases and sockets in ``folder``; they end with this process."""
    root, folder = pathlib.Path(root), pathlib.Path(folder)
    _forget_earlier_start(folder)
    libraries = ":".join(map(str, root.glob("usr/lib/*-linux-gnu")))
    os.environ["LD_LIBRARY_PATH"] = libraries  # for ovsdb-client, which Neutron calls
    os.environ["PATH"] += f":{root / 'usr/bin'}:{root / 'usr/sbin'}"
    os.environ |= {name: str(folder) for name in ("OVN_RUNDIR", "OVS_RUNDIR", "OVN_LOGDIR", "OVS_LOGDIR")}
    sockets = {name: f"unix:{folder / name}.sock" for name in DATABASES}
    for name, schema in DATABASES.items():
        database = folder / f"{name}.db"
        if not database.exists():
            subprocess.run(["ovsdb-tool", "create", database, root / f"usr/share/ovn/ovn-{name}.ovsschema"], check=True)
        (folder / f"{name}.sock").unlink(missing_ok=True)
        _start("ovsdb-server", database, f"--remote=p{sockets[name]}", f"--unixctl={folder / name}.ctl")
        _until_served(folder / f"{name}.sock", schema)
    subprocess.run(["ovn-nbctl", f"--db={sockets['nb']}", "init"], check=True)
    subprocess.run(["ovn-sbctl", f"--db={sockets['sb']}", "init"], check=True)
    _start(
        "ovn-northd",
        f"--ovnnb-db={sockets['nb']}",
        f"--ovnsb-db={sockets['sb']}",
        f"--unixctl={folder / 'northd.ctl'}",
    )
    if os.environ.get("OPENSTACK_PREP_DEVCLOUD_PACKETS") != "1":  # with packets, ovn-controller adds its own
        _add_machine(sockets["sb"])


def take_all_events():
    """Let this process take all events of OVN: there is no other, and asking SQLite may wait for a request's answer.

    Neutron shares them between processes by a table in its database (neutron/common/ovn/hash_ring_manager.py, 29.0.0).
    """
    from neutron.common.ovn import hash_ring_manager
    from neutron.db import ovn_hash_ring_db
    from oslo_config import cfg
    from oslo_utils import timeutils

    def get_node(manager, key):
        ours = ovn_hash_ring_db.get_node_uuid(manager._group, cfg.CONF.host, os.getpid())
        return ours, timeutils.utcnow()

    hash_ring_manager.HashRingManager.get_node = get_node


def _forget_earlier_start(folder):
    """Let Neutron take this for a new start.

    It keeps its time in a temporary file by the id of its parent, which stays the same over a reset, and would
    share OVN's events with the process before (neutron/common/wsgi_utils.py, 29.0.0).
    """
    tempfile.tempdir = str(folder)
    for path in folder.glob("neutron_*"):
        path.unlink()


def _start(*command):
    parent = os.getpid()
    subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=lambda: lifeline.die_with(parent))


def _until_served(socket, schema):
    deadline = time.monotonic() + START_SECONDS
    while subprocess.run(
        ["ovsdb-client", "get-schema-version", f"unix:{socket}", schema], capture_output=True
    ).returncode:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{schema} does not answer at {socket}")
        time.sleep(0.05)


def _add_machine(southbound):
    """Neutron binds ports, and places gateways, only where a chassis has answered its last change; this one, all."""
    ctl = ("ovn-sbctl", f"--db={southbound}")
    if subprocess.run([*ctl, "get", "Chassis", CHASSIS, "name"], capture_output=True).returncode == 0:
        return
    subprocess.run([*ctl, "chassis-add", CHASSIS, "geneve", "127.0.0.1"], check=True)
    settings = {"ovn-bridge-mappings": "external:br-ex", "ovn-cms-options": "enable-chassis-as-gw"}
    columns = [f"hostname={CHASSIS}", *(f'other_config:{key}="{value}"' for key, value in settings.items())]
    subprocess.run([*ctl, "set", "Chassis", CHASSIS, *columns], check=True)
    chassis = subprocess.run(
        [*ctl, "--bare", "--columns=_uuid", "find", "Chassis", f"name={CHASSIS}"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    answered = f"nb_cfg={2**31 - 1}"
    subprocess.run([*ctl, "create", "Chassis_Private", f"name={CHASSIS}", f"chassis={chassis}", answered], check=True)
