"""Announcement by BGP: a frr.conf per node, or FRRConfiguration objects of frr-k8s.

Sources: FRR 8.4 and 10 (bgpd; RFC 8212: an eBGP neighbour without a policy gets no routes); frr-k8s,
api/v1beta1/frrconfiguration_types.go and internal/controller/api_to_config.go (advertised prefixes must be prefixes of
the router; hold time and keepalive time only together).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence

from openstack_prep.base.errors import ConfigError
from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.base.raw import Values
from openstack_prep.base.secret import HIDDEN, Secret
from openstack_prep.exposures.external_ips.carrying import carried
from openstack_prep.exposures.external_ips.model import ExternalIPBGP, ExternalIPNode, ExternalIPPeer, ExternalIPs
from openstack_prep.exposures.model import Placed
from openstack_prep.kubernetes.balancing.pools import drop_empty

CONFIGURATIONS = "frr-configurations.yaml"
NAME = "external-ips"
HOSTNAME = "kubernetes.io/hostname"
PASSWORD = r"[!-~]{1,80}"  # TCP_MD5SIG_MAXKEYLEN
PASSWORD_FAULT = "contains characters that FRR does not accept, or is too long"
PASSWORD_FIX = "use 1 to 80 visible ASCII characters"


def files(
    settings: ExternalIPs, placed: Sequence[Placed], *, openly: bool = True, only_ready: bool = False
) -> dict[str, str]:
    """Return the files, with passwords as asterisks unless ``openly``.

    ``only_ready``: passwords that do not exist yet are asterisks, too, because who only reads must not generate them.
    Raises ConfigError for one that cannot be read, or that FRR does not accept.
    """
    if settings.bgp is None:
        return {}
    shown = {each.name: _shown(each, openly, only_ready) for each in settings.bgp.peers if each.password}
    held = {node: found for node, found in carried(settings, placed).items() if found}
    if settings.bgp.software == "frr-k8s":
        documents = [*_passwords(settings.bgp, shown), *_configurations(settings.bgp, held)]
        return {CONFIGURATIONS: dump(*documents)} if held else {}
    nodes = {each.name: each for each in settings.nodes}
    return {f"frr-{node}.conf": _frr(settings.bgp, nodes[node], found, shown) for node, found in held.items()}


def prefixes(held: Sequence[str], version: int) -> list[str]:
    """Return the addresses of an IP version as networks."""
    found = [ipaddress.ip_network(each) for each in held]
    return [str(each) for each in found if each.version == version]


def router_id(node: ExternalIPNode) -> str:
    """Return the router ID; an empty text if the node has none."""
    own = [each for each in node.addresses if ipaddress.ip_address(each).version == 4]
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
    for addresses, nodes in groups.items():
        selector = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": nodes}]}
        router = {
            "asn": bgp.my_asn,
            "neighbors": [_neighbor_of_k8s(each, addresses) for each in bgp.peers],
            "prefixes": [each for version in (4, 6) for each in prefixes(addresses, version)],
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
