"""The bridge script with a real NetworkManager, which manages one end of a pair of virtual Ethernet interfaces.

systemd-run is a script here, for a namespace has no systemd: it starts a session of its own, and runs ExecStopPost.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from openstack_prep.exposures.service_host.files import bridge_script
from tests.external.conftest import Programs
from tests.unit.exposures.service_host.declared import EXTERNAL

STATIC = """
nmcli connection add type ethernet ifname eno1 con-name 'System eno1' ipv4.method manual ipv4.addresses 192.0.2.10/24 \
    ipv4.gateway 192.0.2.1 ipv4.dns 192.0.2.53 ipv4.routes '198.51.100.0/24 192.0.2.2 5, 203.0.113.0/24 192.0.2.3' \
    ipv6.method manual ipv6.addresses 2001:db8::10/64 connection.zone work 802-3-ethernet.mtu 1400 >/dev/null
"""
DHCP = """
ip address add 192.0.2.1/24 dev far
serve() {
    dnsmasq --no-daemon --no-resolv --port=0 --interface=far --bind-interfaces --dhcp-range=192.0.2.20,192.0.2.99 \
        --dhcp-leasefile=/run/leases --conf-file=/dev/null >>/run/dnsmasq.log 2>&1 & dnsmasq=$!
}
serve
own() { ip -4 -o address show "$1" | awk '{print $4}'; }
nmcli connection add type ethernet ifname eno1 con-name 'System eno1' ipv4.method auto ipv6.method disabled >/dev/null
"""
NEEDED = ("NetworkManager", "nmcli", "dbus-daemon", "setsid", "flock", "awk")

WORLD = r"""
mount -t sysfs -o ro sys /sys  # tells NetworkManager that there is no udev
mount -t tmpfs none /var/lib
mkdir -p /run/dbus /var/lib/NetworkManager /run/NetworkManager /run/nm/conf.d /run/nm/saved /run/bin
chmod 700 /var/lib/NetworkManager
cat >/run/bus.conf <<'END'
<busconfig><type>system</type><listen>unix:path=/run/dbus/system_bus_socket</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_type="method_call"/>
<allow send_destination="*"/><allow receive_sender="*"/></policy></busconfig>
END
printf '%s\n' [main] plugins=keyfile auth-polkit=false dns=none rc-manager=unmanaged 'no-auto-default=*' \
    [keyfile] path=/run/nm/saved unmanaged-devices=interface-name:far >/run/nm/NetworkManager.conf
cat >/run/bin/systemd-run <<'END'
#!/bin/bash
while [[ $1 == --* ]]; do [[ $1 != --property=ExecStopPost=* ]] || post=${1#*ExecStopPost=}; shift; done
setsid bash -c '"$@"; '"$post" - "$@" >>/run/unit.log 2>&1 </dev/null &
END
chmod +x /run/bin/systemd-run
export PATH=/run/bin:$PATH
dbus-daemon --config-file=/run/bus.conf --fork
ip link add eno1 type veth peer name far
ip link set far up
manager() {
    NetworkManager --no-daemon --config /run/nm/NetworkManager.conf --config-dir /run/nm/conf.d \
        --system-config-dir /run/nm/conf.d --intern-config /run/nm/intern.conf --state-file /run/nm/state \
        --pid-file /run/nm/pid >>/run/nm.log 2>&1 & manager=$!
    until_it nmcli general status
}
manager
bridge() { local code=0; bash /run/bridge.sh "$@" </dev/null >/run/out 2>&1 || code=$?; echo "$1 $code"; }
content() { grep -v ^timestamp= '/run/nm/saved/System eno1.nmconnection'; }
see() {
    echo "eno1 $(ip -4 -o address show eno1 | awk '{print $4}')"
    echo "kiextbr0 $(ip -4 -o address show kiextbr0 2>/dev/null | awk '{print $4}')"
    echo "default $(ip route show default | awk '{print $5}') routes $(ip route | grep -c via)"
    echo "saved $(ls /run/nm/saved | tr '\n' ' ')"
}
"""
ON_NIC = ["eno1 192.0.2.10/24", "kiextbr0", "default eno1 routes 3", "saved System eno1.nmconnection"]
ON_BRIDGE = ["eno1", "kiextbr0 192.0.2.10/24", "default kiextbr0 routes 3"]
ALL_SAVED = (
    "saved System eno1.nmconnection openstack-prep-kiextbr0-port.nmconnection openstack-prep-kiextbr0.nmconnection"
)


def run(programs: Programs, tmp_path: Path, setup: str, steps: str, seconds: int = 120) -> list[str]:
    (tmp_path / "bridge.sh").write_text(bridge_script(replace(EXTERNAL, confirm_within=seconds)))
    start = f"cp {tmp_path}/bridge.sh /run/\n{setup}\nnmcli connection up 'System eno1' >/dev/null\n"
    return [line.strip() for line in programs.inside(WORLD + start + steps, *NEEDED).splitlines()]


def test_apply_confirm_undo(programs: Programs, tmp_path: Path) -> None:
    steps = """
before=$(content)
bridge apply; see
bridge apply --yes; see; bridge status; bridge apply
bridge confirm; see; bridge status; bridge apply; bridge confirm
nmcli --get-values connection.zone,802-3-ethernet.mtu,bridge.stp connection show openstack-prep-kiextbr0
bridge undo; bridge undo --yes; see; bridge status; bridge undo
diff <(echo "$before") <(content)
"""
    printed = run(programs, tmp_path, STATIC, steps)
    refused = ["apply 2", *ON_NIC]  # one interface, and nobody to ask
    pending = ["apply 0", *ON_BRIDGE, "saved System eno1.nmconnection", "status 3", "apply 0"]
    kept = ["confirm 0", *ON_BRIDGE, ALL_SAVED, "status 0", "apply 0", "confirm 0", "work", "1400", "no"]
    undone = ["undo 2", "undo 0", *ON_NIC, "status 1", "undo 0"]
    assert printed == [*refused, *pending, *kept, *undone]


def test_what_nobody_confirms_is_undone(programs: Programs, tmp_path: Path) -> None:
    steps = """
before=$(content)
bridge apply --yes; see
sleep 8
bridge status; see; bridge confirm
diff <(echo "$before") <(content)
bridge apply --yes; bridge undo; see
"""
    printed = run(programs, tmp_path, STATIC, steps, seconds=5)
    pending = ["apply 0", *ON_BRIDGE, "saved System eno1.nmconnection"]
    assert printed == [*pending, "status 1", *ON_NIC, "confirm 1", "apply 0", "undo 0", *ON_NIC]


def test_a_killed_process_is_undone(programs: Programs, tmp_path: Path) -> None:
    steps = """
bridge apply --yes
kill -KILL $(pgrep -f '^/bin/bash /run/openstack-prep/kiextbr0/bridge.sh change')
until_it bash -c '! bash /run/bridge.sh status | grep waiting'
see
"""
    assert run(programs, tmp_path, STATIC, steps) == ["apply 0", *ON_NIC]


def test_a_reboot_before_confirmation_undoes_everything(programs: Programs, tmp_path: Path) -> None:
    steps = """
bridge apply --yes
{ kill -KILL $(pgrep -f kiextbr0/bridge.sh) $manager; wait $manager; } 2>/dev/null || true
rm -r /run/openstack-prep /run/NetworkManager/system-connections
ip link delete kiextbr0; ip address flush dev eno1
manager
until_it bash -c 'ip -4 address show eno1 | grep -q 192.0.2.10'
see; bridge status
"""
    assert run(programs, tmp_path, STATIC, steps) == ["apply 0", *ON_NIC, "status 1"]


def test_an_address_of_dhcp_remains_the_same(programs: Programs, tmp_path: Path) -> None:
    programs.path("dnsmasq")
    steps = """
first=$(own eno1)
bridge apply --yes
[[ -n $first && $first == "$(own kiextbr0)" ]] || echo "$first became $(own kiextbr0)"
bridge confirm; bridge undo --yes
[[ $first == "$(own eno1)" ]] || echo "$first became $(own eno1)"
"""
    assert run(programs, tmp_path, DHCP, steps) == ["apply 0", "confirm 0", "undo 0"]


def test_a_bridge_that_gets_no_address_is_undone(programs: Programs, tmp_path: Path) -> None:
    steps = """
sed -i 's/SECONDS + 60/SECONDS + 6/' /run/bridge.sh
nmcli connection modify 'System eno1' ipv4.dhcp-timeout 3 ipv4.may-fail no
first=$(own eno1)
kill $dnsmasq
{ sleep 10; serve; } &
bridge apply --yes; tail -n 1 /run/out
[[ -n $first && $first == "$(own eno1)" ]] || echo "$first became $(own eno1)"
nmcli --get-values NAME connection show | grep openstack-prep || true
"""
    printed = run(programs, tmp_path, DHCP, steps)
    assert printed == ["apply 1", "undone: kiextbr0 got no address within 60 seconds"]


@pytest.mark.parametrize(
    ("setup", "wrong"),
    [
        ("ip link add kiextbr0 type bridge", "interface kiextbr0 exists and is not managed by this script"),
        ("sed -i s/eno1/eno9/ /run/bridge.sh", "interface eno9 does not exist"),
        ("ip link add other type bridge; ip link set eno1 master other", "belongs to another interface"),
        (
            "nmcli connection add type dummy ifname d0 save no con-name openstack-prep-kiextbr0 >/run/out",
            "connection openstack-prep-kiextbr0 exists",
        ),
    ],
)
def test_what_cannot_work_is_refused(programs: Programs, tmp_path: Path, setup: str, wrong: str) -> None:
    printed = run(programs, tmp_path, STATIC, f"{setup}\nbridge apply --yes; cat /run/out\nls /run/nm/saved")
    assert printed[0] == "apply 2"
    assert wrong in printed[1]
    assert printed[2:] == ["System eno1.nmconnection"]
