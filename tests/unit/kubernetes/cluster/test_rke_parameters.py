"""What an RKE2 cluster puts into the parameters of its stack; tests/functional compares it with the nodes' files."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from openstack_prep.base.errors import SpecError
from openstack_prep.base.secret import Secret
from openstack_prep.cloud.no_cloud import NoCloud
from openstack_prep.core.model import Context, Resource
from openstack_prep.core.resource import resolve
from openstack_prep.kubernetes.cluster.rke_cluster import RkeCluster
from openstack_prep.kubernetes.cluster.rke_parameters import shown_keys
from openstack_prep.kubernetes.model import NodeGroup, Registry
from openstack_prep.resources.heat import heat_package
from openstack_prep.resources.orchestration.stack import Stack
from openstack_prep.spec import Spec
from openstack_prep.spec.resolution import refuse_mistakes
from tests.unit.conftest import resolved

GIVEN = {
    **dict.fromkeys(("server_image", "agent_image"), "i"),
    **dict.fromkeys(("server_flavor", "agent_flavor"), "f"),
    **{"key_name": "k", "network": "n", "subnet": "s"},
}
MASTER = ("controlplane", "etcd")
SERVERS = NodeGroup(nodes="0-2", roles=MASTER)


@pytest.fixture(autouse=True)
def template(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parse the shipped template once, because that is most of the time of a test."""
    monkeypatch.setattr(heat_package, "read", read_template)


read_template = cache(heat_package.read)


def stack(**parameters: Any) -> Stack:
    return Stack(name="a", template="shipped:rke2-cluster.yaml", parameters=GIVEN | parameters)


def cluster(**fields: Any) -> RkeCluster:
    return RkeCluster(**{"name": "a", "stack": "a", "directory": "/tmp/a", "distribution": "rke2"} | fields)


def of_stack(one: Stack, other: RkeCluster) -> Stack:
    """Return the stack with what the cluster provides."""
    found, *_ = resolve(one, Context(resources=[one, other], cloud=NoCloud.as_cloud(), for_apply=False))
    assert isinstance(found, Stack)
    return found


def given(one: Stack, other: RkeCluster) -> dict[str, Any]:
    return {name: each for name, each in of_stack(one, other).given.items() if name not in GIVEN}


def refused(one: Stack, other: RkeCluster) -> list[tuple[str | None, str]]:
    resources: list[Resource] = [one, other]
    found = resolved(other, resources, NoCloud.as_cloud())
    assert isinstance(found, RkeCluster)
    return [(each.field, each.what) for each in found._mistakes(None, ())]


NETWORKS = {"cluster_cidr": "10.42.0.0/16", "service_cidr": "10.43.0.0/16"}


@pytest.mark.parametrize(
    ("parameters", "fields", "expected"),
    [
        ({}, {}, {}),
        (
            {},
            {"config": {"profile": "cis", "disable-kube-proxy": True, "kubelet-arg": ["v=2"]}},
            {
                "profile": "cis",
                "server_config": {"disable-kube-proxy": True, "kubelet-arg": ["v=2"]},
                "agent_config": {"kubelet-arg": ["v=2"]},
            },
        ),
        (
            {"server_config": {"debug": True}, "tls_san": "a.example"},
            {"config": {"secrets-encryption": True, "tls-san": ["b.example"]}, "cluster_dns": "10.43.0.5"},
            {
                "server_config": {"secrets-encryption": True, "cluster-dns": "10.43.0.5", "debug": True},
                "tls_san": ["a.example", "b.example"],
            },
        ),
        (
            {},
            {"config": {"ingress-controller": ["traefik", "ingress-nginx"]}},
            {"ingress_controller": "traefik,ingress-nginx"},
        ),
        ({"server_config": '{"debug": true}'}, {"config": {"v": 2}}, {
            "server_config": {"debug": True, "v": 2}, "agent_config": {"v": 2}
        }),
        (
            {},
            {"roles": (SERVERS, NodeGroup(nodes="3-", roles=("worker",), labels={"disk": "fast"}))},
            {"agent_config": {"node-label": ["disk=fast"]}},
        ),
        (
            {},
            {"roles": (NodeGroup(nodes="0-2", roles=(*MASTER, "worker")), NodeGroup(nodes="3-", roles=("worker",)))},
            {"server_taint": False},
        ),
        (
            {"agents_to_remove": ["0"]},
            {
                "roles": (
                    replace(SERVERS, taints=("a=b:NoSchedule",)),
                    NodeGroup(nodes="3", roles=("worker",), labels={"disk": "fast"}),
                    NodeGroup(nodes="4", roles=("worker",)),
                )
            },
            {
                "agents_to_remove": ["0"],
                "server_config": {"node-taint": ["a=b:NoSchedule", "CriticalAddonsOnly=true:NoExecute"]},
                "agent_node_configs": {"1": {"node-label": ["disk=fast"]}},
            },
        ),
        ({"agent_count": 0}, {"roles": (SERVERS,)}, {"agent_count": 0, "server_taint": False}),
        (
            {},
            {"private_registries": (Registry(url="r.example", is_default=True),)},
            {"server_config": {"system-default-registry": "r.example"}},
        ),
    ],
    ids=str,
)  # fmt: skip
def test_keys(parameters: dict[str, Any], fields: dict[str, Any], expected: dict[str, Any]) -> None:
    assert given(stack(**parameters), cluster(**fields)) == NETWORKS | expected
    assert refused(stack(**parameters), cluster(**fields)) == []


def test_secrets_are_hidden_parameters() -> None:
    """None is among the parameters that a plan shows."""
    config = {"token": Secret("t0ken"), "etcd-s3-access-key": Secret("key"), "datastore-endpoint": "http://u:p@db"}
    login = Registry(url="r.example", user="u", password=Secret("pass"))
    found = of_stack(stack(), cluster(config=config, private_registries=(login,)))
    values = {name: each.reveal() for name, each in (found.secret_parameters or {}).items()}
    assert values.pop("token") == "t0ken"
    assert {name: json.loads(each) for name, each in values.items()} == {
        "server_secret_config": {"etcd-s3-access-key": "key", "datastore-endpoint": "http://u:p@db"},
        "registries": {"configs": {"r.example": {"auth": {"username": "u", "password": "pass"}}}},
    }
    assert not set(map(str, found.given)) & {*values, "token"}
    images = {each.parameter: set(each.secrets) for each in found.neighbours.secrets_images}
    assert images["server_secrets"] == {"token", "server_secret_config", "registries"}
    assert images["agent_secrets"] == {"token", "registries"}


@pytest.mark.parametrize(
    ("parameters", "fields", "field"),
    [
        ({"profile": "etcd"}, {"config": {"profile": "cis"}}, "config.profile"),
        ({"agent_config": {"debug": False}}, {"config": {"debug": True}}, "config.debug"),
        (
            {},
            {"roles": (replace(SERVERS, config={"token": Secret("x")}), NodeGroup(nodes="3-", roles=("worker",)))},
            "roles[0].config.token",
        ),
        ({}, {"cluster_cidr": "10.42.0.0/16,fd42::/56", "service_cidr": "10.43.0.0/16,fd43::/112"}, "cluster_cidr"),
        ({}, {"config": {"token-file": "/root/token"}}, "config.token-file"),
        ({}, {"roles": (NodeGroup(nodes="0-1", roles=MASTER), NodeGroup(nodes="2-", roles=("worker",)))}, "roles"),
        ({}, {"roles": (NodeGroup(nodes="0-3", roles=MASTER), NodeGroup(nodes="4-", roles=("worker",)))}, "roles"),
        ({"server_taint": True}, {"roles": (NodeGroup(nodes="0-", roles=(*MASTER, "worker")),)}, "roles"),
        (
            {"server_config": {"node-label": ["x=y"]}},
            {"roles": (replace(SERVERS, labels={"a": "b"}), NodeGroup(nodes="3-", roles=("worker",)))},
            "roles",
        ),
        (
            {},
            {"roles": (
                NodeGroup(nodes="0", roles=("etcd",)), NodeGroup(nodes="1-2", roles=MASTER),
                NodeGroup(nodes="3-", roles=("worker",)),
            )},
            "roles",
        ),
    ],
    ids=str,
)  # fmt: skip
def test_what_the_stack_contradicts(parameters: dict[str, Any], fields: dict[str, Any], field: str) -> None:
    found = refused(stack(**parameters), cluster(**fields))
    assert {each for each, _ in found} == {field}
    networks = {name: fields.get(name, network) for name, network in NETWORKS.items()}
    assert given(stack(**parameters), cluster(**fields)) == networks | parameters


def test_two_sources_of_a_secret() -> None:
    one = replace(stack(), secret_parameters={"token": Secret("T0kenOfTheCluster123")})
    assert [field for field, _ in refused(one, cluster(config={"token": Secret("An0ther")}))] == ["config"]


def test_a_template_of_the_users_own(tmp_path: Any) -> None:
    """It takes no keys of config.yaml: the files are for its nodes, and the parameters that it has are set."""
    path = tmp_path / "t.yaml"
    types = "{cni: {type: comma_delimited_list}, server_count: {type: number}}"
    path.write_text(f"heat_template_version: wallaby\nparameters: {types}\n")
    own = Stack(name="a", template=str(path), parameters={"server_count": 1})
    found = of_stack(own, cluster(network_plugin="cilium", config={"debug": True}))
    assert found.given == {"server_count": 1, "cni": ["cilium"]}


def test_keys_of_parameters_that_files_show() -> None:
    """What the parameters of a stack give its nodes, and what Heat shows of one that no spec declares."""
    one = stack(etcd_s3_bucket="b", ingress_controller="traefik", server_config={"etcd-s3-region": "here"})
    known = resolved(cluster(), [one, cluster()], NoCloud.as_cloud())
    assert isinstance(known, RkeCluster)
    assert shown_keys(known, "server", {}) == {
        **{"ingress-controller": "traefik", "etcd-s3": True, "etcd-s3-bucket": "b", "etcd-s3-region": "here"},
        "etcd-s3-endpoint": "s3.amazonaws.com",
    }
    assert shown_keys(known, "agent", {}) == {}
    live = {"profile": "cis", "agent_config": '{"v": 2}', "server_config": "{}"}
    assert shown_keys(cluster(), "agent", live) == {"profile": "cis", "v": 2}


def test_a_spec_with_mistakes_reports_each_once() -> None:
    spec = Spec(name="lab", resources=(stack(), cluster(config={"profle": "cis"})))
    with pytest.raises(SpecError) as caught:
        refuse_mistakes(spec)
    assert [each.field for each in caught.value.mistakes] == ["config.profle"]
