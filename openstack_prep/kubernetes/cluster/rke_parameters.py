"""The parameters of a stack that an RKE2 cluster sets, so that the nodes get the configuration that its files show.

Source: heat_templates/rke2-cluster.yaml, which merges its parameters into the files of cloud-init.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, islice
from typing import Any, NamedTuple

from openstack_prep.base.errors import Mistake
from openstack_prep.base.raw import Raw, Values
from openstack_prep.base.secret import Secret, join_secrets
from openstack_prep.core.text import show
from openstack_prep.kubernetes import rke2
from openstack_prep.kubernetes.cluster.rke_related import PARAMETERS, RkeFields
from openstack_prep.kubernetes.keys.schema import SECRET, hide_secrets, load_schema
from openstack_prep.kubernetes.model import Node
from openstack_prep.kubernetes.networks import split
from openstack_prep.kubernetes.nodes import nodes_of, unmatched
from openstack_prep.resources.heat.heat_flow import TRUTH
from openstack_prep.resources.heat.heat_parameters import items, mapping_of
from openstack_prep.resources.orchestration.stack_inputs import StackValues

KEYS = {"profile": "profile", "ingress-controller": "ingress_controller"}
"""Keys of config that are such parameters: by the profile, the template also sets up the host."""
TOKENS = {"token": "token", "agent-token": "agent_token"}
"""Keys of config that are hidden parameters."""
FILES = ("token-file", "agent-token-file")
"""Keys of config that name files which the nodes of a stack do not have."""
SECRETS, REGISTRIES = "server_secret_config", "registries"
"""Hidden parameters with all other secret keys of config, and with registries.yaml."""
SERVERS = ("server", "agent")
S3 = ("bucket", "endpoint", "region", "folder", "access-key", "secret-key")


class _Member(NamedTuple):
    """A node of a group of the stack, and the keys that its role in the cluster gives it."""

    role: str
    """server or agent, as the stack starts it."""
    number: int
    """Within its group of the stack: Heat's %index%."""
    node: Node
    keys: Values

    @property
    def taints(self) -> Sequence[str]:
        """Taints of a server; an agent has only those that its role declares."""
        return self.keys["node-taint"] if self.role == "server" else ()

    @property
    def own_keys(self) -> Values:
        """The keys that the template does not write by itself: it adds the taint of servers without pods."""
        keys = {name: each for name, each in {**self.node.config, **self.keys}.items() if each not in (None, [], "")}
        if self.role == "server" and keys.get("node-taint") == [rke2.NO_PODS]:
            del keys["node-taint"]
        return keys


def is_configured(cluster: RkeFields) -> bool:
    """Whether the spec declares the stack of an RKE2 cluster, and its template takes keys of config.yaml."""
    declared = (cluster.related.template(cluster) or {}).get("parameters") or {}
    return cluster.distribution == "rke2" and {f"{role}_config" for role in SERVERS} <= declared.keys()


def counts(cluster: RkeFields) -> dict[str, str]:
    """Return the numbers of nodes that the spec declares, by parameter of the stack, as strings like Heat's."""
    names = ("server_count", "agent_count") if cluster.distribution == "rke2" else ("node_count",)
    return {name: str(_value(cluster, name)) for name in names}


def _value(cluster: RkeFields, parameter: str) -> Any:
    """Return the value of a parameter that the spec declares, or its default."""
    declared = (cluster.related.template(cluster) or {}).get("parameters") or {}
    return cluster.related.parameters(cluster).get(parameter, (declared.get(parameter) or {}).get("default"))


def of_cluster(cluster: RkeFields) -> StackValues:
    """Return what a cluster puts into the parameters of its stack; only its fields while it has mistakes."""
    fields = {parameter: getattr(cluster, field) for field, parameter in PARAMETERS.items()}
    if fields["cni"]:
        fields["cni"] = fields["cni"].split(",")
    values: Values = {name: value for name, value in fields.items() if value}
    if not is_configured(cluster) or list(rke2.mistakes(cluster, None)) or list(mistakes(cluster)):
        return StackValues(values)
    plain, secrets = _parts(cluster)
    values |= {parameter: ",".join(items(plain.pop(key))) for key, parameter in KEYS.items() if key in plain}
    additions: dict[str, Any] = {"tls_san": items(plain.pop("tls-san", ()))}
    members = _members(cluster)
    if any(each.role == "server" for each in members) and not any(each.taints for each in members):
        values["server_taint"] = False
    for role in SERVERS:
        known = load_schema("server" if role == "server" else "agent")["properties"]
        additions[f"{role}_config"] = {name: each for name, each in plain.items() if name in known}
        own = {str(each.number): each.own_keys for each in members if each.role == role}
        if _differ(list(own.values())):
            additions[f"{role}_node_configs"] = {index: keys for index, keys in own.items() if keys}
        elif own:
            additions[f"{role}_config"] |= next(iter(own.values()))
    return StackValues(values, {name: each for name, each in additions.items() if each}, secrets)


def _parts(cluster: RkeFields) -> tuple[Values, dict[str, Secret]]:
    """Return the keys of config without secrets, and the hidden parameters with the secrets."""
    schema = load_schema("server")
    config: Any = hide_secrets(cluster.config or {}, schema)
    default = next((each.url for each in cluster.private_registries if each.is_default), None)
    config |= {"cluster-dns": cluster.cluster_dns} if cluster.cluster_dns else {}
    config |= {"system-default-registry": default} if default else {}
    private = {name: each for name, each in config.items() if SECRET in schema["properties"].get(name, {})}
    secrets = {parameter: private.pop(key) for key, parameter in TOKENS.items() if key in private}
    logins = rke2.registries(cluster)
    mappings = {SECRETS: private, REGISTRIES: logins}
    secrets |= {name: join_secrets(each) for name, each in mappings.items() if each}
    return {name: each for name, each in config.items() if name not in (*private, *TOKENS)}, secrets


def _members(cluster: RkeFields) -> list[_Member]:
    """Return the nodes as the roles of a cluster describe them; none without roles, or if their number is unknown."""
    numbers = list(counts(cluster).values())
    if not cluster.roles or not all(each.isdecimal() for each in numbers):
        return []
    servers, agents = map(int, numbers)
    if list(unmatched(cluster, servers + agents)):
        return []
    nodes = nodes_of(cluster, [(str(index), "", "") for index in range(servers + agents)])
    works = rke2.has_workers(nodes)
    numbered = [("server", each) for each in islice(_numbers(cluster, "servers_to_remove"), servers)]
    numbered += [("agent", each) for each in islice(_numbers(cluster, "agents_to_remove"), agents)]
    return [
        _Member(role, number, node, rke2.keys_of_role(cluster, node, has_workers=works))
        for (role, number), node in zip(numbered, nodes, strict=True)
    ]


def _numbers(cluster: RkeFields, removed: str) -> Iterator[int]:
    """Yield the indexes that Heat gives the members of a group, which it does not give again once they are removed."""
    gone = items(_value(cluster, removed) or ())
    return (each for each in count() if str(each) not in gone)


def _differ(keys: Sequence[Raw]) -> bool:
    return any(each != keys[0] for each in keys)


# --- what the files of the nodes show --------------------------------------------------------


def shown_keys(cluster: RkeFields, role: str, live: Raw) -> Values:
    """Return the keys that the parameters of a stack give a server or agent; ``live`` are those of an existing one.

    The parameters server_config and agent_config override all others.
    """
    in_spec = cluster.related.stack(cluster) is not None

    def value(name: str) -> Any:
        return _value(cluster, name) if in_spec else live.get(name)

    keys: Values = {"profile": value("profile")}
    if role == "server":
        keys["ingress-controller"] = value("ingress_controller")
        if value("etcd_s3_bucket"):
            names = {name: f"etcd_s3_{name.replace('-', '_')}" for name in S3}
            given = {
                name: cluster.related.secret_parameter(cluster, each) or value(each) for name, each in names.items()
            }
            keys |= {"etcd-s3": True} | {f"etcd-s3-{name}": each for name, each in given.items() if each != HIDDEN}
        if value("etcd_s3_config_secret"):
            keys |= {"etcd-s3": True, "etcd-s3-config-secret": value("etcd_s3_config_secret")}
    keys = {name: each for name, each in keys.items() if each not in (None, "")}
    return keys | dict(mapping_of(value(f"{role}_config")) or {})


HIDDEN = "******"
"""What Heat shows of a hidden parameter."""


# --- checks ----------------------------------------------------------------------------------


def mistakes(cluster: RkeFields) -> Iterator[Mistake]:
    """Yield what a cluster declares and its stack cannot give to the nodes, or contradicts."""
    if not is_configured(cluster):
        return
    yield from _contradictions(cluster)
    yield from _of_members(cluster)
    dual = len(split(cluster.cluster_cidr)) > 1
    if dual and not _value(cluster, "second_subnet"):
        what = "the nodes need an address of each IP version"
        yield Mistake("cluster_cidr", what, f"set parameter second_subnet of stack/{cluster.stack}")
    declared = (cluster.related.template(cluster) or {})["parameters"]
    plain, secrets = _parts(cluster)
    for name in sorted(secrets.keys() - declared.keys()):
        field = "private_registries" if name == REGISTRIES else "config"
        yield Mistake(field, f"the template of stack/{cluster.stack} has no parameter {name}", UPDATE)
    stack = cluster.related.stack(cluster)
    for name in sorted(secrets.keys() & (stack.secrets.keys() if stack else ())):
        field = "private_registries" if name == REGISTRIES else "config"
        what = f"secret_parameters.{name} of stack/{cluster.stack} is set as well"
        yield Mistake(field, what, "keep one of them")
    for name in [each for each in FILES if each in plain]:
        fix = f"set secret_parameters.{name.removesuffix('-file').replace('-', '_')} of the stack"
        yield Mistake(f"config.{name}", "the nodes of the stack do not have this file", fix)


UPDATE = "copy the shipped template again, or put the files on the nodes and remove the field"


def _contradictions(cluster: RkeFields) -> Iterator[Mistake]:
    """Yield keys that the cluster and the parameters of its stack set to different values."""
    given = cluster.related.parameters(cluster)
    for name, value in (cluster.config or {}).items():
        parameter = KEYS.get(name)
        if parameter and given.get(parameter) and items(given[parameter]) != items(value):
            yield _differs(cluster, name, value, f"parameter {parameter}", given[parameter])
        for role in SERVERS:
            other = (mapping_of(given.get(f"{role}_config")) or {}).get(name)
            if other is not None and other != value:
                yield _differs(cluster, name, value, f"parameter {role}_config.{name}", other)


def _differs(cluster: RkeFields, name: str, value: object, place: str, other: object) -> Mistake:
    shown = "" if isinstance(value, Secret) else f"{show(value)} "
    what = f"{shown}differs from {place} of stack/{cluster.stack}"
    what += "" if isinstance(value, Secret) else f", which is {show(other)}"
    return Mistake(f"config.{name}", what, "keep one of them")


def _of_members(cluster: RkeFields) -> Iterator[Mistake]:
    """Yield roles that the nodes of the stack cannot have."""
    private = [
        f"roles[{index}].config.{name}"
        for index, group in enumerate(cluster.roles)
        for name, each in (group.config or {}).items()
        if isinstance(each, Secret)
    ]
    if private:  # what follows would compare their values
        yield from (Mistake(each, "is a secret of some nodes", "move it to config of the cluster") for each in private)
        return
    members = _members(cluster)
    declared = (cluster.related.template(cluster) or {})["parameters"]
    for each in members:
        if rke2.is_server(each.node) != (each.role == "server"):
            kind = "a server" if each.role == "server" else "an agent"
            what = f"node {each.node.name} is {kind} of stack/{cluster.stack}"
            fix = "give servers controlplane or etcd, and agents worker alone; or change server_count of the stack"
            yield Mistake("roles", f"{what}, and has {', '.join(each.node.roles)}", fix)
        elif each.node is members[0].node and not {"controlplane", "etcd"} <= {*each.node.roles}:
            what = "node 0 starts the cluster, and the other servers join it at the address of the API"
            yield Mistake("roles", what, "give node 0 controlplane and etcd")
    for role in SERVERS:
        own = [each.own_keys for each in members if each.role == role]
        given = mapping_of(cluster.related.parameters(cluster).get(f"{role}_config")) or {}
        for key in sorted({key for keys in own for key in keys.keys() & given.keys() if keys[key] != given[key]}):
            place = f"parameter {role}_config.{key} of stack/{cluster.stack}"
            what = f"{key} differs from {place}, which is {show(given[key])}"
            yield Mistake("roles", what, "keep one of them")
        parameter = f"{role}_node_configs"
        if _differ(own) and parameter not in declared:
            what = f"the {role}s differ, and the template of stack/{cluster.stack} has no parameter {parameter}"
            yield Mistake("roles", what, UPDATE)
    taint = cluster.related.parameters(cluster).get("server_taint")
    wanted = [bool(each.taints) for each in members if each.role == "server"]
    if taint is not None and wanted and TRUTH.get(str(taint).lower(), taint) is not any(wanted):
        what = f"server_taint {show(taint)} of stack/{cluster.stack} contradicts the role worker of servers"
        yield Mistake("roles", what, "remove server_taint from the parameters")
