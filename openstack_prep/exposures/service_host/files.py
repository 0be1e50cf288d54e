"""Files for KubeInit's playbook: extra variables, the inventory's hosts and the command.

Sources: KubeInit 1.0.2 (hosts/okd/inventory; roles/kubeinit_libvirt: defaults/main.yml, templates/ifcfg-eth1.j2, which
wants a dotted netmask, tasks/60_okd_deploy_nodes.yml, which needs ``mac``) and 0.5.4. 2.0.0 removed these variables and
ignores them in silence.

Sources: OpenShift's documentation of user-managed load balancers (HTTPS:6443/readyz, HTTPS:22623/healthz,
HTTP:1936/healthz/ready; two checks, every 10 seconds); HAProxy 2.6, configuration manual.  Certificates are not
verified by the checks: the cluster signs them by itself, and a check learns nothing secret.

Clients inside see the cluster's addresses, and may ask for any name. Clients outside see the exposures' addresses, and
nothing else: neither api-int nor machines, and no answers of other servers. KubeInit 1.0.2 serves api-int outside, and
lets everybody recurse (kubeinit_bind/templates/externals_db.local.j2, named.conf.j2).

Source: BIND 9.18, Administrator Reference Manual (views are tried in their order; recursion, allow-transfer).

Sources: NetworkManager 1.42 (nmcli(1): ``save no`` and ``--temporary`` leave files unchanged until a later ``modify``);
systemd-run(1), systemd.service(5) (ExecStopPost runs however the process ended).
"""

from __future__ import annotations

import ipaddress
import shlex
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.resources import files

from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.dns.zone import DnsRecord, reverse_records, with_next_serial, zone_text
from openstack_prep.exposures.endpoint import PlacedExposure
from openstack_prep.exposures.service_host.settings import (
    ROLES,
    ClusterMachine,
    ExternalInterface,
    KubeInit,
    Role,
    ServiceHost,
    ingress_role,
)

# --- haproxy ----------------------------------------------------------------------------------


API, MACHINE_CONFIG, HTTP, HTTPS, DNS = 6443, 22623, 80, 443, 53
INSIDE = (API, MACHINE_CONFIG, HTTP, HTTPS)
SERVICES = {API: "api", MACHINE_CONFIG: "machine-config", HTTP: "http", HTTPS: "https"}
OPTIONS = "inter 10s fall 2 rise 2"

DEFAULTS = """\
global
    log stdout format raw local0
    user haproxy
    group haproxy
    maxconn 4000

defaults
    mode tcp
    log global
    option tcplog
    option dontlognull
    option log-health-checks
    option redispatch
    retries 3
    timeout connect 10s
    timeout client 1h
    timeout server 1h
    timeout check 10s
"""
"""An hour for idle connections: ``oc logs -f`` and watches are silent for long."""


@dataclass(frozen=True)
class Listener:
    """One port at some addresses, and the machines that answer."""

    name: str
    addresses: tuple[str, ...]
    port: int
    inner: int
    roles: tuple[Role, ...]
    check: str = ""
    """Path of the check by HTTP; empty: a connection suffices."""
    options: str = "check"


def config(settings: ServiceHost, placed: Sequence[PlacedExposure], found: Sequence[ClusterMachine]) -> str:
    """Return the configuration; it never offers machine-config outside, which holds secrets of the nodes."""
    sections = ("\n".join(_section(listener, found)) for listener in listeners(settings, placed))
    return "\n".join([DEFAULTS, *(f"{section}\n" for section in sections)])


def listeners(settings: ServiceHost, placed: Sequence[PlacedExposure]) -> Iterator[Listener]:
    """Yield what HAProxy serves: the exposures' ports; for clients inside, also API, machine-config and ingress."""
    ends: dict[tuple[int, int], list[str]] = {(port, port): [settings.address] for port in INSIDE}
    for exposure in placed:
        for port in exposure.exposure.ports:
            inner = port.node_port or port.inner
            if exposure.address and port.port != DNS and MACHINE_CONFIG not in (port.port, inner):
                ends.setdefault((port.port, inner), [settings.address]).append(exposure.address)
    for (outer, inner), addresses in ends.items():
        yield _listener(settings, tuple(dict.fromkeys(addresses)), outer, inner)


def _listener(settings: ServiceHost, addresses: tuple[str, ...], port: int, inner: int) -> Listener:
    service = SERVICES.get(inner)
    name = f"port-{port}" if service is None else service
    if inner != port:
        name = f"port-{port}-{inner}" if service is None else f"{service}-{port}"
    if inner in (API, MACHINE_CONFIG):
        path = "/readyz" if inner == API else "/healthz"
        return Listener(name, addresses, port, inner, ("bootstrap", "master"), path, "check check-ssl verify none")
    routers, health = (ingress_role(settings),), settings.ingress_health_port
    if service and health:
        return Listener(name, addresses, port, inner, routers, "/healthz/ready", f"check port {health}")
    return Listener(name, addresses, port, inner, routers)


def _section(listener: Listener, found: Sequence[ClusterMachine]) -> Iterator[str]:
    yield f"listen {listener.name}"
    yield from (f"    bind {_end(address, listener.port)}" for address in listener.addresses)
    yield f"    balance {'source' if listener.inner in (HTTP, HTTPS) else 'roundrobin'}"
    if listener.check:
        yield f"    option httpchk GET {listener.check}"
        yield "    http-check expect status 200"
    for machine in found:
        if machine.role in listener.roles:
            backup = " backup" if machine.role == "bootstrap" else ""
            end = _end(machine.address, listener.inner)
            yield f"    server {machine.name} {end} {listener.options} {OPTIONS}{backup}"


def _end(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ipaddress.ip_address(address).version == 6 else f"{address}:{port}"


# --- bind -------------------------------------------------------------------------------------


CONF = "named.conf"
SERVER = "ns"
"""Name of the services machine in its own domain, for both views: the name of the machine is for inside."""
INSIDE_ONLY = ("api-int", SERVER)


def bind_files(
    settings: ServiceHost,
    placed: Sequence[PlacedExposure],
    found: Sequence[ClusterMachine],
    previous: Mapping[str, str],
    today: date,
) -> dict[str, str]:
    """Return named.conf and the zones; zones continue the serials of their ``previous`` texts."""
    zones = dict(_inside(settings, placed, found))
    reverse = [name for name in zones if name.endswith(".arpa.zone")]
    inside = {
        settings.domain: f"{settings.domain}.inside.zone",
        **{name.removesuffix(".zone"): name for name in reverse},
    }
    outside = {settings.domain: f"{settings.domain}.outside.zone"}
    zones[outside[settings.domain]] = _outside(settings, placed)
    texts = {name: with_next_serial(previous.get(name, ""), text, today) for name, text in zones.items()}
    return {CONF: _conf(settings, placed, inside, outside), **texts}


# --- zones --------------------------------------------------------------------------------


def _inside(
    settings: ServiceHost, placed: Sequence[PlacedExposure], found: Sequence[ClusterMachine]
) -> Iterator[tuple[str, str]]:
    """Yield the file and the text of each zone for clients inside."""
    names = {SERVER: settings.address, "api": settings.address, "api-int": settings.address, "*.apps": settings.address}
    names |= {machine.name: machine.address for machine in found}
    names |= {name: settings.address for name, _ in _exposed(settings, placed)}
    records = [DnsRecord.address(name, address) for name, address in names.items()]
    yield f"{settings.domain}.inside.zone", zone_text(settings.domain, f"{SERVER}.{settings.domain}", records)
    pairs = ((machine.address, f"{machine.name}.{settings.domain}") for machine in found)
    for zone, pointers in reverse_records(pairs):
        yield f"{zone}.zone", zone_text(zone, f"{SERVER}.{settings.domain}", pointers)


def _outside(settings: ServiceHost, placed: Sequence[PlacedExposure]) -> str:
    """Return the zone for clients outside."""
    first = next(exposure.outside for exposure in placed if exposure.outside)
    records = dict.fromkeys([(SERVER, first), *_exposed(settings, placed)])
    return zone_text(
        settings.domain,
        f"{SERVER}.{settings.domain}",
        (DnsRecord.address(name, str(address)) for name, address in records),
    )


def _exposed(settings: ServiceHost, placed: Sequence[PlacedExposure]) -> Iterator[tuple[str, str]]:
    """Yield names below the domain and their addresses outside: by the exposures' ports, then those they declare."""
    for exposure in placed:
        if not exposure.outside:
            continue
        ports = {port.port for port in exposure.exposure.ports}
        if API in ports:
            yield "api", exposure.outside
        if ports & {HTTP, HTTPS}:
            yield "*.apps", exposure.outside
        for name in exposure.exposure.names:
            if name == settings.domain:
                yield "@", exposure.outside
            elif name.endswith(f".{settings.domain}"):
                yield name.removesuffix(f".{settings.domain}"), exposure.outside


# --- named.conf ---------------------------------------------------------------------------


def clients_inside(settings: ServiceHost) -> list[str]:
    """Return the networks whose clients are inside."""
    return list(dict.fromkeys([settings.network, *settings.inside]))


def _conf(
    settings: ServiceHost, placed: Sequence[PlacedExposure], inside: Mapping[str, str], outside: Mapping[str, str]
) -> str:
    own = dict.fromkeys(["127.0.0.1", settings.address, *(exposure.address for exposure in placed if exposure.address)])
    listen = {version: [each for each in own if (":" in each) == (version == 6)] for version in (4, 6)}
    forwarders = [f"    forwarders {_list(settings.forwarders)};", "    forward only;"] if settings.forwarders else []
    return "\n".join(
        [
            f"acl inside {_list(['127.0.0.0/8', '::1', *clients_inside(settings)])};",
            "",
            "options {",
            f'    directory "{settings.zone_directory}";',
            f"    listen-on {_list(listen[4])};",
            f"    listen-on-v6 {_list(listen[6] or ['none'])};",
            "    allow-transfer { none; };",
            f"    dnssec-validation {'auto' if settings.dnssec_validation else 'no'};",
            "};",
            "",
            'view "inside" {',
            "    match-clients { inside; };",
            "    recursion yes;",
            "    allow-recursion { inside; };",
            *forwarders,
            *_zones(inside),
            "};",
            "",
            'view "outside" {',
            "    match-clients { any; };",
            "    allow-query { any; };",
            "    allow-query-cache { none; };",
            "    recursion no;",
            "    minimal-responses yes;",
            *_zones(outside),
            "};",
            "",
        ]
    )


def _zones(zones: Mapping[str, str]) -> Iterator[str]:
    for zone, file in zones.items():
        yield f'    zone "{zone}" {{ type primary; file "{file}"; }};'


def _list(entries: Sequence[str]) -> str:
    return f"{{ {' '.join(f'{entry};' for entry in entries)} }}"


# --- bridge -----------------------------------------------------------------------------------


SCRIPT = "bridge.sh"


def bridge_script(external: ExternalInterface) -> str:
    """Return the script for one bridge."""
    values = {"BRIDGE": external.bridge, "NIC": external.nic, "WITHIN": str(external.confirm_within)}
    head = [
        "#!/bin/bash",
        "# Creates a bridge on an interface of this machine with NetworkManager, all changes in one go.",
        "# The address moves along. Without 'confirm', everything is undone. See: bash bridge.sh help",
        "set -euo pipefail",
        *(f"{name}={shlex.quote(value)}" for name, value in values.items()),
    ]
    body = files("openstack_prep.exposures.service_host").joinpath(SCRIPT).read_text("utf-8")
    return "\n".join(head) + "\n" + body


# --- kubeinit ---------------------------------------------------------------------------------


VARIABLES = "kubeinit.yaml"
INVENTORY = "inventory"
COMMAND = "ansible-playbook.sh"


def variables(settings: ServiceHost, address: str, mac: str | None) -> str:
    """Return the extra variables that give the services machine its external interface."""
    external = settings.external
    network = ipaddress.ip_network(f"{address}/{external.prefix_length}", strict=False)
    interface = {
        "attached": external.bridge,
        "dev": external.device,
        "ip": address,
        "gateway": external.gateway,
        "netmask": str(network.netmask),
    }
    return dump(
        {
            "kubeinit_libvirt_external_service_interface_enabled": True,
            "kubeinit_libvirt_external_service_interface": interface | ({"mac": mac} if mac else {}),
        }
    )


def inventory(settings: ServiceHost, found: Iterable[ClusterMachine]) -> str:
    """Return the groups of KubeInit's inventory with their hosts, to replace those of its own file."""
    return "\n".join(_groups(settings, list(found)))


def _groups(settings: ServiceHost, found: list[ClusterMachine]) -> Iterator[str]:
    yield f"# Groups for hosts/{settings.distribution}/inventory; they replace those with the same names."
    for role in ROLES:
        yield f"[{settings.distribution}_{role}_nodes]"
        yield from (_host(settings, machine) for machine in found if machine.role == role)
        yield ""


def _host(settings: ServiceHost, machine: ClusterMachine) -> str:
    """Return the line of a host; KubeInit before 1.0 ignores what follows the MAC address."""
    words = [machine.name, f"ansible_host={machine.address}", *([f"mac={machine.mac}"] if machine.mac else [])]
    if settings.kubeinit:
        port = uuid.uuid5(uuid.NAMESPACE_DNS, f"{machine.name}.{settings.domain}")  # of OVN: stable, and unique
        words += [f"interfaceid={port}", f"target={settings.kubeinit.hypervisor}", "type=virtual"]
    return " ".join(words)


def command(settings: ServiceHost, kubeinit: KubeInit, variables_file: str) -> list[str]:
    """Return the words of the command, to be run in KubeInit's directory ``kubeinit``."""
    distribution = settings.distribution
    inventory_file, playbook = f"./hosts/{distribution}/inventory", f"./playbooks/{distribution}.yml"
    login = ["--user", kubeinit.user, "-i", inventory_file, "--become", "--become-user", "root"]
    return ["ansible-playbook", "-v", *login, "-e", f"@{variables_file}", playbook]


def script(settings: ServiceHost, kubeinit: KubeInit) -> str:
    """Return a script that runs the command with the variables beside the script."""
    *words, extra, playbook = map(shlex.quote, command(settings, kubeinit, VARIABLES))
    assert extra == f"@{VARIABLES}"
    return "\n".join(
        [
            "#!/bin/bash",
            "# Run this in the directory kubeinit of a checkout of KubeInit 1.0.2 or earlier.",
            "set -euo pipefail",
            'here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)',
            f'exec {" ".join(words)} "@$here/{VARIABLES}" {playbook} "$@"',
            "",
        ]
    )
