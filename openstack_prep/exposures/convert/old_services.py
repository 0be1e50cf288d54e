"""A Service as it is: its addresses, IP versions, and the fields that a new one needs.

Annotations and labels are never copied: they may hold secrets (kubectl.kubernetes.io/last-applied-configuration holds
the whole manifest), and server-side apply leaves those of others untouched.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any

from openstack_prep.base.raw import Raw, Values
from openstack_prep.exposures.convert.fields import Fields, usual
from openstack_prep.exposures.convert.model import Families, OldService, families_of
from openstack_prep.kubernetes.model import LABEL, WORD
from openstack_prep.kubernetes.nodes import KEY
from openstack_prep.kubernetes.services import ANNOTATIONS

AUTOMATIC = "external-ip"
"""Annotation with which Mirantis' controller assigns an address (pkg/scheduler/scheduler.go)."""
OPENELB = "lb.kubesphere.io/v1alpha1"
"""Annotation of Services that OpenELB serves (pkg/constant/constant.go)."""
VERSIONS = {"IPv4": 4, "IPv6": 6}
CHOICES = {
    "externalTrafficPolicy": ("Cluster", "Local"),
    "internalTrafficPolicy": ("Cluster", "Local"),
    "sessionAffinity": ("None", "ClientIP"),
    "ipFamilyPolicy": ("SingleStack", "PreferDualStack", "RequireDualStack"),
}
TYPES = ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName")
PROTOCOLS = ("TCP", "UDP", "SCTP")
UNCHANGED = "pass the output of kubectl unchanged"


def service(item: Fields, namespace: str, name: str) -> OldService | None:
    """Return a Service whose addresses are to move; None if it has none."""
    addresses = item.addresses("spec.externalIPs")
    kind = item.text("spec.type") or "ClusterIP"
    if kind not in TYPES:
        item.wrong("spec.type", f"{kind!r} is not a type of a Service", f"write one of {', '.join(TYPES)}")
    ingress = _ingress(item) if kind == "LoadBalancer" else ()
    annotations = item.get("metadata.annotations", dict) or {}
    is_openelb = kind == "LoadBalancer" and annotations.get(OPENELB) == "openelb"
    if is_openelb:
        addresses = tuple(dict.fromkeys((*addresses, *ingress)))
    if not addresses and not item.get("spec.externalIPs", list):
        return None
    cluster_ips = _cluster_ips(item)
    return OldService(
        where=item.where,
        namespace=namespace,
        name=name,
        type=kind,
        addresses=addresses,
        families=_families(item, cluster_ips) or families_of(addresses),
        spec=_spec(item),
        class_name=item.text("spec.loadBalancerClass"),
        balanced=tuple(each for each in ingress if each not in addresses),
        is_headless="None" in cluster_ips,
        keeps_annotation=OPENELB if is_openelb else AUTOMATIC if AUTOMATIC in annotations else "",
    )


def is_balanced(item: Fields) -> bool:
    """Whether any load balancer may take this Service."""
    return item.text("spec.type") == "LoadBalancer" and not item.text("spec.loadBalancerClass")


def of_others(item: Fields) -> tuple[str, ...]:
    """Return the addresses that a Service of type LoadBalancer has or requests."""
    annotations = item.get("metadata.annotations", dict) or {}
    asked = [each for name in ANNOTATIONS for each in str(annotations.get(name) or "").split(",")]
    found = [*_ingress(item), *(usual(each) for each in (*asked, item.text("spec.loadBalancerIP")) if each.strip())]
    return tuple(dict.fromkeys(each for each in found if each))


def _ingress(item: Fields) -> tuple[str, ...]:
    found = [usual(str(each.get("ip") or "")) for each in item.items("status.loadBalancer.ingress", dict)]
    return tuple(each for each in found if each)


def _cluster_ips(item: Fields) -> list[str]:
    return item.items("spec.clusterIPs", str) or [each for each in [item.text("spec.clusterIP")] if each]


def _families(item: Fields, cluster_ips: list[str]) -> Families:
    named = item.items("spec.ipFamilies", str)
    for each in named:
        if each not in VERSIONS:
            item.wrong("spec.ipFamilies", f"{each!r} is not an IP version", "write IPv4 or IPv6")
    if named:
        return tuple(dict.fromkeys(VERSIONS.get(each, 4) for each in named))
    found = [each for each in cluster_ips if each and each != "None"]
    try:
        return tuple(dict.fromkeys(ipaddress.ip_address(each).version for each in found))
    except ValueError:
        item.wrong("spec.clusterIP", f"{', '.join(found)!r} is not an address", UNCHANGED)
        return ()


def _spec(item: Fields) -> Values:
    """Return the fields that decide what answers at the addresses."""
    found: Values = {"selector": _selector(item)}
    ports = [each for index, one in enumerate(item.items("spec.ports", dict)) if (each := _port(item, index, one))]
    found["ports"] = ports
    for name, choices in CHOICES.items():
        value = item.text(f"spec.{name}")
        if value and value not in choices:
            item.wrong(f"spec.{name}", f"{value!r} is not a value of it", f"write one of {', '.join(choices)}")
        elif value:
            found[name] = value
    seconds = item.get("spec.sessionAffinityConfig.clientIP.timeoutSeconds", int)
    if seconds is not None and found.get("sessionAffinity") == "ClientIP":
        found["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": seconds}}
    if item.get("spec.publishNotReadyAddresses", bool):
        found["publishNotReadyAddresses"] = True
    return found


def _selector(item: Fields) -> dict[str, str]:
    found = item.texts("spec.selector")
    for key, value in found.items():
        if not re.fullmatch(KEY, key) or (value and not re.fullmatch(WORD, value)):
            item.wrong("spec.selector", f"{key!r:.80}: {value!r:.80} is not a label", UNCHANGED)
    return found


def _port(item: Fields, index: int, port: Raw) -> Values | None:
    where = f"spec.ports[{index}]"
    number, protocol = port.get("port"), port.get("protocol", "TCP")
    if not _is_port(number):
        item.wrong(f"{where}.port", f"{number!r:.40} is not a port", "write a number from 1 to 65535")
        return None
    if protocol not in PROTOCOLS:
        item.wrong(f"{where}.protocol", f"{protocol!r:.40} is not a protocol", f"write one of {', '.join(PROTOCOLS)}")
        return None
    found: Values = {"port": number, "protocol": protocol}
    for name, (is_number, pattern) in PORT_FIELDS.items():
        value: Any = port.get(name)
        if value in (None, "", 0):
            continue
        if (is_number and _is_port(value)) or (isinstance(value, str) and re.fullmatch(pattern, value)):
            found[name] = value
        else:
            item.wrong(f"{where}.{name}", f"{value!r:.40} is not valid", UNCHANGED)
    return dict(sorted(found.items(), key=lambda each: ORDER.index(each[0])))


PORT_FIELDS = {
    "name": (False, LABEL),
    "targetPort": (True, LABEL),
    "nodePort": (True, "(?!)"),
    "appProtocol": (False, KEY),
}
"""Whether each field may be a port number, and the pattern of its texts."""
ORDER = ("name", "protocol", "port", "targetPort", "nodePort", "appProtocol")


def _is_port(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 65535
