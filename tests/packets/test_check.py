"""What ``check`` says of the network for a cluster's machines, and what a machine in it, and a client outside, get."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import pytest
from openstack.exceptions import BadRequestException

from openstack_prep.base.secret import Secret
from openstack_prep.openshift.install_config import FileContents, InstallConfigFields, ResourceReference, dump
from openstack_prep.openshift.install_config.document import document
from tests.devcloud.data_plane import OUTSIDE, DataPlane
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.tenant import Tenant
from tests.functional.check_room import second_external
from tests.functional.conftest import Prep
from tests.packets.machines import Node, boot, carry_out, from_outside, serve_outside, until
from tests.packets.test_other_ways import image

__all__ = ["second_external"]

API, HOST = 6443, "api.dev.example.com"
CONTENTS = FileContents(pull_secret=Secret('{"auths":{"quay.io":{"auth":"Zm9vOmJhcg=="}}}'))
SUBJECTS = ("router.", "floating-ip.")


@dataclass
class Site:
    """A project with a network for a cluster, a machine that runs in it, and the command beside install-config.yaml."""

    prep: Prep
    network: Any
    plane: DataPlane
    node: Node
    subnet: Any
    router: Any
    external: Any
    admin: Any
    cluster: InstallConfigFields

    def check(self, **changes: Any) -> dict[str, str]:
        """Return the fixes of what ``check`` finds of routers and floating IPs, by code."""
        config = replace(self.cluster, **changes)
        (self.prep.folder / "install-config.yaml").write_text(dump(document(config, CONTENTS)))
        words = ("check", "--release", config.release, "--hosts", "hosts", "--format", "json")
        found = json.loads(self.prep.run(*words, code=1).stdout)["findings"]  # there are no flavors, either
        return {each["code"]: each["fix"] for each in found if each["code"].startswith(SUBJECTS)}

    def goes_out(self) -> bool:
        return self.node.get("https://192.168.122.1:8443/") == OUTSIDE

    def answers(self, floating_ip: str) -> bool:
        """Whether a client outside is answered by the machine."""
        return from_outside(self.plane, HOST, floating_ip, API) == self.node.name

    def restore(self) -> None:
        """Give the router its gateway, and its interface in the machines' subnet, and no other one."""
        self.network.update_router(self.router, external_gateway_info={"network_id": self.external.id})
        with suppress(BadRequestException):  # a fix has done so
            self.network.add_interface_to_router(self.router, subnet_id=self.subnet.id)
        for address in (self.cluster.api_floating_ip, self.cluster.ingress_floating_ip):
            (found,) = self.network.ips(floating_ip_address=address)
            self.network.update_ip(found, port_id=None)


@pytest.fixture(scope="module")
def site(devcloud: Devcloud, module_tenant: Tenant, tmp_path_factory: pytest.TempPathFactory) -> Site:
    connection: Any = module_tenant.connect()
    neutron, folder = connection.network, tmp_path_factory.mktemp("site")
    external = neutron.find_network("external", ignore_missing=False)
    network = neutron.create_network(name="machines")
    subnet = neutron.create_subnet(
        name="machines", network_id=network.id, cidr="10.0.0.0/16", ip_version=4, dns_nameservers=["192.0.2.53"]
    )
    router = neutron.create_router(name="machines", external_gateway_info={"network_id": external.id})
    neutron.add_interface_to_router(router, subnet_id=subnet.id)
    group = neutron.create_security_group(name="bastion")
    neutron.create_security_group_rule(security_group_id=group.id, direction="ingress", ether_type="IPv4")
    port = neutron.create_port(name="bastion", network_id=network.id, security_groups=[group.id])
    plane = DataPlane(devcloud.layout)
    (node,) = boot(connection, plane, [port], image(connection))
    node.answer(folder, API, host=HOST)
    serve_outside(plane, folder, 8443)
    api, ingress = (str(neutron.create_ip(floating_network_id=external.id).floating_ip_address) for _ in range(2))
    (folder / "hosts").write_text(f"{api} {HOST}\n{ingress} console.apps.dev.example.com\n")
    cluster = InstallConfigFields(
        release="4.18",
        cluster_name="dev",
        base_domain="example.com",
        cloud=module_tenant.cloud,
        external_network="external",
        api_floating_ip=api,
        ingress_floating_ip=ingress,
        machines_subnets=(ResourceReference(id=subnet.id),),
    )
    prep = Prep(folder, {"OS_CLIENT_CONFIG_FILE": str(module_tenant.clouds_file), "OS_CLOUD": module_tenant.cloud})
    made = Site(prep, neutron, plane, node, subnet, router, external, devcloud.admin.network, cluster)
    assert until(made.goes_out)
    return made


def test_a_network_that_is_right(site: Site) -> None:
    assert site.check() == {}
    assert site.goes_out()


Steps = Callable[[Site, Any], Iterator[None]]
Broken = Callable[[Site, Any], AbstractContextManager[None]]
ROUTERS: list[tuple[str, Broken]] = []


def router(code: str) -> Callable[[Steps], Steps]:
    def declare(steps: Steps) -> Steps:
        ROUTERS.append((code, contextmanager(steps)))
        return steps

    return declare


@router("router.no-gateway")
def no_gateway(site: Site, second: Any) -> Iterator[None]:
    site.network.update_router(site.router, external_gateway_info=None)
    yield


@router("router.other-gateway")
def other_gateway(site: Site, second: Any) -> Iterator[None]:
    site.network.update_router(site.router, external_gateway_info={"network_id": second.id})
    yield


@router("router.no-snat")
def no_source_nat(site: Site, second: Any) -> Iterator[None]:
    gateway = {"network_id": site.external.id, "enable_snat": False}
    site.admin.update_router(site.router, external_gateway_info=gateway)
    yield


@router("router.missing")
def no_interface(site: Site, second: Any) -> Iterator[None]:
    site.network.remove_interface_from_router(site.router, subnet_id=site.subnet.id)
    yield


@router("router.missing")
def interface_in_another_subnet(site: Site, second: Any) -> Iterator[None]:
    network = site.network
    other = network.create_subnet(network_id=site.subnet.network_id, ip_version=4, cidr="10.7.0.0/24")
    network.remove_interface_from_router(site.router, subnet_id=site.subnet.id)
    network.add_interface_to_router(site.router, subnet_id=other.id)
    yield
    network.remove_interface_from_router(site.router, subnet_id=other.id)
    network.delete_subnet(other)


@pytest.mark.parametrize(("code", "broken"), ROUTERS, ids=[broken.__name__ for _, broken in ROUTERS])
def test_a_router(site: Site, second_external: Any, code: str, broken: Broken) -> None:
    """A machine is not answered outside; after the printed commands it is, and a floating IP leads to it."""
    address = str(site.cluster.api_floating_ip)
    (found,) = site.network.ips(floating_ip_address=address)
    with broken(site, second_external):
        site.plane.sync()
        seen = site.check()
        assert list(seen) == [code]
        assert until(lambda: not site.goes_out())
        carry_out(site.prep, seen.values())
        assert site.check() == {}
        assert until(site.goes_out)
        site.network.update_ip(found, port_id=site.node.port_id)
        assert until(lambda: site.answers(address))
        site.network.update_ip(found, port_id=None)
    site.restore()


def test_a_floating_ip_of_another_port(site: Site) -> None:
    """Whoever asks for the API is answered by somebody else, until the printed command takes the floating IP away."""
    address = str(site.cluster.api_floating_ip)
    (found,) = site.network.ips(floating_ip_address=address)
    site.network.update_ip(found, port_id=site.node.port_id)
    assert until(lambda: site.answers(address))
    seen = site.check()
    assert list(seen) == ["floating-ip.in-use"]
    carry_out(site.prep, seen.values())
    assert site.check() == {}
    assert until(lambda: not site.answers(address))


@pytest.mark.parametrize("code", ["floating-ip.missing", "floating-ip.other-network"])
def test_a_floating_ip_that_cannot_be_used(site: Site, second_external: Any, code: str) -> None:
    """The printed command creates one that ``check`` accepts, and that leads to a machine."""
    address = "192.0.2.99"
    if code == "floating-ip.other-network":
        address = str(site.network.create_ip(floating_network_id=second_external.id).floating_ip_address)
    seen = site.check(api_floating_ip=address)
    assert list(seen) == [code]
    before = {each.id for each in site.network.ips()}
    carry_out(site.prep, seen.values())
    (made,) = (each for each in site.network.ips() if each.id not in before)
    assert site.check(api_floating_ip=made.floating_ip_address) == {}
    site.network.update_ip(made, port_id=site.node.port_id)
    assert until(lambda: site.answers(made.floating_ip_address))
    site.network.delete_ip(made)
