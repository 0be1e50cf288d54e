"""What rke2-cluster.yaml offers by choice, on a real Heat: volumes, and what servers are told.

The devcloud's servers run no operating system; the tests read their user data, and signal in their place.
"""

from __future__ import annotations

import configparser
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.base.errors import SpecError
from openstack_prep.base.secret import Secret, from_spec
from openstack_prep.resources.compute.keypair import Keypair
from openstack_prep.resources.credentials.application_credential import ApplicationCredential
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.subnet import Subnet
from tests.functional.lab import Lab
from tests.functional.reader import Reader, reading
from tests.functional.rke2_cluster import (
    BASE,
    KEY,
    MANIFESTS,
    Cluster,
    attached_to,
    check_script,
    checked_config,
    files_of,
    made,
    manifests,
    stack_values,
    volumes,
)

__all__ = ["made"]  # a fixture


BEFORE = Path(__file__).parent / "data" / "rke2-before" / "rke2-cluster.yaml"
"""The template before it had these choices."""


@pytest.mark.more
def test_a_stack_of_the_earlier_template_keeps_its_servers(made: Cluster) -> None:
    """With unchanged parameters; and with a volume for etcd, which a server gets beside it."""
    with made.applied(made.stack(template=str(BEFORE), server_count=1)):
        made.until(made.active)
        made.signal(made.active()["0"])
    made.report.raise_for_failures()
    before = made.ids()
    plan = made.lab.plan(*BASE, made.stack(server_count=1))
    assert not plan.refusals, plan.refusals
    made.lab.apply(*BASE, made.stack(server_count=1))
    assert (made.ids(), volumes(made)) == (before, {})

    made.lab.apply(*BASE, made.stack(server_count=1, etcd_volume_size=2))
    assert made.ids() == before
    assert {name: attached_to(each) for name, each in volumes(made).items()} == {
        f"{made.name}-server-0-etcd": [before["0"]]
    }


def test_volumes_grow_outlive_servers_and_are_deleted_only_with_consent(made: Cluster) -> None:
    """Larger in place; for a server in the place of a deleted one; kept by choice when the stack is deleted."""
    plain = {"server_count": 1, "wait_timeout": 0}
    made.lab.apply(*BASE, made.stack(**plain, etcd_volume_size=1))
    server, kept = made.ids()["0"], [each.id for each in volumes(made).values()]
    made.lab.apply(*BASE, made.stack(**plain, etcd_volume_size=2, etcd_volume_retain=True))
    assert [(each.id, each.size, attached_to(each)) for each in volumes(made).values()] == [(kept[0], 2, [server])]

    made.lab.admin.compute.delete_server(server)
    made.until(lambda: not made.nodes())
    made.lab.apply(*BASE, made.stack(**plain, etcd_volume_size=2, etcd_volume_retain=True))
    assert [(each.id, attached_to(each)) for each in volumes(made).values()] == [(kept[0], [made.ids()["0"]])]

    (refused,) = made.lab.plan(*BASE, made.stack(**plain)).refusals
    assert "would delete" in refused.what
    assert "servers.0.etcd_volume (OS::Cinder::Volume)" in refused.what
    made.delete()
    assert [each.id for each in volumes(made).values()] == kept
    made.until(lambda: [each.status for each in volumes(made).values()] == ["available"])
    made.lab.admin.block_storage.delete_volume(kept[0])


CREDENTIALS = """clouds:
  openstack:
    auth: {auth_url: "https://keystone:5000", application_credential_id: a, application_credential_secret: cloud-s3cret}
    auth_type: v3applicationcredential
"""
PLACE = "servers.0.secrets_volume"
SECRETS = {
    "token": "T0kenOfTheCluster123",
    "agent_token": "T0ken-of-the-agents_4",
    "cloud_credentials": CREDENTIALS,
    "etcd_s3_access_key": "the-access-key",
    "etcd_s3_secret_key": 'the "secret" key',
    "registries": '{"configs": {"registry.example.com": {"auth": {"username": "u", "password": "p:#4word"}}}}',
}


def test_files_of_the_nodes(made: Cluster) -> None:
    """Snapshots, the cloud's programs, ingress, profile, registries: the nodes' files, as RKE2 takes them."""
    declared = made.stack(
        **{"server_count": 1, "agent_count": 1, "wait_timeout": 0},
        **{"etcd_s3_bucket": "snapshots", "etcd_s3_endpoint": "s3.example.com", "etcd_s3_folder": "one"},
        **{"cloud_config": "[LoadBalancer]\nfloating-network-id=abc", "cloud_ca": "-----BEGIN CERTIFICATE-----\nMII"},
        **{"ingress_controller": "traefik", "profile": "cis"},
        secret_parameters={name: Secret(each) for name, each in SECRETS.items()},
    )
    plan = str(made.lab.plan(*BASE, declared))
    report = made.lab.run(*BASE, declared)
    report.raise_for_failures()
    shown = plan + str(report) + json.dumps(stack_values(made))
    assert not [
        each
        for each in ("cloud-s3cret", "the-access-key", 'the "secret" key', "p:#4word", SECRETS["token"])
        if each in shown
    ]

    server, agent = (files_of(made, role) for role in ("server", "agent"))
    config = checked_config(server, "server")
    assert config["token"] == SECRETS["token"]
    assert config["agent-token"] == checked_config(agent, "agent")["token"] == SECRETS["agent_token"]
    assert config["profile"] == checked_config(agent, "agent")["profile"] == "cis"
    assert (config["ingress-controller"], config["cloud-provider-name"]) == ("traefik", "external")
    assert {name: each for name, each in config.items() if name.startswith("etcd-s3")} == {
        **{"etcd-s3": True, "etcd-s3-bucket": "snapshots", "etcd-s3-endpoint": "s3.example.com"},
        **{"etcd-s3-region": "us-east-1", "etcd-s3-folder": "one"},
        **{"etcd-s3-access-key": "the-access-key", "etcd-s3-secret-key": 'the "secret" key'},
    }
    for files in (server, agent):
        assert yaml.safe_load(files["/etc/rancher/rke2/registries.yaml"]) == json.loads(SECRETS["registries"])
        check_script(files["/var/lib/rke2-node/setup"])
        assert "profile='cis'" in files["/var/lib/rke2-node/setup"]
    check_cloud(server, made.name)
    check_readers(made)
    (vip,) = (each for each in manifests(server, "kube-vip.yaml") if each["kind"] == "DaemonSet")
    (container,) = vip["spec"]["template"]["spec"]["containers"]
    assert {"name": "vip_subnet", "value": "32"} in container["env"]
    assert not [path for path in agent if path.startswith(MANIFESTS)]


def check_readers(made: Cluster) -> None:
    """No service shows a reader of the project a secret, and no reader gets the images and volumes that have them."""
    with reading(made.lab) as connection:
        parts = {"cloud_credentials": "cloud-s3cret", "registries": "p:#4word", "url of the script": "get.rke2.io"}
        reader = Reader(connection, SECRETS | parts).search()
        assert set().union(*reader.leaks.values()) == {"url of the script"}  # the search finds what is shown
        assert {"OS::Heat::Value", "OS::Nova::Server", "rke2-node.yaml"} <= set(reader.resources)
        images = {each.name: each.id for each in connection.image.images(owner=made.project_id)}
        images = {name: each for name, each in images.items() if name.startswith(made.name)}
        assert images.keys() == {f"{made.name}-server-secrets", f"{made.name}-agent-secrets"}
        assert {connection.image.get(f"/images/{each}/file").status_code for each in images.values()} == {403}


def test_changed_secrets(made: Cluster) -> None:
    """Nodes get volumes with new secrets, for their successors, and stay; agents that get none of them keep theirs."""
    plain = {"server_count": 1, "agent_count": 1, "wait_timeout": 0}
    given = {"token": Secret("T0kenOfTheCluster123"), "agent_token": Secret("T0kenOfTheAgents1234")}
    made.lab.apply(*BASE, made.stack(**plain, secret_parameters=given))
    nodes, before = made.nodes(), volumes(made)

    later = made.stack(**plain, secret_parameters=given | {"token": Secret("An0therTokenOfTheCluster")})
    plan = made.lab.plan(*BASE, later)
    assert not plan.refusals, plan.refusals
    (stack,) = (step for step in plan.steps if step.key.kind == "stack")
    (change,) = (each for each in stack.changes if each.field == "outdated")
    assert change.before == frozenset({f"{PLACE} {before[f'{made.name}-server-0-secrets'].id}"})
    (pending,) = (each.before for each in stack.changes if each.field == "pending")
    assert {each for each in pending if not each.startswith("update ")} == {f"replace {PLACE}"}
    made.lab.apply(*BASE, later)
    after = volumes(made)
    assert made.nodes() == nodes
    assert {name for name, each in after.items() if each.id == before[name].id} == {f"{made.name}-agent-0-secrets"}
    assert {name.removesuffix("-secrets"): attached_to(each) for name, each in after.items()} == {
        name: [server] for name, server in nodes.items()
    }

    made.lab.admin.compute.delete_server(nodes[f"{made.name}-server-0"])
    made.until(lambda: len(made.nodes()) == 1)
    made.lab.apply(*BASE, later)
    assert checked_config(files_of(made, "server"), "server")["token"] == "An0therTokenOfTheCluster"
    assert volumes(made)[f"{made.name}-server-0-secrets"].id == after[f"{made.name}-server-0-secrets"].id


def test_a_credential_of_the_same_spec(made: Cluster, tmp_path: Path) -> None:
    """One apply creates the credential and hands its clouds.yaml to the servers."""
    path = tmp_path / "cloud.yaml"
    credential = ApplicationCredential(name=made.name, clouds_yaml=str(path), cloud="openstack", roles=("member",))
    given = {"cloud_credentials": from_spec({"content": "cloud.yaml"}, base=tmp_path)}
    stack = made.stack(server_count=1, wait_timeout=0, secret_parameters=given)
    made.lab.apply(*BASE, credential, stack)
    (secret,) = manifests(files_of(made, "server"), "cloud-config.yaml")
    assert secret["stringData"]["clouds.yaml"] == path.read_text()
    assert list(yaml.safe_load(path.read_text())["clouds"]) == ["openstack"]


def check_cloud(server: dict[str, str], cluster: str) -> None:
    """Look at the Secret of the cloud's programs, and at their charts."""
    (secret,) = manifests(server, "cloud-config.yaml")
    assert secret["stringData"]["clouds.yaml"] == CREDENTIALS
    assert secret["stringData"]["ca.crt"].startswith("-----BEGIN")
    settings = configparser.ConfigParser()
    settings.read_string(secret["stringData"]["cloud.conf"])
    assert {name: dict(settings[name]) for name in settings.sections()} == {
        "Global": {"use-clouds": "true", "clouds-file": "/etc/config/clouds.yaml", "ca-file": "/etc/config/ca.crt"},
        "LoadBalancer": {"floating-network-id": "abc"},
    }
    manager, driver = (yaml.safe_load(each["spec"]["valuesContent"]) for each in manifests(server, "openstack.yaml"))
    assert (manager["cluster"]["name"], driver["clusterID"]) == (cluster, cluster)
    assert manager["secret"]["name"] == driver["secret"]["name"] == secret["metadata"]["name"]


@pytest.mark.more  # test_rke2_config.py has both versions
def test_ipv6(devcloud: Any, images: tuple[str, str]) -> None:
    """Rules, manifests and URLs for IPv6; a second IP version needs a second subnet, also for Heat."""
    lab = Lab(devcloud)
    lab.apply(*IPV6)
    made = Cluster(lab, images[0])
    networks = {"cluster_cidr": "fd42::/56", "service_cidr": "fd43::/112"}
    cidrs = {"ssh_allowed_cidrs": ["2001:db8::/64", "192.0.2.0/24"]}
    plain = {"server_count": 1, "wait_timeout": 0}
    two = {"cluster_cidr": "fd42::/56,10.42.0.0/16", "service_cidr": "fd43::/112,10.43.0.0/16"}
    (refused,) = lab.plan(*IPV6, made.stack(**plain, **two)).refusals
    assert "second_subnet" in str(refused)
    with pytest.raises(SpecError, match="cluster_cidr"):
        lab.plan(*IPV6, made.stack(**plain, cluster_cidr="10.42.0.0/16,10.44.0.0/16"))
    (refused,) = lab.plan(*IPV6, made.stack(**plain, cluster_cidr="fd42::/56")).refusals
    assert "cluster_cidr and service_cidr have different IP versions" in str(refused)
    lab.apply(*IPV6, made.stack(**plain, **networks, **cidrs))
    shown = {each["output_key"]: each["output_value"] for each in stack_values(made)["outputs"]}
    address = shown["api_address"]
    assert shown["api_endpoint"] == f"https://[{address}]:6443"
    assert f"server: https://[{address}]:9345" in shown["join_config"]
    config = checked_config(server := files_of(made, "server"), "server")
    assert (config["cluster-cidr"], config["tls-san"][0]) == ("fd42::/56", address)
    (vip,) = (each for each in manifests(server, "kube-vip.yaml") if each["kind"] == "DaemonSet")
    (container,) = vip["spec"]["template"]["spec"]["containers"]
    assert {"name": "vip_subnet", "value": "128"} in container["env"]
    rules = lab.as_user().connection.network.security_group_rules(direction="ingress")
    found = {(each.ether_type, each.protocol, each.port_range_min, each.remote_ip_prefix) for each in rules}
    expected = {("IPv6", "tcp", 6443, None), ("IPv6", "tcp", 2379, None), ("IPv6", "udp", 8472, None)}
    expected |= {("IPv6", "ipv6-icmp", None, None), ("IPv6", "tcp", 22, "2001:db8::/64")}
    assert expected | {("IPv4", "tcp", 22, "192.0.2.0/24")} <= found
    assert not [each for each in found if each[0] == "IPv4" and each[1] and each[2] != 22]
    lab.destroy()


IPV6 = (
    Network(name="nodes"),
    Subnet(name="nodes", network="nodes", cidr="2001:db8:1::/64"),
    Keypair(name="key", public_key=KEY),
)
