"""Links from the name of a service to the port of its virtual address.

Source: OpenShift installer docs/source, "What gets created, names and tags"; Networking API v2.0,
"Floating IPs" and "Routers".
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from openstack_prep.base.raw import Raw
from openstack_prep.openshift.names.resolver import Answer
from openstack_prep.openshift.verify.link import Link, broken, ok, unknown
from openstack_prep.openshift.verify.reading import Scene
from openstack_prep.openshift.verify.way import Way, addresses, some
from openstack_prep.resources.lists import installer_names as naming


def names(way: Way, told: Mapping[str, str | None]) -> Iterator[Link]:
    """Yield a link a name; ``told`` are the addresses that the names of both ways should have."""
    if not way.target.hosts:
        yield unknown("name", "the cluster's domain is not known", "give --base-domain DOMAIN or --install-config FILE")
    for host in way.target.hosts:
        yield _name(way, host, way.answers[host], _write_names(way, told))


def _name(way: Way, host: str, answer: Answer, mend: str) -> Link:
    address = way.leads_to
    if answer.late:
        return unknown("name", f"{answer.source} did not say in time what {host} is", "look at the resolver, try again")
    if not answer.addresses:
        return broken("name", f"{host} has no address", mend)
    said = f"{host} is {', '.join(answer.addresses)} ({answer.source})"
    wrong = [each for each in answer.addresses if each != address]
    if address and not way.direct and wrong:
        return broken("name", f"{said}, not {address}", mend)
    return ok("name", said)


def _write_names(way: Way, told: Mapping[str, str | None]) -> str:
    given = {
        "--cluster-name": way.wanted.cluster_name,
        "--base-domain": way.wanted.base_domain,
        "--api": told["api"] or "ADDRESS",
        "--ingress": told["ingress"] or "ADDRESS",
        "--write": "/etc/hosts",
    }
    words = (word for option in given.items() for word in option if word)
    return f"correct the DNS, or openstack-prep names {shlex.join(words)}"


def floating_ip(way: Way) -> Link:
    name, found = "floating IP", way.floating_ip
    attach = f"{way.repair} {way.target.option} {way.address or 'ADDRESS'}"
    if way.scene.floating_ips is None:
        return unknown(name, "these credentials may not list floating IPs")
    if way.direct:
        return ok(name, "none is needed: the address is the virtual one itself")
    if way.serving is not None and found is not way.serving:
        other = way.serving["floating_ip_address"]
        what = f"{other} serves the port, not {way.target.given}"
        return broken(name, what, f"expect that one, or make room: {way.client} floating ip unset --port {other}")
    if found is None and way.target.given:
        what = f"{way.target.given} is no floating IP of this project"
        return broken(name, what, f"correct it: {way.client} floating ip list shows what there is")
    if found is None:
        return broken(name, f"none serves the port {way.target.port}", attach)
    if not found["port_id"]:
        return broken(name, f"{way.address} serves no port", attach)
    if way.port and found["port_id"] != way.port["id"]:
        other = next((port["name"] for port in way.scene.ports if port["id"] == found["port_id"]), "")
        what = f"{way.address} serves another port: {' '.join(filter(None, (other, found['port_id'])))}"
        return broken(name, what, f"{attach} --move")
    if found["status"] == "ERROR":
        return broken(name, f"{way.address} is in status ERROR", f"{way.client} floating ip show {way.address}")
    if found["status"] != "ACTIVE":
        what = f"{way.address} is on its port, but {found['status']}: no router has said yet that it serves it"
        return unknown(name, what, f"look again: {way.client} floating ip show {way.address}")
    return ok(name, f"{way.address} serves the port, ACTIVE")


def virtual_port(way: Way) -> Link:
    name, tag, port = "port", naming.tag(way.infra_id), way.port
    if len(way.ports) > 1:
        what = f"{len(way.ports)} ports are named {way.target.port}: {some(each['id'] for each in way.ports)}"
        idle = [each["id"] for each in way.ports if way.serving and each["id"] != way.serving["port_id"]]
        return broken(name, what, f"keep the right one: {way.client} port delete {' '.join(idle) or 'ID'}")
    if port is None:
        what = f"no port of this project is named {way.target.port}"
        where = way.elsewhere or "is the infraID right, and the cloud that of the cluster's project"
        mend = f"{where}; of a UserManaged load balancer or two stacks tell by --install-config FILE"
        return broken(name, what, mend)
    said = f"{port['name']} {', '.join(addresses(port))}"
    if foreign := naming.foreign_tags(port["tags"], tag):
        return broken(name, f"{said} carries {', '.join(foreign)}: another cluster's", "correct the infraID")
    if tag not in port["tags"] and port in way.scene.virtual and port["name"] == way.target.port:
        mend = f"{way.client} port set --tag {tag} {port['id']}"
        return broken(name, f"{said} does not carry the tag {tag}; destroy would leave it", mend)
    if not port["admin_state_up"]:
        return broken(name, f"{said} is switched off", f"{way.client} port set --enable {port['id']}")
    return ok(name, said)


def router_between(way: Way) -> Link:
    name, port, scene = "router", way.port, way.scene
    if port is None:
        return unknown(name, "cannot be told without the port")
    if way.direct:
        return ok(name, "none is needed: nothing is translated")
    subnets = {ip["subnet_id"] for ip in port["fixed_ips"]}
    joined = {each["device_id"] for each in scene.interfaces or () if subnets & _subnets(each)}
    known = [router for key, router in (scene.routers or {}).items() if key in joined]
    subnet = some(_subnet_name(scene, each) for each in sorted(subnets))
    serving = way.serving["router_id"] if way.serving else None
    if not known and (serving or scene.interfaces is None or scene.routers is None or not _network_is_ours(way)):
        what = f"that of subnet {subnet} is not visible to these credentials"
        return unknown(name, what + (f"; Neutron says that {serving} serves the floating IP" if serving else ""))
    if not known:
        return broken(
            name, f"none has an interface in subnet {subnet}", f"{way.client} router add subnet ROUTER {subnet}"
        )
    return _gateway(way, known, subnet)


def _network_is_ours(way: Way) -> bool:
    """Whether we would see a router's interface in the subnet: its network's owner does."""
    subnets = (way.scene.subnets or {}).values()
    return any(subnet["project_id"] == (way.port or {}).get("project_id") for subnet in subnets)


def _gateway(way: Way, routers: Sequence[Raw], subnet: str) -> Link:
    name, network = "router", way.floating_ip["floating_network_id"] if way.floating_ip else None
    gates = {router["id"]: (router["external_gateway_info"] or {}).get("network_id") for router in routers}
    router = next((each for each in routers if gates[each["id"]] and network in (None, gates[each["id"]])), None)
    if router is None:
        first = routers[0]
        lack = "has its gateway on another network than the floating IP's" if gates[first["id"]] else "has no gateway"
        mend = f"{way.client} router set --external-gateway {network or 'EXTERNAL-NETWORK'} {first['id']}"
        return broken(name, f"{first['name']} {lack}", mend)
    if not router["admin_state_up"] or router["status"] == "ERROR":
        off = "is switched off" if not router["admin_state_up"] else "is in status ERROR"
        return broken(name, f"{router['name']} {off}", f"{way.client} router set --enable {router['id']}")
    return ok(name, f"{router['name']} joins the port's subnet and the outside")


def _subnets(port: Raw) -> set[str]:
    return {each["subnet_id"] for each in port["fixed_ips"]}


def _subnet_name(scene: Scene, subnet_id: str) -> str:
    return (scene.subnets or {}).get(subnet_id, {}).get("name") or subnet_id
