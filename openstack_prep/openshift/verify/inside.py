"""Links from the port of a virtual address to the machines that answer there.

Source: OpenShift installer docs/source, "What gets created, names and tags", and the platform's
keepalived, which answers for a virtual address with the machine's own MAC address; Networking API
v2.0, "Allowed address pairs" and "Security groups".
"""

from __future__ import annotations

import ipaddress
import shlex
from collections.abc import Iterable, Iterator, Sequence

from openstack_prep.base.raw import Raw
from openstack_prep.openshift.verify.link import Link, broken, ok, unknown
from openstack_prep.openshift.verify.rules import Admission, admission
from openstack_prep.openshift.verify.way import Way, addresses, some
from openstack_prep.resources.lists import installer_names as naming


def pairs(way: Way) -> Iterator[Link]:
    name = "address pairs"
    if way.port is None:
        yield unknown(name, "cannot be told without the port")
        return
    open_ports = [port for port in way.nodes if not port["port_security_enabled"]]
    if open_ports:
        what = f"port security is off on {_names(open_ports)}: Neutron keeps no pairs there"
        yield broken(name, what, _each(f"{way.client} port set --enable-port-security", open_ports))
    guarded = [port for port in way.nodes if port["port_security_enabled"]]
    for address in addresses(way.port):
        lacking = [port for port in guarded if not allows(port, address)]
        if lacking:
            what = f"{address} is not allowed on {_names(lacking)}: nobody answers there for it"
            yield broken(name, what, f"{way.repair} --vip {address}")
        elif guarded:
            yield ok(name, f"{address} is allowed on {_count(guarded, 'port')}")


def groups_of(way: Way) -> Iterator[Link]:
    version = ipaddress.ip_address(addresses(way.port)[0]).version if way.port else 4
    for tcp in way.target.tcp:
        yield from _admitted(way, tcp, version)


def _admitted(way: Way, tcp: int, version: int) -> Iterator[Link]:
    name, what = "security groups", f"TCP {tcp}"
    shut, doubtful, limited = [], [], {}
    for port in way.nodes:
        if not port["port_security_enabled"]:
            continue
        missing = [each for each in port["security_groups"] if each not in (way.scene.groups or {})]
        groups = [group for key, group in (way.scene.groups or {}).items() if key in port["security_groups"]]
        found = admission((rule for group in groups for rule in group["security_group_rules"]), tcp, version)
        if found.everywhere or (way.wanted.source is not None and found.includes(way.wanted.source)):
            continue
        if missing or found.address_groups:
            doubtful.append(port)
        elif found.sources and way.wanted.source is None:
            limited[port["id"]] = found
        else:
            shut.append(port)
    if shut:
        source = str(way.wanted.source or "anywhere")
        yield broken(name, f"{what} from {source} does not reach {_names(shut)}", _rule(way, shut[0], tcp, version))
    if doubtful:
        why = "a group that these credentials may not read, or an address group, decides"
        yield unknown(name, f"{what} to {_names(doubtful)}: {why}")
    if limited:
        yield unknown(
            name, f"{what} comes in only from {_sources(limited.values())}", "are you there? give --from ADDRESS"
        )
    if way.nodes and not (shut or doubtful or limited):
        source = str(way.wanted.source or "anywhere")
        yield ok(name, f"{what} from {source} reaches {_count(way.nodes, 'port')}")


def _rule(way: Way, port: Raw, tcp: int, version: int) -> str:
    groups = way.scene.groups or {}
    own = [each for each in port["security_groups"] if groups.get(each, {}).get("name", "").startswith(way.infra_id)]
    group = (own or port["security_groups"] or ["GROUP"])[0]
    name = groups[group]["name"] if own else group
    words = ["security", "group", "rule", "create", "--ingress", "--ethertype", f"IPv{version}"]
    source = ["--remote-ip", str(way.wanted.source)] if way.wanted.source else []
    return f"{way.client} {shlex.join([*words, '--protocol', 'tcp', '--dst-port', str(tcp), *source, name])}"


def machines(way: Way) -> Iterator[Link]:
    name, servers = "machines", way.scene.servers
    if not way.nodes:
        what = f"no port of a {' or '.join(way.target.roles)} carries the tag {naming.tag(way.infra_id)}"
        yield broken(name, what, way.elsewhere or "wait for them: openshift-install wait-for install-complete")
        return
    found = {port["id"]: (servers or {}).get(port["device_id"]) for port in way.nodes}
    lost = [port for port in way.nodes if servers is not None and found[port["id"]] is None]
    idle = [server for server in found.values() if server and server["status"] != "ACTIVE"]
    running = [port for port in way.nodes if servers is None or (found[port["id"]] or {}).get("status") == "ACTIVE"]
    down = [port for port in running if port["status"] != "ACTIVE"]
    if lost:
        yield broken(name, f"no server of this project has the port {_names(lost)}", f"{way.client} server list")
    if idle:
        what = some(f"{server['name']} is {server['status']}" for server in idle)
        yield broken(name, what, _mend_server(way, idle[0]))
    if down:
        mend = f"look at their servers: {way.client} server list --name " + shlex.quote(f"^{way.infra_id}-")
        yield broken(name, f"{_names(down)} {'is' if len(down) == 1 else 'are'} not ACTIVE", mend)
    if servers is None:
        yield unknown(name, "these credentials may not list servers")
    elif not (down or lost or idle):
        yield ok(name, f"{_count(way.nodes, 'server')} ACTIVE{_stand_in(way)}")


def _stand_in(way: Way) -> str:
    masters = way.target.name == "ingress" and all(way.role(port) == "master" for port in way.nodes)
    return " (the masters: there are no workers)" if masters else ""


def allows(port: Raw, address: str) -> bool:
    """Whether a port may use an address with its own MAC address, as keepalived does."""
    own = port["mac_address"].lower()
    pairs = (pair["ip_address"] for pair in port["allowed_address_pairs"] if pair["mac_address"].lower() == own)
    wanted = ipaddress.ip_address(address)
    return any(wanted in ipaddress.ip_network(each, strict=False) for each in pairs)


def _mend_server(way: Way, server: Raw) -> str:
    verb = "start" if server["status"] == "SHUTOFF" else "show"
    return f"{way.client} server {verb} {server['name']}"


def _sources(found: Iterable[Admission]) -> str:
    return some(sorted({str(source) for each in found for source in each.sources}))


def _names(ports: Iterable[Raw]) -> str:
    return some(port["name"] or port["id"] for port in ports)


def _count(things: Sequence[object], word: str) -> str:
    return f"{len(things)} {word}{'' if len(things) == 1 else 's'}"


def _each(command: str, ports: Sequence[Raw]) -> str:
    return f"{command} {ports[0]['name'] or ports[0]['id']}" + ("; so each" if len(ports) > 1 else "")
