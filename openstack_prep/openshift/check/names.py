"""Names of the cluster: api and *.apps must lead to its addresses, as seen from the installer's machine.

Source: OpenShift installer docs/user/openstack/README.md, "Create API and Ingress Floating IP Addresses";
"Failure modes users hit".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from openstack_prep.base import shell
from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.openshift.check.context import CheckContext
from openstack_prep.openshift.check.network.topology import listed, virtual_addresses
from openstack_prep.openshift.names.hosts import ROUTES, ClusterNames
from openstack_prep.openshift.names.resolver import resolve
from openstack_prep.resources.lists.neutron_records import FloatingIPRecord

ASKED = ROUTES[:2]
"""The names below apps that are resolved: those needed to log in to the console."""


WAITS = "the installer waits 20 minutes for the API by that name, then fails"
LOCKED_OUT = "nobody can log in to the console from here"


def names(context: CheckContext) -> Iterator[Diagnostic]:
    """Yield names that do not resolve, or lead elsewhere; raises SpecError for an unreadable hosts file."""
    cluster = context.cluster
    domain = ClusterNames(cluster_name=cluster.cluster_name, base_domain=cluster.base_domain, api="", ingress="").domain
    hosts_of = {"api": [f"api.{domain}"], "ingress": [f"{route}.apps.{domain}" for route in ASKED]}
    found = resolve([each for mine in hosts_of.values() for each in mine], hosts=context.hosts)
    for which, why in (("api", WAITS), ("ingress", LOCKED_OUT)):
        led: dict[tuple[str, ...], list[str]] = {}
        for name in hosts_of[which]:
            led.setdefault(found[name].addresses, []).append(name)
        for addresses, mine in led.items():
            late = any(found[each].late for each in mine)
            source = ", ".join(dict.fromkeys(found[each].source for each in mine))
            yield from _led(context, which, mine, addresses, why, late=late, source=source)


def _led(
    context: CheckContext,
    which: str,
    mine: Sequence[str],
    addresses: Sequence[str],
    why: str,
    *,
    late: bool,
    source: str,
) -> Iterator[Diagnostic]:
    """Yield what is wrong with names that share their addresses, or have none."""
    floating, virtual = _floating(context, which), set(map(str, virtual_addresses(context)[f"{which}_vips"]))
    wanted = floating or virtual
    wrong = sorted(set(addresses) - wanted)
    unless = _exception(context, within=set(wrong) <= virtual)
    if not addresses:
        code = "dns.timeout" if late else "dns.missing"
        what = f"nothing in {context.hosts}, and " + (
            "no name server answers in time" if late else "no such name in DNS"
        )
    elif not wrong:
        return
    else:
        code = "dns.wrong-address"
        what = f"leads to {', '.join(wrong)} ({source}), not to {' or '.join(sorted(wanted))}"
        why += f", unless {unless}" if unless else ""
    sure = which == "api" if not addresses else not unless
    yield Diagnostic(
        code=code,
        where=f"names: {', '.join(mine)}",
        what=what,
        why=why,
        fix=_write(context, *(["--replace"] if addresses else [])),
        status=DiagnosticStatus.ERROR if sure else DiagnosticStatus.WARNING,
    )


def _balanced(context: CheckContext) -> bool:
    return context.cluster.load_balancer == "UserManaged"


def _exception(context: CheckContext, *, within: bool) -> str:
    """Return the condition under which a name may lead elsewhere; empty if it never may."""
    if within:
        return "you run this on the machines' own network"
    return "that is where your load balancer is reached" if _balanced(context) else ""


def _floating(context: CheckContext, which: str) -> set[str]:
    """Return the floating IPs of the service, and the addresses of a user-managed load balancer."""
    cluster = context.cluster
    named: str | None = getattr(cluster, f"{which}_floating_ip")
    if named or _balanced(context):
        given: tuple[str, ...] = getattr(cluster, f"{which}_vips")
        return {*filter(None, [named]), *(given if _balanced(context) else ())}
    if which == "ingress" and cluster.external_network:  # one will be attached later; only the user knows which
        mine = listed(context, FloatingIPRecord, project_id=context.cloud.project_id)
        return {floating_ip.address for floating_ip in mine} - {cluster.api_floating_ip}
    return set()


def _write(context: CheckContext, *options: str) -> str:
    """Return the command that writes all names, with options for the addresses that the file does not contain."""
    words = ["--install-config", str(context.path), *options]
    if context.cluster.external_network:
        for which in ("api", "ingress"):
            if not getattr(context.cluster, f"{which}_floating_ip"):
                known = _floating(context, which)
                if which == "api" and not known:  # none will be attached
                    known = set(map(str, virtual_addresses(context)["api_vips"]))
                words += [f"--{which}", known.pop() if len(known) == 1 else "ADDR"]
    return shell.join(["openstack-prep", "names", *words, "--as", "hosts", "--write", str(context.hosts)])
