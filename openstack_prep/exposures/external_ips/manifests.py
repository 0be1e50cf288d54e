"""Services with externalIPs: whole ones if their pods are known, otherwise commands that patch existing ones.

Source: Kubernetes API, Service v1; a merge patch replaces the list of externalIPs as a whole.

Sources: FRR 8.4 and 10 (bgpd; RFC 8212: an eBGP neighbour without a policy gets no routes); frr-k8s,
api/v1beta1/frrconfiguration_types.go and internal/controller/api_to_config.go (advertised prefixes must be prefixes of
the router; hold time and keepalive time only together).

Sources: iproute2 (ip-address(8): replace); systemd.network(5) (drop-ins); netplan's reference (files are merged by the
name of the interface; dummy-devices since 1.0); nmstate, rust/src/lib (the list of addresses of an interface replaces
all others, so only an interface of its own can be declared).
"""

from __future__ import annotations

import ipaddress
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

from openstack_prep.base.errors import ConfigError
from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.base.raw import Values
from openstack_prep.base.secret import HIDDEN, Secret
from openstack_prep.exposures.endpoint import ExposedPort, PlacedExposure
from openstack_prep.exposures.external_ips.settings import (
    ExternalIPBGP,
    ExternalIPNode,
    ExternalIPPeer,
    ExternalIPs,
    addresses,
    carried,
    chosen,
    hops,
)
from openstack_prep.kubernetes.service_pools import drop_empty

# --- announcement -----------------------------------------------------------------------------


CONFIGURATIONS = "frr-configurations.yaml"
NAME = "external-ips"
HOSTNAME = "kubernetes.io/hostname"
PASSWORD = r"[!-~]{1,80}"  # TCP_MD5SIG_MAXKEYLEN
PASSWORD_FAULT = "contains characters that FRR does not accept, or is too long"
PASSWORD_FIX = "use 1 to 80 visible ASCII characters"


def announcement_files(
    settings: ExternalIPs, placed: Sequence[PlacedExposure], *, openly: bool = True, only_ready: bool = False
) -> dict[str, str]:
    """Return the files, with passwords as asterisks unless ``openly``.

    ``only_ready``: passwords that do not exist yet are asterisks, too, because who only reads must not generate them.
    Raises ConfigError for one that cannot be read, or that FRR does not accept.
    """
    if settings.bgp is None:
        return {}
    shown = {peer.name: _shown(peer, openly, only_ready) for peer in settings.bgp.peers if peer.password}
    held = {node: found for node, found in carried(settings, placed).items() if found}
    if settings.bgp.software == "frr-k8s":
        documents = [*_passwords(settings.bgp, shown), *_configurations(settings.bgp, held)]
        return {CONFIGURATIONS: dump(*documents)} if held else {}
    nodes = {node.name: node for node in settings.nodes}
    return {f"frr-{node}.conf": _frr(settings.bgp, nodes[node], found, shown) for node, found in held.items()}


def prefixes(held: Sequence[str], version: int) -> list[str]:
    """Return the addresses of an IP version as networks."""
    found = [ipaddress.ip_network(each) for each in held]
    return [str(each) for each in found if each.version == version]


def router_id(node: ExternalIPNode) -> str:
    """Return the router ID; an empty text if the node has none."""
    own = [address for address in node.addresses if ipaddress.ip_address(address).version == 4]
    return node.router_id or next(iter(own), "")


def _version(peer: ExternalIPPeer) -> int:
    return ipaddress.ip_address(peer.peer_address).version


def _keepalive(peer: ExternalIPPeer) -> int:
    return max((peer.hold_time or 0) // 3, 1)


def _shown(peer: ExternalIPPeer, openly: bool, only_ready: bool) -> str:
    password = peer.password
    if password is None or not openly or (only_ready and not password.ready):
        return HIDDEN
    if not is_accepted(password):  # it may have come into being after the checks
        raise ConfigError(f"external_ips.bgp: password of peer {peer.name} {PASSWORD_FAULT}; {PASSWORD_FIX}")
    return password.reveal()


def is_accepted(password: Secret) -> bool:
    """Whether FRR accepts a password; this reveals it."""
    return re.fullmatch(PASSWORD, password.reveal()) is not None


# --- FRR ----------------------------------------------------------------------------------


def _frr(bgp: ExternalIPBGP, node: ExternalIPNode, held: Sequence[str], shown: Mapping[str, str]) -> str:
    lines = [f"# /etc/frr/frr.conf of {node.name}; bgpd=yes in /etc/frr/daemons. Check it: vtysh -C -f FILE"]
    lines += ["frr defaults traditional", f"hostname {node.name}", "log syslog informational", "!"]
    versions = [each for each in (4, 6) if prefixes(held, each)]
    for version in versions:
        program = "ip" if version == 4 else "ipv6"
        for number, prefix in enumerate(prefixes(held, version), 1):
            lines.append(f"{program} prefix-list {NAME}-v{version} seq {5 * number} permit {prefix}")
        lines += ["!", f"route-map {NAME}-v{version} permit 10"]
        lines += [f" match {program} address prefix-list {NAME}-v{version}", "exit", "!"]
    lines += ["route-map none deny 10", "exit", "!", f"router bgp {bgp.my_asn}"]
    lines += [f" bgp router-id {router_id(node)}", " no bgp default ipv4-unicast"]
    lines.append(" bgp network import-check")  # announced only while the node has the address
    for peer in bgp.peers:
        lines += [f" {each}" for each in _neighbor(peer, shown)]
    for version in versions:
        lines += ["", f" address-family ipv{version} unicast"]
        lines += [f"  network {each}" for each in prefixes(held, version)]
        for peer in (each for each in bgp.peers if _version(each) == version):
            lines += [f"  neighbor {peer.peer_address} activate"]
            lines += [f"  neighbor {peer.peer_address} route-map {NAME}-v{version} out"]
            lines += [f"  neighbor {peer.peer_address} route-map none in"]
        lines.append(" exit-address-family")
    return "\n".join([*lines, "exit", "!"]) + "\n"


def _neighbor(peer: ExternalIPPeer, shown: Mapping[str, str]) -> Iterator[str]:
    start = f"neighbor {peer.peer_address}"
    yield f"{start} remote-as {peer.peer_asn}"
    yield f"{start} description {peer.name}"
    if peer.password:
        yield f"{start} password {shown[peer.name]}"
    if peer.ebgp_multi_hop:
        yield f"{start} ebgp-multihop"
    if peer.hold_time:
        yield f"{start} timers {_keepalive(peer)} {peer.hold_time}"


# --- frr-k8s ------------------------------------------------------------------------------


def _passwords(bgp: ExternalIPBGP, shown: Mapping[str, str]) -> Iterator[Values]:
    for peer in bgp.peers:
        if peer.password:
            metadata = {"name": f"{NAME}-{peer.name}", "namespace": bgp.namespace}
            data = {"password": shown[peer.name]}
            yield {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": metadata,
                "type": "kubernetes.io/basic-auth",
                "stringData": data,
            }


def _configurations(bgp: ExternalIPBGP, held: dict[str, list[str]]) -> Iterator[Values]:
    """Yield an object for all nodes that carry the same addresses."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for node, found in held.items():
        groups.setdefault(tuple(found), []).append(node)
    for of_nodes, nodes in groups.items():
        selector = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": nodes}]}
        router = {
            "asn": bgp.my_asn,
            "neighbors": [_neighbor_of_k8s(peer, of_nodes) for peer in bgp.peers],
            "prefixes": [each for version in (4, 6) for each in prefixes(of_nodes, version)],
        }
        name = NAME if len(groups) == 1 else f"{NAME}-{nodes[0]}"
        yield {
            "apiVersion": "frrk8s.metallb.io/v1beta1",
            "kind": "FRRConfiguration",
            "metadata": {"name": name, "namespace": bgp.namespace},
            "spec": {"bgp": {"routers": [router]}, "nodeSelector": selector},
        }


def _neighbor_of_k8s(peer: ExternalIPPeer, held: Sequence[str]) -> Values:
    found = {
        "asn": peer.peer_asn,
        "address": peer.peer_address,
        "ebgpMultiHop": peer.ebgp_multi_hop or None,
        "holdTime": f"{peer.hold_time}s" if peer.hold_time else None,
        "keepaliveTime": f"{_keepalive(peer)}s" if peer.hold_time else None,
        "passwordSecret": {"name": f"{NAME}-{peer.name}"} if peer.password else None,
    }
    allowed = prefixes(held, _version(peer))
    return drop_empty(found) | (
        {"toAdvertise": {"allowed": {"mode": "filtered", "prefixes": allowed}}} if allowed else {}
    )


# --- interface --------------------------------------------------------------------------------


ROUTES = "routes.sh"


def interface_files(settings: ExternalIPs, placed: Sequence[PlacedExposure]) -> dict[str, str]:
    """Return the files of all nodes that carry addresses, and the script for the router."""
    builders = {"script": _script, "networkd": _networkd, "netplan": _netplan, "nmstate": _nmstate}
    texts: dict[str, str] = {}
    for node, held in carried(settings, placed).items():
        if held:
            for ending, text in builders[settings.configuration](
                settings, node, [_with_mask(settings, a) for a in held]
            ):
                texts[f"addresses-{node}{ending}"] = text
    if settings.static_routes and addresses(placed):
        texts[ROUTES] = _routes(settings, placed)
    return texts


def _with_mask(settings: ExternalIPs, address: str) -> str:
    return f"{address}/{settings.mask if ipaddress.ip_address(address).version == 4 else settings.mask_v6}"


def _script(settings: ExternalIPs, node: str, held: Sequence[str]) -> Iterator[tuple[str, str]]:
    up = ['ip address replace "$address" dev "$interface"']
    if not settings.is_routed:  # others may still have the MAC address of the node before
        up += [
            'case "$address" in',
            "*:*) ;;",
            "*)",
            "    if command -v arping >/dev/null; then",
            '        arping -q -U -c 3 -I "$interface" "${address%/*}" || true',
            "    fi",
            "    ;;",
            "esac",
        ]
    first = []
    if settings.create_interface:
        first = ['ip link show dev "$interface" >/dev/null 2>&1 || ip link add "$interface" type dummy']
        first += ['ip link set "$interface" up']
    down = ['ip address delete "$address" dev "$interface" 2>/dev/null || true']
    lines = [
        "#!/bin/sh",
        f"# External addresses of node {node}, until its next start: sh addresses-{node}.sh up, or down",
        "set -eu",
        f"interface={shlex.quote(settings.interface)}",
        f"addresses={shlex.quote(' '.join(held))}",
        'case "${1-}" in',
        "up)",
        *(f"    {each}" for each in first),
        "    for address in $addresses; do",
        *(f"        {each}" for each in up),
        "    done",
        "    ;;",
        "down)",
        "    for address in $addresses; do",
        *(f"        {each}" for each in down),
        "    done",
        "    ;;",
        "*)",
        f'    echo "usage: sh addresses-{node}.sh up | down" >&2',
        "    exit 2",
        "    ;;",
        "esac",
    ]
    yield ".sh", "\n".join(lines) + "\n"


def _networkd(settings: ExternalIPs, node: str, held: Sequence[str]) -> Iterator[tuple[str, str]]:
    lines = [f"Address={each}" for each in held]
    if not settings.create_interface:
        where = (
            f"/etc/systemd/network/NAME.network.d/external-ips.conf, where NAME.network configures {settings.interface}"
        )
        yield ".conf", "\n".join([f"# {where}; then run networkctl reload", "[Network]", *lines]) + "\n"
        return
    folder = "/etc/systemd/network/90-external-ips"
    yield ".netdev", f"# {folder}.netdev\n[NetDev]\nName={settings.interface}\nKind=dummy\n"
    text = [f"# {folder}.network", "[Match]", f"Name={settings.interface}", "", "[Network]", "LinkLocalAddressing=no"]
    yield ".network", "\n".join([*text, *lines]) + "\n"


def _netplan(settings: ExternalIPs, node: str, held: Sequence[str]) -> Iterator[tuple[str, str]]:
    kind = "dummy-devices" if settings.create_interface else "ethernets"
    data = {"network": {"version": 2, kind: {settings.interface: {"addresses": list(held)}}}}
    yield ".yaml", f"# /etc/netplan/90-external-ips.yaml; then run netplan apply\n{dump(data)}"


def _nmstate(settings: ExternalIPs, node: str, held: Sequence[str]) -> Iterator[tuple[str, str]]:
    interface: dict[str, object] = {"name": settings.interface, "type": "dummy", "state": "up"}
    for version in (4, 6):
        found = [each.split("/") for each in held if ipaddress.ip_interface(each).version == version]
        if found:
            listed = [{"ip": address, "prefix-length": int(length)} for address, length in found]
            interface[f"ipv{version}"] = {"enabled": True, "address": listed}
    yield ".nmstate.yaml", f"# nmstatectl apply addresses-{node}.nmstate.yaml\n{dump({'interfaces': [interface]})}"


def _routes(settings: ExternalIPs, placed: Sequence[PlacedExposure]) -> str:
    """Return the script for a Linux router."""
    lines = ["#!/bin/sh", f"# Routes to the external addresses, on the router: sh {ROUTES} up, or down", "set -eu"]
    up, down = [], []
    for each in hops(settings, placed):
        program = "ip -6 route" if ":" in each.address else "ip route"
        via = " ".join(f"nexthop via {hop}" for hop in each.next_hops)
        if len(each.next_hops) == 1:
            via = f"via {each.next_hops[0]}"
        up.append(f"    {program} replace {each.destination} {via}")
        down.append(f"    {program} delete {each.destination} 2>/dev/null || true")
    usage = [f'    echo "usage: sh {ROUTES} up | down" >&2', "    exit 2"]
    body = ['case "${1-}" in', "up)", *up, "    ;;", "down)", *down, "    ;;", "*)", *usage, "    ;;", "esac"]
    return "\n".join([*lines, *body]) + "\n"


# --- service ----------------------------------------------------------------------------------


SERVICES, PATCHES = "external-ip-services.yaml", "patch-external-ips.sh"
HEAD = """\
#!/bin/sh
# Adds external addresses to existing Services: sh {name}
# A Service that has other external addresses is refused, because a patch replaces all of them.
set -eu

check() {{
    found=$(kubectl -n "$1" get service "$2" -o 'jsonpath={{.spec.externalIPs[*]}}')
    for address in $found; do
        case " $3 " in
        *" $address "*) ;;
        *)
            echo "Service $1/$2 also has the external address $address; declare an exposure for it, or remove it" >&2
            exit 1
            ;;
        esac
    done
}}

"""


def files(placed: Sequence[PlacedExposure]) -> dict[str, str]:
    """Return the manifests and the script, each only if it is needed."""
    rendered: list[list[PlacedExposure]] = []
    patched: list[list[PlacedExposure]] = []
    for found in of_service(placed).values():
        (rendered if any(exposure.exposure.target.selector for exposure in found) else patched).append(found)
    texts = {}
    if rendered:
        texts[SERVICES] = dump(*map(_manifest, rendered))
    if patched:
        lines = [_check(each) for each in patched] + [patch(each) for each in patched]
        texts[PATCHES] = HEAD.format(name=PATCHES) + "\n".join(lines) + "\n"
    return texts


def of_service(placed: Iterable[PlacedExposure]) -> Mapping[str, list[PlacedExposure]]:
    """Return the exposures of each Service, by namespace/name."""
    found: dict[str, list[PlacedExposure]] = {}
    for exposure in chosen(placed):
        found.setdefault(exposure.exposure.target.service or "", []).append(exposure)
    return found


def _manifest(placed: Sequence[PlacedExposure]) -> Values:
    target = placed[0].exposure.target
    ports = placed[0].exposure.ports
    selector = next(
        (exposure.exposure.target.selector for exposure in placed if exposure.exposure.target.selector), None
    )
    held = addresses(placed)
    spec: Values = {
        "type": "NodePort" if any(port.node_port for port in ports) else "ClusterIP",
        "selector": dict(selector or {}),
        "ports": [_port(port) for port in ports],
        **_families(held),
        "externalIPs": held,
    }
    metadata = {"name": target.object_name, "namespace": target.namespace}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def _port(port: ExposedPort) -> Values:
    found: Values = {"name": f"{port.protocol}-{port.port}", "protocol": port.protocol.upper(), "port": port.port}
    found |= {"targetPort": port.inner}
    return found | ({"nodePort": port.node_port} if port.node_port else {})


def _families(held: Sequence[str]) -> Values:
    """Return the IP versions of the Service: kube-proxy only serves external addresses of these."""
    versions = sorted({ipaddress.ip_address(each).version for each in held})
    if len(versions) == 2:
        return {"ipFamilyPolicy": "RequireDualStack"}
    return {"ipFamilies": ["IPv6"]} if versions == [6] else {}


def _words(placed: Sequence[PlacedExposure]) -> list[str]:
    target = placed[0].exposure.target
    return [shlex.quote(each) for each in (target.namespace, target.object_name)]


def _check(placed: Sequence[PlacedExposure]) -> str:
    return " ".join(["check", *_words(placed), shlex.quote(" ".join(addresses(placed)))])


def patch(placed: Sequence[PlacedExposure], kubectl: str = "kubectl") -> str:
    """Return the command that gives an existing Service the addresses of its exposures, instead of all others."""
    namespace, name = _words(placed)
    change = json.dumps({"spec": {"externalIPs": addresses(placed)}})
    return f"{kubectl} -n {namespace} patch service {name} --type merge -p {shlex.quote(change)}"
