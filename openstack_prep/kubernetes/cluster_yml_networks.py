"""Checks of the networks in a cluster.yml.

Sources: RKE 1.7 (cluster/defaults.go for the defaults, cluster/plan.go: extra_args override the fields,
cluster/validation.go: several networks, separated by commas, are dual-stack, which calico and aci support).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from openstack_prep.base.fields import is_address
from openstack_prep.base.ranges import Net
from openstack_prep.base.raw import Raw
from openstack_prep.kubernetes import networks
from openstack_prep.kubernetes.keys.schema import Fault, Steps, value_at
from openstack_prep.kubernetes.model import Cluster
from openstack_prep.kubernetes.networks import ClusterNetworks, Taken

DUAL_STACK = ("calico", "aci")
NODE_SIZE = "node-cidr-mask-size"
"""The flag for the size of each node's part, which has one form per IP version as well."""


class _Setting(NamedTuple):
    """A field of a service, and the flag that replaces it in extra_args."""

    service: str
    field: str
    flag: str
    default: str = ""

    def read(self, data: Raw) -> tuple[Steps, str]:
        """Return the value that counts, and where it is; "" when it is neither set nor has a default."""
        section = ("services", self.service)
        replaced = value_at(data, f"services.{self.service}.extra_args.{self.flag}")
        if replaced:
            return (*section, "extra_args", self.flag), str(replaced)
        return (*section, self.field), self.of_field(data)

    def of_field(self, data: Raw) -> str:
        """Return the value of the field alone."""
        value = value_at(data, f"services.{self.service}.{self.field}") or self.default
        return value if isinstance(value, str) else ""


PODS = _Setting("kube-controller", "cluster_cidr", "cluster-cidr", "10.42.0.0/16")
SERVICES = _Setting("kube-controller", "service_cluster_ip_range", "service-cluster-ip-range", "10.43.0.0/16")
OF_API = _Setting("kube-api", "service_cluster_ip_range", "service-cluster-ip-range", "10.43.0.0/16")
DNS = _Setting("kubelet", "cluster_dns_server", "cluster-dns")
FIELDS = {"cluster_cidr": PODS, "service_cidr": SERVICES, "cluster_dns": DNS}


def faults(data: Raw) -> Iterator[Fault]:
    """Yield mistakes in the networks of pods and Services, and nodes with addresses in them."""
    found: dict[_Setting, list[Net]] = {}
    for setting in (PODS, SERVICES, OF_API):
        steps, text = setting.read(data)
        try:
            found[setting] = [ipaddress.ip_network(each.strip()) for each in text.split(",")]
        except ValueError:
            if text:  # else a value of another type, which is reported elsewhere
                yield Fault(steps, f"{text!r} is not a network", f"write one such as {setting.default}")
    if len(found) < 3:
        return
    if found[SERVICES] != found[OF_API]:
        (steps, of_api), (_, services) = OF_API.read(data), SERVICES.read(data)
        what, fix = f"{of_api} differs from {services} of kube-controller", f"write {services} in both places"
        yield Fault(steps, what, fix)
    yield from _dual_stack(data)
    yield from _per_version(data, found)


def _dual_stack(data: Raw) -> Iterator[Fault]:
    """Yield networks of two IP versions that the plugin does not support; RKE does not look into extra_args."""
    plugin = value_at(data, "network.plugin") or "canal"
    for setting in (PODS, OF_API):
        steps, text = ("services", setting.service, setting.field), setting.of_field(data)
        if "," in text and plugin not in DUAL_STACK:
            yield Fault(steps, f"{plugin} does not support {text}", f"write one network, or choose {DUAL_STACK[0]}")


def _per_version(data: Raw, found: dict[_Setting, list[Net]]) -> Iterator[Fault]:
    """Yield mistakes in the networks of each IP version."""
    pods, services = ({each.version: str(each) for each in found[setting]} for setting in (PODS, SERVICES))
    steps, dns = DNS.read(data)
    if dns and not is_address(dns):
        yield Fault(steps, f"{dns!r} is not an IP address", "remove it")
        dns = ""
    if not pods.keys() & services.keys():  # the check below reports different IP versions
        services = dict(zip(pods, services.values(), strict=False))
    listed = data.get("nodes")
    machines = listed if isinstance(listed, list) else []
    flags = value_at(data, "services.kube-controller.extra_args") or {}
    own_size = isinstance(flags, Mapping) and any(str(each).startswith(NODE_SIZE) for each in flags)
    count = None if own_size else len(machines)
    taken = [Taken(f"nodes[{index}]", address) for index, address in _addresses(machines)]
    for version in [each for each in pods if each in services]:
        of_version = dns if dns and ipaddress.ip_address(dns).version == version else None
        cluster = Cluster(cluster_cidr=pods[version], service_cidr=services[version], cluster_dns=of_version)
        for each in networks.mistakes(ClusterNetworks(), {"it": cluster}, taken, {"it": count}):
            yield Fault(FIELDS[each.field].read(data)[0], each.what, each.fix)


def _addresses(machines: list[object]) -> Iterator[tuple[int, str]]:
    for index, machine in enumerate(machines):
        values = [value_at(machine, name) for name in ("address", "internal_address")]
        yield from ((index, each) for each in {each for each in values if isinstance(each, str) and is_address(each)})
