"""Names of the cluster: api and *.apps lead to its addresses, seen from the machine that installs.

Source: OpenShift installer docs/user/openstack/README.md, "Create API and Ingress Floating IP Addresses";
"Failure modes users hit".
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from openstack_prep.base.diagnostic import Diagnostic, Status
from openstack_prep.openshift.check.network.topology import listed, virtual_addresses
from openstack_prep.openshift.check.scene import Scene
from openstack_prep.openshift.names.hosts import ROUTES, Names
from openstack_prep.openshift.names.resolver import resolve

ASKED = ROUTES[:2]
"""The names below apps that are looked up: one must be able to log in to the console."""


WAITS = "the installer waits 20 minutes for the API by that name, and gives up"
LOCKED_OUT = "nobody can log in to the console from here"


def names(scene: Scene) -> Iterator[Diagnostic]:
    """Yield names that do not resolve, or lead elsewhere; raises SpecError for a hosts file nobody can read."""
    cluster = scene.cluster
    domain = Names(cluster_name=cluster.cluster_name, base_domain=cluster.base_domain, api="", ingress="").domain
    asked = {"api": [f"api.{domain}"], "ingress": [f"{route}.apps.{domain}" for route in ASKED]}
    found = resolve([each for mine in asked.values() for each in mine], hosts=scene.hosts)
    for which, why in (("api", WAITS), ("ingress", LOCKED_OUT)):
        led: dict[tuple[str, ...], list[str]] = {}
        for name in asked[which]:
            led.setdefault(found[name].addresses, []).append(name)
        for addresses, mine in led.items():
            yield from _led(scene, which, mine, addresses, why, any(found[each].late for each in mine))


def _led(
    scene: Scene, which: str, mine: Sequence[str], addresses: Sequence[str], why: str, late: bool
) -> Iterator[Diagnostic]:
    """Yield what is wrong with names that lead to the same addresses, or to none."""
    floating, virtual = _floating(scene, which), set(map(str, virtual_addresses(scene)[f"{which}_vips"]))
    wanted = floating or virtual
    wrong = sorted(set(addresses) - wanted)
    unless = _exception(scene, within=set(wrong) <= virtual)
    if not addresses:
        code = "dns.timeout" if late else "dns.missing"
        what = f"nothing in {scene.hosts}, and " + ("no name server answers in time" if late else "no such name in DNS")
    elif not wrong:
        return
    else:
        code = "dns.wrong-address"
        what = f"leads to {', '.join(wrong)}, not to {' or '.join(sorted(wanted))}"
        why += f", unless {unless}" if unless else ""
    sure = which == "api" if not addresses else not unless
    yield Diagnostic(
        code=code,
        where=f"names: {', '.join(mine)}",
        what=what,
        why=why,
        fix=_write(scene),
        status=Status.ERROR if sure else Status.WARNING,
    )


def _balanced(scene: Scene) -> bool:
    return scene.cluster.load_balancer == "UserManaged"


def _exception(scene: Scene, *, within: bool) -> str:
    """Return when a name may lead elsewhere; nothing when it never may."""
    if within:
        return "run where the machines' own network is reached"
    return "that is where your load balancer is reached" if _balanced(scene) else ""


def _floating(scene: Scene, which: str) -> set[str]:
    """Return the floating IPs by which it may be reached; with a load balancer of one's own also its addresses."""
    cluster = scene.cluster
    named: str | None = getattr(cluster, f"{which}_floating_ip")
    if named or _balanced(scene):
        given: tuple[str, ...] = getattr(cluster, f"{which}_vips")
        return {*filter(None, [named]), *(given if _balanced(scene) else ())}
    if which == "ingress" and cluster.external_network:  # one will be attached later; which, only the user knows
        mine = listed(scene, "floatingips", project_id=scene.cloud.project_id)
        return {each["floating_ip_address"] for each in mine} - {cluster.api_floating_ip}
    return set()


def _write(scene: Scene) -> str:
    """Return the command that writes all names; it must be told the addresses that are not in the file."""
    words = ["--install-config", str(scene.path)]
    if scene.cluster.external_network:
        for which in ("api", "ingress"):
            if not getattr(scene.cluster, f"{which}_floating_ip"):
                known = _floating(scene, which)
                if which == "api" and not known:  # none will be attached either
                    known = set(map(str, virtual_addresses(scene)["api_vips"]))
                words += [f"--{which}", known.pop() if len(known) == 1 else "ADDR"]
    return shlex.join(["openstack-prep", "names", *words, "--as", "hosts", "--write", str(scene.hosts)])
