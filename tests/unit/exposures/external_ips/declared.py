"""Settings of each form, and exposures, for tests here and by FRR itself."""

from __future__ import annotations

from typing import Any

from openstack_prep.base.secret import Secret
from openstack_prep.exposures.endpoint import Exposed, ExposedPort, ExposureTarget, PlacedExposure
from openstack_prep.exposures.external_ips import ExternalIPBGP, ExternalIPNode, ExternalIPPeer, ExternalIPs

NODES = tuple(
    ExternalIPNode(name=f"k8s{number}", addresses=(f"192.168.200.2{number}", f"2001:db8:200::2{number}"))
    for number in (5, 6, 9)
)
TOR = ExternalIPPeer(name="tor1", peer_asn=64513, peer_address="192.168.200.1", password=Secret("hush"), hold_time=90)
TOR6 = ExternalIPPeer(name="tor1-v6", peer_asn=64513, peer_address="2001:db8:200::1", ebgp_multi_hop=True)
BGP = ExternalIPBGP(my_asn=64512, peers=(TOR, TOR6))
PLAIN = ExternalIPs(nodes=NODES, interface="eth0")


def placed(name: str, address: str | None, service: str = "shop/frontend", **more: Any) -> PlacedExposure:
    target = ExposureTarget(service=service, selector=more.pop("selector", None))
    ports = more.pop("ports", (ExposedPort(port=443, target=8443),))
    exposure = Exposed(name=name, cluster="c", target=target, ports=ports, how=more.pop("how", "external-ip"), **more)
    return PlacedExposure(exposure=exposure, address=address)


ALL = [
    placed("front", "200.1.1.1", selector={"app": "y"}, floating_ip="shop"),
    placed("front-v6", "2001:db8:1::1", selector={"app": "y"}),
    placed("dns", "200.1.1.2", "on/dns", ports=(ExposedPort(port=53, protocol="udp"),)),
    placed("other", "200.1.1.9", how="metallb"),
    placed("later", None),
]
FORMS = {
    "script": PLAIN,
    "script-dummy": ExternalIPs(
        nodes=NODES, interface="vips", create_interface=True, static_routes=True, carriers="all"
    ),
    "networkd": ExternalIPs(nodes=NODES, interface="eth0", configuration="networkd", mask=24, mask_v6=64),
    "networkd-dummy": ExternalIPs(nodes=NODES, interface="vips", configuration="networkd", create_interface=True),
    "netplan": ExternalIPs(nodes=NODES, interface="eth0", configuration="netplan"),
    "nmstate": ExternalIPs(nodes=NODES, interface="vips", configuration="nmstate", create_interface=True),
    "frr": ExternalIPs(nodes=NODES, interface="lo", bgp=BGP, carriers="all"),
    "frr-k8s": ExternalIPs(
        nodes=NODES, interface="lo", bgp=ExternalIPBGP(my_asn=64512, peers=(TOR, TOR6), software="frr-k8s")
    ),
}
