"""What an RKE2 cluster puts into the parameters of its stack; tests/functional compares it with the nodes' files."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from openstack_prep.base.errors import SpecError
from openstack_prep.base.secret import Secret
from openstack_prep.cloud.no_cloud import NoCloud
from openstack_prep.core.model import Context, Resource
from openstack_prep.core.resource import resolve
from openstack_prep.kubernetes.cluster.rke_cluster import RkeCluster
from openstack_prep.kubernetes.cluster.rke_parameters import shown_keys, warnings, without_tokens_of_stack
from openstack_prep.kubernetes.keys.schema import load_schema
from openstack_prep.kubernetes.model import NodeGroup, Registry, with_secrets
from openstack_prep.kubernetes.rke2 import NO_PODS
from openstack_prep.kubernetes.rke2_rules import document_faults
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


def warned(one: Stack, other: RkeCluster) -> list[str]:
    found = resolved(other, [one, other], NoCloud.as_cloud())
    assert isinstance(found, RkeCluster)
    return list(warnings(found))


WANTED = ("server_names", "server_addresses", "agent_names", "agent_addresses", "api_address")
OUTPUTS = json.dumps({name: {"value": []} for name in WANTED})
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
            {"pool1_count": 1},  # whose node is no agent of ``roles``
            {"roles": (SERVERS, NodeGroup(nodes="3-", roles=("worker",), labels={"disk": "fast"}))},
            {"pool1_count": 1, "agent_node_configs": {each: {"node-label": ["disk=fast"]} for each in "01"}},
        ),
        (
            {"agent_count": 0, "pool1_count": 1},
            {"roles": (SERVERS,)},
            {"agent_count": 0, "pool1_count": 1},  # servers have the taint of the template
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


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        (
            {"config": {"kube-apiserver-arg": ["audit-webhook-config-file=http://u:s3cret@proxy"]}},
            "config.kube-apiserver-arg",
        ),
        ({"config": {"helm-job-image": "http://s3cret@proxy/image"}}, "config.helm-job-image"),
        (
            {
                "roles": (
                    SERVERS,
                    NodeGroup(nodes="3-", roles=("worker",), config={"kubelet-arg": ["provider-id=b://s3cret@c"]}),
                )
            },
            "roles[1].config.kubelet-arg",
        ),
    ],
    ids=str,
)
def test_logins_that_heat_would_show(fields: dict[str, Any], field: str) -> None:
    found = refused(stack(), cluster(**fields))
    assert [each for each, _ in found] == [field]
    assert "s3cret" not in str(found)
    assert given(stack(), cluster(**fields)) == NETWORKS


def test_variables_are_hidden() -> None:
    """Agents get those of kube-proxy alone, and no keys of other components."""
    variables = {"kube-apiserver-extra-env": ["TZ=UTC", Secret("P=http://u:p@x")], "kube-proxy-extra-env": "A=b"}
    config = {**variables, "etcd-image": "r.example/etcd", "kube-proxy-image": "r.example/proxy"}
    found = of_stack(stack(), cluster(config=config))
    values = {name: json.loads(each.reveal()) for name, each in (found.secret_parameters or {}).items()}
    assert values == {
        "server_secret_config": {
            "kube-apiserver-extra-env": ["TZ=UTC", "P=http://u:p@x"],
            "kube-proxy-extra-env": "A=b",
        },
        "agent_secret_config": {"kube-proxy-extra-env": "A=b"},
    }
    assert found.given["server_config"] == {name: config[name] for name in ("etcd-image", "kube-proxy-image")}
    assert found.given["agent_config"] == {"kube-proxy-image": "r.example/proxy"}


def test_variables_have_sources(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PX", "HTTPS_PROXY=http://u:s3cret@proxy")
    schema, said = load_schema("server"), list[str]()
    config = {"etcd-extra-env": [{"env": "PX"}, "TZ=UTC"]}
    found: Any = with_secrets(config, schema, {"base": tmp_path, "warn": said.append})
    first, second = found["etcd-extra-env"]
    assert (first.reveal(), second, said) == ("HTTPS_PROXY=http://u:s3cret@proxy", "TZ=UTC", [])
    assert list(document_faults(found, schema)) == []
    with_secrets({"etcd-extra-env": ["P=http://u:s3cret@proxy"]}, schema, {"base": tmp_path, "warn": said.append})
    assert len(said) == 1


def test_values_are_not_printed() -> None:
    found = refused(
        stack(server_config={"kubelet-arg": ["root-dir=hush"]}), cluster(config={"kubelet-arg": ["cert-dir=hush"]})
    )
    assert [field for field, _ in found] == ["config.kubelet-arg"]
    assert "hush" not in str(found)


def test_a_stack_that_has_the_same_secrets() -> None:
    """The stack's win, and files show them; a source that was not asked is no mistake."""
    login = Registry(url="r.example", user="u", password=Secret("pass"))
    registries = {"mirrors": {}, "configs": {"r.example": {"auth": {"username": "u", "password": "pass"}}}}
    secrets = {
        "token": Secret("T0ken"),
        "registries": Secret(json.dumps(registries)),
        "server_secret_config": Secret('{"datastore-endpoint": "http://u:p@db"}'),
    }
    one = replace(stack(), secret_parameters=secrets)
    config = {"token": Secret("T0ken"), "datastore-endpoint": "http://u:p@db"}
    other = cluster(config=config, private_registries=(login,))
    assert refused(one, other) == []
    assert of_stack(one, other).secret_parameters == secrets
    for theirs, ours, field in (
        (Secret(fetch=lambda: pytest.fail("asked")), Secret("x"), None),
        (Secret(fetch=str, path="/nowhere/a"), Secret(fetch=str, path="/nowhere/a"), None),
        (Secret(fetch=str, path="/nowhere/a"), Secret(fetch=str, path="/nowhere/b"), "config"),
    ):
        given_token = replace(stack(), secret_parameters={"token": theirs})
        assert [each for each, _ in refused(given_token, cluster(config={"token": ours}))] == [field] * bool(field)
    unknown = replace(stack(), secret_parameters={"registries": Secret(missing="not here")})
    assert refused(unknown, cluster(private_registries=(login,))) == []
    assert len(warned(unknown, cluster(private_registries=(login,)))) == 1
    known = resolved(other, [one, other], NoCloud.as_cloud())
    assert isinstance(known, RkeCluster)
    assert (without_tokens_of_stack(known).config or {}).keys() == {"datastore-endpoint"}


def test_a_copy_of_an_earlier_template(tmp_path: Any) -> None:
    """It lacks parameters, which is a warning: its nodes never got what they are for."""
    path = tmp_path / "t.yaml"
    types = "{server_config: {type: json}, agent_config: {type: json}, server_count: {type: number, default: 3}}"
    types = types[:-1] + ", agent_count: {type: number, default: 2}}"
    path.write_text(f"heat_template_version: wallaby\nparameters: {types}\noutputs: {OUTPUTS}\n")
    workers = (
        NodeGroup(nodes="3", roles=("worker",), labels={"disk": "fast"}),
        NodeGroup(nodes="4-", roles=("worker",)),
    )
    fields: dict[str, Any] = {
        "roles": (SERVERS, *workers),
        "private_registries": (Registry(url="r.example", user="u", password=Secret("pass")),),
        "config": {"token": Secret("T0ken"), "debug": True},
    }
    own, other = Stack(name="a", template=str(path), parameters={"server_count": 3}), cluster(**fields)
    assert refused(own, other) == []
    assert [each.split(":")[0] for each in warned(own, other)] == ["roles", "private_registries", "config"]
    found = of_stack(own, other)
    assert (found.given["server_config"], found.secret_parameters) == ({"debug": True}, None)


def test_a_taint_without_agents() -> None:
    """One of the roles reaches the servers; tests/unit/kubernetes/test_stack_config.py has the warnings."""
    tainted = cluster(roles=(replace(SERVERS, taints=(NO_PODS,)),))
    assert given(stack(agent_count=0), tainted)["server_config"] == {"node-taint": [NO_PODS]}


@pytest.mark.parametrize(("field", "value"), [("kubernetes_version", "v1.35"), ("network_plugin", "weave")])
def test_a_wrong_value_is_reported_once(field: str, value: str) -> None:
    """At the cluster, and not also by the constraints of the parameter that it would become."""
    found = given(stack(), cluster(**{field: value}))
    assert {"kubernetes_version": "rke2_version", "network_plugin": "cni"}[field] not in found
    assert [where for where, _ in refused(stack(), cluster(**{field: value}))] == [field]


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
