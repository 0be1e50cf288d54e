"""The parameters of a stack that an RKE2 cluster sets, so that the nodes get the configuration that its files show.

Source: heat_templates/rke2-cluster.yaml, which merges its parameters into the files of cloud-init.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count, islice
from typing import Any, Literal, NamedTuple

from openstack_prep.base.errors import Mistake
from openstack_prep.base.raw import Raw, Values
from openstack_prep.base.secret import Secret, join_secrets, revealed_in, secrets_in
from openstack_prep.core.text import show
from openstack_prep.kubernetes import rke2
from openstack_prep.kubernetes.agent_pools import AgentPool, pools_in
from openstack_prep.kubernetes.cluster.rke_related import PARAMETERS, RkeFields
from openstack_prep.kubernetes.keys.schema import SECRET, TEXT, URL_USER, hide_secrets, keys_of_config, load_schema
from openstack_prep.kubernetes.model import Node
from openstack_prep.kubernetes.networks import split
from openstack_prep.kubernetes.nodes import nodes_of, unmatched
from openstack_prep.resources.heat.flow import TRUTH
from openstack_prep.resources.heat.parameters import items, mapping_of
from openstack_prep.resources.orchestration.inputs import StackValues

KEYS = {"profile": "profile", "ingress-controller": "ingress_controller"}
"""Keys of config that are such parameters: by the profile, the template also sets up the host."""
TOKENS = {"token": "token", "agent-token": "agent_token"}
"""Keys of config that are hidden parameters."""
FILES = ("token-file", "agent-token-file")
"""Keys of config that name files which the nodes of a stack do not have."""
SECRETS, AGENT_SECRETS, REGISTRIES = "server_secret_config", "agent_secret_config", "registries"
"""Hidden parameters with all other secret keys of config, with those of them for agents, and with registries.yaml."""
Role = Literal["server", "agent"]
SERVERS: tuple[Role, ...] = ("server", "agent")
S3 = ("bucket", "endpoint", "region", "folder", "access-key", "secret-key")


class _Member(NamedTuple):
    """A node of a group of the stack, and the keys that its role in the cluster gives it."""

    role: str
    """server or agent, as the stack starts it."""
    number: int
    """Within its group of the stack: Heat's %index%."""
    node: Node
    keys: Values
    is_tainted: bool
    """Whether the template adds the taint of servers without pods: not in a stack without agents."""

    @property
    def taints(self) -> Sequence[str]:
        """Taints of a server; an agent has only those that its role declares."""
        return self.keys["node-taint"] if self.role == "server" else ()

    @property
    def own_keys(self) -> Values:
        """The keys that the template does not write by itself: it adds the taint of servers without pods."""
        keys = {name: each for name, each in {**self.node.config, **self.keys}.items() if each not in (None, [], "")}
        if self.role == "server" and self.is_tainted and keys.get("node-taint") == [rke2.NO_PODS]:
            del keys["node-taint"]
        return keys


def is_configured(cluster: RkeFields) -> bool:
    """Whether the spec declares the stack of an RKE2 cluster, and its template takes keys of config.yaml."""
    declared = (cluster.related.template(cluster) or {}).get("parameters") or {}
    return cluster.distribution == "rke2" and {f"{role}_config" for role in SERVERS} <= declared.keys()


def counts(cluster: RkeFields) -> dict[str, str]:
    """Return the numbers of nodes that the spec declares, by parameter of the stack, as strings like Heat's."""
    names = ("server_count", "agent_count") if cluster.distribution == "rke2" else ("node_count",)
    numbers = {name: str(value_of(cluster, name)) for name in names}
    return numbers | {
        declared_pool.parameter("count"): declared_pool.number for declared_pool in declared_pools(cluster)
    }


def declared_pools(cluster: RkeFields) -> list[AgentPool]:
    """Return the pools of agents that the spec declares for the stack of a cluster of RKE2."""
    declared = (cluster.related.template(cluster) or {}).get("parameters") or {}
    known = {name: value_of(cluster, name) for name in declared} if cluster.distribution == "rke2" else {}
    return pools_in(known)


def value_of(cluster: RkeFields, parameter: str) -> Any:
    """Return the value of a parameter that the spec declares, or its default."""
    declared = (cluster.related.template(cluster) or {}).get("parameters") or {}
    return cluster.related.parameters(cluster).get(parameter, (declared.get(parameter) or {}).get("default"))


def of_cluster(cluster: RkeFields) -> StackValues:
    """Return what a cluster puts into the parameters of its stack; only its valid fields while it has mistakes.

    Heat's constraints would refuse a wrong value as well, so that one mistake would be reported twice.
    """
    wrong = {mistake.where for mistake in rke2.mistakes(cluster, None)}
    fields = {parameter: getattr(cluster, field) for field, parameter in PARAMETERS.items() if field not in wrong}
    if fields.get("cni"):
        fields["cni"] = fields["cni"].split(",")
    values: Values = {name: value for name, value in fields.items() if value}
    if not is_configured(cluster) or wrong or list(mistakes(cluster)):
        return StackValues(values)
    plain, secrets = _parts(cluster)
    hidden = {name: each if isinstance(each, Secret) else join_secrets(each) for name, each in secrets.items()}
    values |= {parameter: ",".join(items(plain.pop(key))) for key, parameter in KEYS.items() if key in plain}
    additions: dict[str, Any] = {"tls_san": items(plain.pop("tls-san", ()))}
    members, pools = _members(cluster), declared_pools(cluster)
    if any(member.role == "server" for member in members) and not any(member.taints for member in members):
        values["server_taint"] = False
    for role in SERVERS:
        known = keys_of_config(role)
        additions[f"{role}_config"] = {name: each for name, each in plain.items() if name in known}
        own = {str(member.number): member.own_keys for member in members if member.role == role}
        if _differ(list(own.values())) or (role == "agent" and any(not pool.is_empty for pool in pools)):
            additions[f"{role}_node_configs"] = {index: keys for index, keys in own.items() if keys}
        elif own:
            additions[f"{role}_config"] |= next(iter(own.values()))
    return StackValues(values, {name: each for name, each in additions.items() if each}, hidden)


def _parts(cluster: RkeFields) -> tuple[Values, dict[str, Secret | Raw]]:
    """Return the keys of config without secrets, and the values of hidden parameters."""
    schema = load_schema("server")
    config: Any = hide_secrets(cluster.config or {}, schema)
    default = next(
        (private_registry.url for private_registry in cluster.private_registries if private_registry.is_default), None
    )
    config |= {"cluster-dns": cluster.cluster_dns} if cluster.cluster_dns else {}
    config |= {"system-default-registry": default} if default else {}
    private = {
        name: each
        for name, each in config.items()
        if SECRET in schema["properties"].get(name, {}) or any(secrets_in(each))
    }
    secrets: dict[str, Secret | Raw] = {
        parameter: private.pop(key) for key, parameter in TOKENS.items() if key in private
    }
    of_agents = {name: each for name, each in private.items() if name in keys_of_config("agent")}
    mappings = {SECRETS: private, AGENT_SECRETS: of_agents, REGISTRIES: rke2.registries(cluster)}
    secrets |= {name: each for name, each in mappings.items() if each}
    return {name: each for name, each in config.items() if name not in (*private, *TOKENS)}, secrets


def _members(cluster: RkeFields) -> list[_Member]:
    """Return the nodes as the roles of a cluster describe them; none without roles, or if their number is unknown."""
    numbers = list(counts(cluster).values())
    if not cluster.roles or not all(number.isdecimal() for number in numbers):
        return []
    servers, agents, *in_pools = map(int, numbers)
    if list(unmatched(cluster, servers + agents)):
        return []
    nodes = nodes_of(cluster, [(str(index), "", "") for index in range(servers + agents)])
    works = rke2.has_workers(nodes) or any(in_pools)
    numbered = [("server", each) for each in islice(_numbers(cluster, "servers_to_remove"), servers)]
    numbered += [("agent", each) for each in islice(_numbers(cluster, "agents_to_remove"), agents)]
    return [
        _Member(role, number, node, rke2.keys_of_role(cluster, node, has_workers=works), agents > 0 or any(in_pools))
        for (role, number), node in zip(numbered, nodes, strict=True)
    ]


def _numbers(cluster: RkeFields, removed: str) -> Iterator[int]:
    """Yield the indexes that Heat gives the members of a group, which it does not give again once they are removed."""
    gone = items(value_of(cluster, removed) or ())
    return (each for each in count() if str(each) not in gone)


def _differ(keys: Sequence[Raw]) -> bool:
    return any(key != keys[0] for key in keys)


# --- what the files of the nodes show --------------------------------------------------------


def shown_keys(cluster: RkeFields, role: str, live: Raw, pool: AgentPool | None = None) -> Values:
    """Return the keys that the parameters of a stack give a server or agent; ``live`` are those of an existing one.

    The parameters server_config and agent_config override all others, and the config of its pool overrides these.
    """
    in_spec = cluster.related.stack(cluster) is not None

    def value(name: str) -> Any:
        return value_of(cluster, name) if in_spec else live.get(name)

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
    of_pool = mapping_of(value(pool.parameter("config"))) if pool else None
    return keys | dict(mapping_of(value(f"{role}_config")) or {}) | dict(of_pool or {})


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
    if dual and not value_of(cluster, "second_subnet"):
        what = "the nodes need an address of each IP version"
        yield Mistake("cluster_cidr", what, f"set parameter second_subnet of stack/{cluster.stack}")
    plain, _ = _parts(cluster)
    for place, value in _plain_keys(cluster):
        if URL_USER.search(str(value)):
            what = "a URL in it contains a login, and Heat would show it to every reader of the project"
            yield Mistake(
                place, what, "remove the login, or put it into a file on the nodes or a variable of *-extra-env"
            )
    for name, agrees in _set_twice(cluster):
        if agrees is False:
            what = f"secret_parameters.{name} of stack/{cluster.stack} is set as well, to another value"
            yield Mistake(_field(name), what, "keep one of them, or give both the same source")
    for name in [file for file in FILES if file in plain]:
        fix = f"set secret_parameters.{name.removesuffix('-file').replace('-', '_')} of the stack"
        yield Mistake(f"config.{name}", "the nodes of the stack do not have this file", fix)


UPDATE = "copy the shipped template again, or put the files on the nodes"


def warnings(cluster: RkeFields) -> Iterator[str]:
    """Yield what the nodes of the stack do not get, or readers of the project may see."""
    if not is_configured(cluster):
        return
    declared = (cluster.related.template(cluster) or {})["parameters"]
    missing = {name: _field(name) for name in _parts(cluster)[1].keys() - declared.keys()}
    if not _private_keys(cluster):  # whose values would be compared
        members = _members(cluster)
        for role in SERVERS:
            if _differ([member.own_keys for member in members if member.role == role]):
                missing |= dict.fromkeys({f"{role}_node_configs"} - declared.keys(), "roles")
    for name, field in sorted(missing.items()):
        yield f"{field}: the template of stack/{cluster.stack} has no parameter {name}, so nodes lack it; {UPDATE}"
    for name, agrees in _set_twice(cluster):
        if agrees is None:
            what = f"{_field(name)}: secret_parameters.{name} of stack/{cluster.stack} is set as well, and nodes get it"
            yield f"{what}; keep one of them, or give both the same source"
    for place, value in _plain_keys(cluster):
        if TEXT.search(str(value)) and not URL_USER.search(str(value)):
            yield f"{place} may contain a secret, and Heat shows it to every reader of the project"


def without_tokens_of_stack(cluster: RkeFields) -> RkeFields:
    """Return a cluster without the tokens that its stack sets, which nodes get in place of those in config."""
    of_stack = [key for key, name in TOKENS.items() if cluster.related.secret_parameter(cluster, name)]
    if not is_configured(cluster) or not cluster.config:
        return cluster
    return replace(cluster, config={name: each for name, each in cluster.config.items() if name not in of_stack})


def _field(parameter: str) -> str:
    """Return the field of a cluster that sets a hidden parameter."""
    return "private_registries" if parameter == REGISTRIES else "config"


def _plain_keys(cluster: RkeFields) -> Iterator[tuple[str, object]]:
    """Yield the place and value of each key that becomes part of a parameter which Heat shows."""
    yield from ((f"config.{name}", each) for name, each in _parts(cluster)[0].items())
    for index, group in enumerate(cluster.roles):
        yield from ((f"roles[{index}].config.{name}", each) for name, each in (group.config or {}).items())


def _set_twice(cluster: RkeFields) -> Iterator[tuple[str, bool | None]]:
    """Yield the hidden parameters that cluster and stack set, and whether the stack's has what the cluster wants.

    None if only an apply can know it; then the stack's value is used.
    """
    stack = cluster.related.stack(cluster)
    given = stack.secrets if stack else {}
    wanted = _parts(cluster)[1]
    for name in sorted(wanted.keys() & given.keys()):
        ours, theirs = wanted[name], given[name]
        if isinstance(ours, Secret) and ours.path and theirs.path and not (ours.ready and theirs.ready):
            yield name, ours.path == theirs.path
        elif not all(map(_is_known, (theirs, *secrets_in(ours)))):
            yield name, None
        elif isinstance(ours, Secret):
            yield name, ours == theirs
        else:
            yield name, _contains(mapping_of(theirs.reveal()), revealed_in(ours))


def _is_known(secret: Secret) -> bool:
    """Whether no program or person has to be asked for a secret."""
    return secret.fetched or (secret.path is not None and secret.ready)


def _contains(whole: object, part: object) -> bool:
    if isinstance(whole, Mapping) and isinstance(part, Mapping):
        return all(name in whole and _contains(whole[name], each) for name, each in part.items())
    return whole == part


def _private_keys(cluster: RkeFields) -> list[str]:
    """Return the places of secrets of single nodes, for which the stack has no parameters."""
    schema = load_schema("server")
    return [
        f"roles[{index}].config.{name}"
        for index, group in enumerate(cluster.roles)
        for name, each in hide_secrets(dict(group.config or {}), schema).items()  # type: ignore[attr-defined]
        if any(secrets_in(each))
    ]


def _contradictions(cluster: RkeFields) -> Iterator[Mistake]:
    """Yield keys that the cluster and the parameters of its stack set to different values."""
    given = cluster.related.parameters(cluster)
    for name, value in (cluster.config or {}).items():
        parameter = KEYS.get(name)
        if parameter and given.get(parameter) and items(given[parameter]) != items(value):
            yield _differs(cluster, name, f"parameter {parameter}")
        for role in SERVERS:
            other = (mapping_of(given.get(f"{role}_config")) or {}).get(name)
            if other is not None and other != _known(value):
                yield _differs(cluster, name, f"parameter {role}_config.{name}")


def _known(value: object) -> object:
    """Return data with its secrets, as far as they are known here."""
    return revealed_in(value) if all(map(_is_known, secrets_in(value))) else value


def _differs(cluster: RkeFields, name: str, place: str) -> Mistake:
    """Return the mistake, without the values, which may contain secrets in any form."""
    return Mistake(f"config.{name}", f"differs from {place} of stack/{cluster.stack}", "keep one of them")


def _of_members(cluster: RkeFields) -> Iterator[Mistake]:
    """Yield roles that the nodes of the stack cannot have."""
    if private := _private_keys(cluster):  # what follows would compare their values
        yield from (Mistake(each, "is a secret of some nodes", "move it to config of the cluster") for each in private)
        return
    members = _members(cluster)
    for member in members:
        if rke2.is_server(member.node) != (member.role == "server"):
            kind = "a server" if member.role == "server" else "an agent"
            what = f"node {member.node.name} is {kind} of stack/{cluster.stack}"
            fix = "give servers controlplane or etcd, and agents worker alone; or change server_count of the stack"
            yield Mistake("roles", f"{what}, and has {', '.join(member.node.roles)}", fix)
        elif member.node is members[0].node and not {"controlplane", "etcd"} <= {*member.node.roles}:
            what = "node 0 starts the cluster, and the other servers join it at the address of the API"
            yield Mistake("roles", what, "give node 0 controlplane and etcd")
    for role in SERVERS:
        own = [member.own_keys for member in members if member.role == role]
        given = mapping_of(cluster.related.parameters(cluster).get(f"{role}_config")) or {}
        for key in sorted({key for keys in own for key in keys.keys() & given.keys() if keys[key] != given[key]}):
            place = f"parameter {role}_config.{key} of stack/{cluster.stack}"
            yield Mistake("roles", f"{key} differs from {place}", "keep one of them")
    taint = cluster.related.parameters(cluster).get("server_taint")
    wanted = [bool(member.taints) for member in members if member.role == "server"]
    if taint is not None and wanted and TRUTH.get(str(taint).lower(), taint) is not any(wanted):
        what = f"server_taint {show(taint)} of stack/{cluster.stack} contradicts the role worker of servers"
        yield Mistake("roles", what, "remove server_taint from the parameters")
