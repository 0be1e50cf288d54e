"""Reads the options of the new load balancer: releases, announcement, routers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.fields import is_address
from openstack_prep.exposures.convert.model import Peer, To, Wanted
from openstack_prep.exposures.convert.old_pools import WORD
from openstack_prep.exposures.model import HOST

DEFAULTS: dict[To, str] = {"metallb": "0.16.1", "cilium": "1.19", "kube-vip": "1.2.3"}
"""The releases whose sources were read."""
OLDEST: dict[To, tuple[int, int]] = {"metallb": (0, 13), "cilium": (1, 13), "kube-vip": (0, 6)}
"""MetalLB 0.13 has IPAddressPool and loadBalancerIPs; kube-vip 0.6 reads kube-vip.io/loadbalancerIPs."""
RELEASE = r"v?(\d{1,4})\.(\d{1,4})(\.\d{1,6})?"
MOST_ASN = 2**32 - 1
CILIUM_CLASSES = {"l2": "io.cilium/l2-announcer", "bgp": "io.cilium/bgp-control-plane"}
"""Source: Cilium, Documentation/network/lb-ipam.rst and the CRDs of announcements."""


def wanted(
    to: To,
    *,
    release: str | None = None,
    announce: str | None = None,
    interfaces: Sequence[str] = (),
    my_asn: str | None = None,
    peers: Sequence[str] = (),
    class_name: str | None = None,
) -> Wanted:
    """Return the options; raises SpecError with all mistakes."""
    found = [*_release(to, release), *_announcement(to, announce, interfaces, my_asn, peers)]
    found += [*_values(interfaces, my_asn, peers, class_name), *_class(to, announce, class_name)]
    if found:
        raise SpecError(found)
    return Wanted(
        to=to,
        release=(release or DEFAULTS[to]).removeprefix("v"),
        announce="bgp" if announce == "bgp" else "l2",
        interfaces=tuple(interfaces),
        my_asn=int(my_asn) if my_asn else None,
        peers=tuple(Peer(each.partition("=")[0], int(each.partition("=")[2])) for each in peers),
        class_name=class_name or "",
    )


def _release(to: To, release: str | None) -> Iterator[Mistake]:
    if release is None:
        return
    found = re.fullmatch(RELEASE, release)
    if not found:
        yield Mistake(f"--release {release}", "is not a release", f"write one such as {DEFAULTS[to]}")
    elif (int(found[1]), int(found[2])) < OLDEST[to]:
        oldest = ".".join(map(str, OLDEST[to]))
        yield Mistake(f"--release {release}", f"{to} {release} is not supported", f"write {oldest} or later")


def newer_than_known(to: To, release: str | None) -> str:
    """Return a warning if a release is newer than those whose sources were read; empty if it is not."""
    found = re.fullmatch(RELEASE, release or "")
    known = re.fullmatch(RELEASE, DEFAULTS[to])
    assert known is not None
    if found is None or (int(found[1]), int(found[2])) <= (int(known[1]), int(known[2])):
        return ""
    what = f"--release {release}: {to} is known up to {DEFAULTS[to]}, and what is rendered is for that release"
    return f"{what}; compare the release notes of {to}, or write --release {shlex.quote(DEFAULTS[to])}"


def _announcement(
    to: To, announce: str | None, interfaces: Sequence[str], my_asn: str | None, peers: Sequence[str]
) -> Iterator[Mistake]:
    """Yield options that do not fit together."""
    given = {"--announce": announce, "--interface": interfaces, "--my-asn": my_asn, "--peer": peers}
    if to == "kube-vip":
        for name in (name for name, value in given.items() if value):
            what = "kube-vip announces as its DaemonSet is configured"
            yield Mistake(name, what, "omit it, and set vip_arp or bgp_enable in the DaemonSet")
    elif announce == "bgp":
        for name in (name for name in ("--my-asn", "--peer") if not given[name]):
            yield Mistake(name, "is missing, and --announce bgp requires it", "give it")
        if interfaces:
            yield Mistake("--interface", "only applies to --announce l2", "omit it")
    else:
        for name in (name for name in ("--my-asn", "--peer") if given[name]):
            yield Mistake(name, "only applies to --announce bgp", "omit it, or add --announce bgp")


def _values(
    interfaces: Sequence[str], my_asn: str | None, peers: Sequence[str], class_name: str | None
) -> Iterator[Mistake]:
    for each in interfaces:
        if not re.fullmatch(WORD, each):
            yield Mistake(f"--interface {each}", "is not the name of an interface", "write one such as eth0")
    if my_asn and not _is_asn(my_asn):
        yield Mistake(f"--my-asn {my_asn}", "is not an AS number", "write one such as 64512")
    for each in peers:
        address, _, asn = each.partition("=")
        if not is_address(address) or "%" in address or not _is_asn(asn):
            yield Mistake(f"--peer {each}", "is not ADDRESS=ASN", "write one such as 192.0.2.1=64513")
    if class_name and not re.fullmatch(rf"({HOST}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?", class_name):
        fix = "write one such as metallb.example.com/internal"
        yield Mistake(f"--load-balancer-class {class_name}", "is not the name of a class", fix)


def _class(to: To, announce: str | None, class_name: str | None) -> Iterator[Mistake]:
    served = CILIUM_CLASSES[announce or "l2"]
    if to == "cilium" and class_name and class_name != served:
        what = f"Cilium does not serve this class with --announce {announce or 'l2'}"
        yield Mistake(f"--load-balancer-class {class_name}", what, f"write {served}, or omit it")


def _is_asn(text: str) -> bool:
    return bool(re.fullmatch(r"[1-9][0-9]{0,9}", text)) and int(text) <= MOST_ASN
