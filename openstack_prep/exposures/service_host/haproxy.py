"""HAProxy of the services machine: what clients reach at its addresses, with health checks.

Sources: OpenShift's documentation of user-managed load balancers (HTTPS:6443/readyz, HTTPS:22623/healthz,
HTTP:1936/healthz/ready; two checks, every 10 seconds); HAProxy 2.6, configuration manual.  Certificates are not
verified by the checks: the cluster signs them by itself, and a check learns nothing secret.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from openstack_prep.exposures.model import Placed
from openstack_prep.exposures.service_host.model import Machine, Role, ServiceHost, ingress_role

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


def config(settings: ServiceHost, placed: Sequence[Placed], found: Sequence[Machine]) -> str:
    """Return the configuration; it never offers machine-config outside, which holds secrets of the nodes."""
    sections = ("\n".join(_section(each, found)) for each in listeners(settings, placed))
    return "\n".join([DEFAULTS, *(f"{section}\n" for section in sections)])


def listeners(settings: ServiceHost, placed: Sequence[Placed]) -> Iterator[Listener]:
    """Yield what HAProxy serves: the exposures' ports; for clients inside, also API, machine-config and ingress."""
    ends: dict[tuple[int, int], list[str]] = {(port, port): [settings.address] for port in INSIDE}
    for each in placed:
        for port in each.exposure.ports:
            inner = port.node_port or port.inner
            if each.address and port.port != DNS and MACHINE_CONFIG not in (port.port, inner):
                ends.setdefault((port.port, inner), [settings.address]).append(each.address)
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


def _section(listener: Listener, found: Sequence[Machine]) -> Iterator[str]:
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
