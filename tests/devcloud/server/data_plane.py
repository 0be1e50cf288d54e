"""The data plane of one cloud: Open vSwitch and ovn-controller, and a network namespace for each server of Nova.

    unshare --user --net --mount --pid ... python -m tests.devcloud.server.data_plane HOME ROOT PORT...

It runs as the first process of namespaces of its own, so that whatever ends it ends all of it, and leaves nothing.
ROOT is the folder of the programs; the ports are those of the services. The bridges are in user space: no kernel
module is needed, and with ``datapath_type=dummy`` (netdev, but for the bridges' own ports) no /dev/net/tun. What
Neutron wants is read from OVN's northbound database, and which servers run from the files of the fake hypervisor
(machine_files.py): a port of such a server becomes an interface of that server's namespace, with its MAC address, its
addresses, and the gateway and MTU that DHCP would give. A server that stops, or is deleted, loses its namespace with
all that runs in it.
"""

import pathlib
import subprocess
import sys
import time

import ovs.db.idl
import ovs.poller

from tests.devcloud.server import machine_files

CHASSIS = "devcloud"
"""Neutron's and Nova's name of the only machine."""
OUTSIDE = "outside"
"""The namespace on the external network, which has the address of that network's gateway."""
OUTSIDE_ADDRESSES = ("192.168.122.1/24", "2001:db8:122::1/64")
POLL_MILLISECONDS = 200
"""How often the files of the servers are looked at."""
TABLES = {
    "Logical_Switch_Port": ["name", "external_ids", "dhcpv4_options"],
    "DHCP_Options": ["options"],
}


def say(text):
    print(f"devcloud: {text}", flush=True)


def run(*command, check=True):
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if check and ended.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {ended.returncode}: {ended.stderr}")
    return ended.stdout.strip()


class Switch:
    """Open vSwitch and ovn-controller, with their sockets and logs in one folder."""

    def __init__(self, folder, southbound):
        self.folder, self.southbound = folder, southbound
        self.database = f"unix:{folder / 'db.sock'}"

    def start(self, root):
        folder = self.folder
        configuration = folder / "conf.db"
        run("ovsdb-tool", "create", configuration, root / "usr/share/openvswitch/vswitch.ovsschema")
        self._start("ovsdb-server", configuration, f"--remote=p{self.database}")
        while not (folder / "db.sock").exists():
            time.sleep(0.02)
        self.control("--no-wait", "init")
        settings = {
            "system-id": CHASSIS,
            "hostname": CHASSIS,
            "ovn-remote": self.southbound,
            "ovn-encap-type": "geneve",
            "ovn-encap-ip": "127.0.0.1",
            "ovn-bridge-datapath-type": "dummy",
            "ovn-bridge-mappings": "external:br-ex",
            "ovn-cms-options": "enable-chassis-as-gw",
        }
        self.control(
            "--no-wait", "set", "open", ".", *(f"external-ids:{name}={value}" for name, value in settings.items())
        )
        self._start("ovs-vswitchd", self.database, "--enable-dummy")
        for bridge in ("br-int", "br-ex"):
            mode = ["fail-mode=secure"] if bridge == "br-int" else []
            self.control("add-br", bridge, "--", "set", "bridge", bridge, "datapath_type=dummy", *mode)
        self._start("ovn-controller", self.database)

    def control(self, *words):
        return run("ovs-vsctl", f"--db={self.database}", "--timeout=20", *words)

    def plug(self, bridge, interface, **external_ids):
        ids = [f"external-ids:{name.replace('_', '-')}={value}" for name, value in external_ids.items()]
        settings = ["--", "set", "interface", interface, *ids] if ids else []
        self.control("--may-exist", "add-port", bridge, interface, *settings)

    def unplug(self, bridge, interface):
        self.control("--if-exists", "del-port", bridge, interface)

    def _start(self, program, *words):
        log = self.folder / f"{program}.log"
        # ovn-controller 23.03 knows no --unixctl: its socket lies where OVN_RUNDIR says
        own = [] if program == "ovn-controller" else [f"--unixctl={self.folder / program}.ctl"]
        # conntrack in user space of 3.1.0 aborts now and then (conn_update_state); --monitor starts it again
        command = [program, *words, f"--log-file={log}", "-vconsole:off", "--monitor", *own]
        subprocess.Popen(command, stdin=subprocess.DEVNULL)


def add_machine(name):
    run("ip", "netns", "add", name)
    run("ip", "-n", name, "link", "set", "lo", "up")


def remove_machine(name):
    """Remove a namespace, after what runs in it."""
    pids = run("ip", "netns", "pids", name, check=False).split()
    run("kill", "-9", *pids, check=False) if pids else None
    run("ip", "netns", "del", name, check=False)


def add_interface(machine, outer, inner, mac="", mtu="", addresses=(), gateway=""):
    """Lay a cable from ``outer`` here to ``inner`` in a machine."""
    run("ip", "link", "add", outer, "type", "veth", "peer", "name", inner, "netns", machine)
    settings = (["address", mac] if mac else []) + (["mtu", mtu] if mtu else [])
    if settings:
        run("ip", "-n", machine, "link", "set", inner, *settings)
    # checksums are left to a card that is not there
    run("ip", "netns", "exec", machine, "ethtool", "-K", inner, "tx", "off")
    run("ip", "link", "set", outer, "up")
    run("ip", "-n", machine, "link", "set", inner, "up")
    for address in addresses:
        run("ip", "-n", machine, "addr", "add", address, "dev", inner, *(["nodad"] if ":" in address else []))
    if gateway:
        run("ip", "-n", machine, "route", "replace", "default", "via", gateway, "dev", inner)


class Machines:
    """The namespaces of Nova's servers, made to agree with what Neutron wrote."""

    def __init__(self, switch):
        self.switch = switch
        self.ports = {}
        """What is plugged: by port, its machine and its settings."""

    def agree(self, wanted):
        for port, settings in self.ports.items():
            if port in wanted and settings | {"mtu": wanted[port]["mtu"]} == wanted[port] != settings:
                self._resize(port, wanted[port])
        for port in [port for port, settings in self.ports.items() if wanted.get(port) != settings]:
            self._remove(port, self.ports.pop(port)["machine"])
        for port, settings in wanted.items():
            if port not in self.ports:
                self._add(port, **settings)
                self.ports[port] = settings
        used = {settings["machine"] for settings in self.ports.values()}
        for name in run("ip", "netns", "list").splitlines():
            machine = name.split()[0]
            if machine not in (*used, OUTSIDE):
                remove_machine(machine)
                say(f"{machine} is gone")

    def _add(self, port, machine, mac, **settings):
        names = [name.split()[0] for name in run("ip", "netns", "list").splitlines()]
        if machine not in names:
            add_machine(machine)
        mine = [each for each in self.ports.values() if each["machine"] == machine]
        add_interface(machine, tap(port), f"eth{len(mine)}", mac, **settings)
        self.switch.plug("br-int", tap(port), iface_id=port, attached_mac=mac)
        say(f"{machine} has {port} {mac} {settings}")

    def _resize(self, port, settings):
        """Give an interface another MTU, as a lease that is renewed does."""
        links = run("ip", "-n", settings["machine"], "-o", "link").splitlines()
        (link,) = [each.split(": ")[1].partition("@")[0] for each in links if settings["mac"] in each]
        run("ip", "-n", settings["machine"], "link", "set", link, "mtu", settings["mtu"])
        self.ports[port] = settings
        say(f"{settings['machine']} has {port} with MTU {settings['mtu']}")

    def _remove(self, port, machine):
        self.switch.unplug("br-int", tap(port))
        run("ip", "link", "del", tap(port), check=False)


def tap(port):
    return f"tap{port[:11]}"


def wanted(database, servers):
    """Return by port what the interfaces of the servers that run shall be, in the order of each server's ports."""
    rows = {row.name: row for row in database.tables["Logical_Switch_Port"].rows.values()}
    found = {}
    for server, ports in servers.items():
        for port, mac in ports.items():
            row = rows.get(port)
            cidrs = tuple(row.external_ids.get("neutron:cidrs", "").split()) if row else ()
            if cidrs:
                options = row.dhcpv4_options[0].options if row.dhcpv4_options else {}
                found[port] = {
                    "machine": server,
                    "mac": mac,
                    "mtu": options.get("mtu", ""),
                    "addresses": cidrs,
                    "gateway": options.get("router", ""),
                }
    return found


def main():
    home, root, *ports = sys.argv[1:]
    home, root = pathlib.Path(home), pathlib.Path(root)
    folder, ovn = home / "run/data-plane", home / "data/neutron/ovn"
    run("mount", "-t", "tmpfs", "none", "/run")  # where ip keeps the names of namespaces
    run("ip", "link", "set", "lo", "up")
    switch = Switch(folder, f"unix:{ovn / 'sb.sock'}")
    switch.start(root)
    add_machine(OUTSIDE)
    add_interface(OUTSIDE, "outside", "eth0", addresses=OUTSIDE_ADDRESSES)
    switch.plug("br-ex", "outside")
    # whoever is outside reaches the services of the cloud as well
    relay = [sys.executable, "-m", "tests.devcloud.server.relay", "inner", folder / "relay.sock", *ports]
    subprocess.Popen(["ip", "netns", "exec", OUTSIDE, *relay], stdin=subprocess.DEVNULL)
    schema = ovs.db.idl.SchemaHelper(str(root / "usr/share/ovn/ovn-nb.ovsschema"))
    for table, columns in TABLES.items():
        schema.register_columns(table, columns)
    database = ovs.db.idl.Idl(f"unix:{ovn / 'nb.sock'}", schema)
    machines, seen = Machines(switch), None
    (folder / "ready").touch()
    say("the data plane runs")
    while True:
        database.run()
        now = (database.change_seqno, machine_files.read(home / "run/servers"))
        if now != seen and database.has_ever_connected():
            seen = now
            machines.agree(wanted(database, now[1]))
        poller = ovs.poller.Poller()
        database.wait(poller)
        poller.timer_wait(POLL_MILLISECONDS)
        poller.block()


if __name__ == "__main__":
    main()
