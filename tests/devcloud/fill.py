"""What a new cloud holds: accounts, roles, the catalogue; then an external network and flavors."""

from __future__ import annotations

import http.client
import json
from typing import Any

from tests.devcloud.layout import HOST, PASSWORD, REGION, SERVICES, DevcloudError, Layout

SERVICE_USERS = (
    "glance",
    "placement",
    "nova",
    "neutron",
    "cinder",
    "heat",
    "swift",
    *(name for name in ("designate", "octavia") if name in SERVICES),
)
ROLES = (  # beside bootstrap's
    *("swiftoperator", "ResellerAdmin", "heat_stack_user", "heat_stack_owner"),
    *(("load-balancer_member", "load-balancer_observer") if "octavia" in SERVICES else ()),
)
CATALOGUE = (  # process, name of the service, type, path of its endpoints
    ("glance", "glance", "image", ""),
    ("placement", "placement", "placement", ""),
    ("nova", "nova", "compute", "/v2.1"),
    ("neutron", "neutron", "network", ""),
    ("cinder", "cinder", "block-storage", "/v3"),
    ("cinder", "cinderv3", "volumev3", "/v3/%(project_id)s"),
    ("heat", "heat", "orchestration", "/v1/%(project_id)s"),
    ("designate", "designate", "dns", ""),
    ("octavia", "octavia", "load-balancer", ""),
    ("swift-proxy", "swift", "object-store", "/v1/AUTH_%(project_id)s"),
)
FLAVORS = {"m1.small": (1, 2048, 20), "m1.medium": (2, 4096, 40), "m1.large": (4, 8192, 80)}


class Client:
    """Just enough of a client to fill a cloud: the orchestrator has nothing but the standard library."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.token = ""
        user = {"name": "admin", "domain": {"id": "default"}, "password": PASSWORD}
        identity = {"methods": ["password"], "password": {"user": user}}
        scope = {"project": {"name": "admin", "domain": {"id": "default"}}}
        self("POST", "keystone", "/v3/auth/tokens", {"auth": {"identity": identity, "scope": scope}})

    def __call__(self, method: str, service: str, path: str, body: object = None) -> Any:
        connection = http.client.HTTPConnection(HOST, self.layout.port(service), timeout=60)
        headers = {"Content-Type": "application/json", "User-Agent": "devcloud/control"}
        if self.token:
            headers["X-Auth-Token"] = self.token
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            reply = connection.getresponse()
            text = reply.read()
        finally:
            connection.close()
        if reply.status >= 300:
            raise DevcloudError(f"{service}: {method} {path} was answered {reply.status}: {text[:500]!r}")
        self.token = reply.getheader("X-Subject-Token") or self.token
        return json.loads(text) if text else None

    def make(self, kind: str, **fields: object) -> str:
        """Make something in Keystone; its id."""
        made: str = self("POST", "keystone", f"/v3/{kind}s", {kind: fields})[kind]["id"]
        return made

    def find(self, kind: str, name: str) -> str:
        found: str = self("GET", "keystone", f"/v3/{kind}s?name={name}")[f"{kind}s"][0]["id"]
        return found


def fill_identity(layout: Layout) -> None:
    """Accounts of the services, roles, and the catalogue; needs Keystone alone."""
    client = Client(layout)
    domain = client.make("domain", name="heat", description="users of heat stacks")
    service_project = client.make("project", name="service", domain_id="default")
    service_roles = [client.find("role", name) for name in ("admin", "service")]
    for name in ROLES:
        client.make("role", name=name)
    for name in SERVICE_USERS:
        user = client.make("user", name=name, password=PASSWORD, domain_id="default")
        for role in service_roles:
            client("PUT", "keystone", f"/v3/projects/{service_project}/users/{user}/roles/{role}")
    user = client.make("user", name="heat_domain_admin", password=PASSWORD, domain_id=domain)
    client("PUT", "keystone", f"/v3/domains/{domain}/users/{user}/roles/{service_roles[0]}")
    for process, name, kind, path in (each for each in CATALOGUE if each[0] in SERVICES):
        service = client.make("service", name=name, type=kind)
        for interface in ("public", "internal", "admin"):
            client.make(
                "endpoint",
                service_id=service,
                interface=interface,
                region_id=REGION,
                url=f"{layout.url(process)}{path}",
            )


def warm_up(layout: Layout) -> None:
    """Ask each service something: they read their policies at the first request, and while Keystone does,
    requests beside it are answered 403."""
    client = Client(layout)
    for service, path in (
        ("keystone", "/v3/projects"),
        ("nova", "/v2.1/flavors"),
        ("neutron", "/v2.0/networks"),
        ("glance", "/v2/images"),
        ("designate", "/v2/zones"),
    ):
        if service in SERVICES:
            client("GET", service, path)


def fill_cloud(layout: Layout) -> None:
    """What the administrator of a lab cloud would have made: a provider network and flavors."""
    client = Client(layout)
    network = {
        "name": "external",
        "router:external": True,
        "provider:network_type": "flat",
        "provider:physical_network": "external",
    }
    made = client("POST", "neutron", "/v2.0/networks", {"network": network})["network"]
    subnet = {
        "name": "external",
        "network_id": made["id"],
        "ip_version": 4,
        "cidr": "192.168.122.0/24",
        "gateway_ip": "192.168.122.1",
        "enable_dhcp": False,
        "allocation_pools": [  # between them lie the addresses that tests and shipped specs ask for
            {"start": "192.168.122.100", "end": "192.168.122.159"},
            {"start": "192.168.122.200", "end": "192.168.122.250"},
        ],
    }
    client("POST", "neutron", "/v2.0/subnets", {"subnet": subnet})
    for name, (cpus, ram, disk) in FLAVORS.items():
        flavor = {"name": name, "vcpus": cpus, "ram": ram, "disk": disk}
        client("POST", "nova", "/v2.1/flavors", {"flavor": flavor})
