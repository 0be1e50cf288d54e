"""The declaration of an RKE2 or RKE cluster, and its nodes."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from annotated_types import Len
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from openstack_prep.base.fields import Address, File, Name, Reads, Strict, Text, cidr, matching
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.raw import Raw, Steps, dotted
from openstack_prep.base.secret import Secret, from_spec, secrets_in
from openstack_prep.kubernetes.keys.schema import (
    SECRET,
    hide,
    hide_secrets,
    hide_variable,
    is_variable,
    load_schema,
    map_values,
    union,
)

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue


# --- config -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReadsSecrets:
    """Annotation: secrets of this mapping, by RKE2's schema or the one named, may have sources such as {env: NAME}."""

    name: Literal["cluster.yml", "node"]

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        def read(value: Any, info: Any) -> Any:
            schema = union(load_schema(self.name), load_schema("server"))
            try:
                found = with_secrets(value, schema, info.context)
                _note_plain(found, schema, info.context)
                return found
            except InvalidValue as error:  # an error type without the value, which is secret
                raise PydanticCustomError(
                    "secret", "{what}", {"what": error.what, "fix": error.fix, "code": error.code}
                ) from None

        return core_schema.with_info_before_validator_function(read, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(schema)


def with_secrets(value: object, schema: Raw, context: Raw) -> object:
    """Return a configuration with its secrets read from their sources; strings of several lines are kept as they are.

    Raises InvalidValue, which names the key and the fix.
    """

    def read(found: object, of: Raw, steps: Steps) -> object:
        one_line = isinstance(found, str) and found and "\n" not in found
        if SECRET not in of or of["type"] == "object" or not (one_line or isinstance(found, dict)):
            return found
        if is_variable(of) and isinstance(found, str) and not isinstance(hide_variable(found), Secret):
            return found
        try:
            return from_spec(found, **context)
        except InvalidValue as error:
            raise InvalidValue(f"{dotted(steps)}: {error.what}", error.fix, error.code) from None

    return map_values(value, schema, read)


def _note_plain(config: object, schema: Raw, context: Raw) -> None:
    """Tell the reader of the spec of the secrets that are left as text: of several lines, or within another text."""
    known = set(map(id, secrets_in(config)))
    for secret in secrets_in(hide(hide_secrets(config, schema))):
        if id(secret) not in known and "given" in context:
            context["given"](secret.reveal())


ClusterConfig = Annotated[Mapping[Name, Any], ReadsSecrets("cluster.yml")]
NodeConfig = Annotated[Mapping[Name, object], ReadsSecrets("node")]


# --- model ------------------------------------------------------------------------------------


LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
WORD = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
Role = Literal["controlplane", "etcd", "worker"]


@dataclass(frozen=True, kw_only=True)
class Node:
    """One machine: RKE reaches it at ``address``, the other nodes at ``internal_address``."""

    name: str
    address: str
    internal_address: str
    roles: tuple[Role, ...]
    labels: Mapping[str, str]
    taints: tuple[str, ...]
    config: Raw = field(default_factory=dict)
    second_address: str = ""
    """Of the other IP version, in a dual-stack cluster."""


def validate_indexes(value: object) -> object:
    """Validate a node index (3), range (0-2) or open range (3-)."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if isinstance(value, str):
        found = re.fullmatch(r"(\d{1,4})(-(\d{1,4})?)?", value)
        if not found or (found[3] and int(found[3]) < int(found[1])):
            raise InvalidValue("is not a node index or range", "write one such as 0, 0-2 or 3-")
    return value


def read_networks(value: object) -> object:
    """Read a network, or one of each IP version with a comma between them, as RKE2 and Kubernetes take them."""
    if not isinstance(value, str) or "," not in value:
        return cidr(value)
    found = [str(cidr(each.strip())) for each in value.split(",")]
    versions = [ipaddress.ip_network(each).version for each in found]
    if sorted(versions) != [4, 6]:
        raise InvalidValue("is not one network of each IP version", "write 10.42.0.0/16,fd00:42::/56, or one network")
    return ",".join(found)


def validate_version(value: object) -> object:
    """Validate a version of Kubernetes; YAML reads 1.35 as a number."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise InvalidValue(
            "is a number in YAML", "write the full version, such as v1.35.7+rke2r1 or v1.31.1-rancher1-1"
        )
    return value


Networks = Annotated[str, Reads(read_networks)]
"""A network in CIDR notation, or two of different IP versions with a comma between them."""
ClusterName = Annotated[
    Name,
    matching(WORD, "is not a name of a cluster", "use at most 63 letters, digits, hyphens, underscores and dots"),
]
"""A name that printed commands contain; Cilium's own rule for its clusters is stricter."""
DnsLabel = Annotated[
    Name, matching(LABEL, "is not a DNS label", "use at most 63 lower-case letters, digits and hyphens")
]
Namespace = DnsLabel
Indexes = Annotated[str, Reads(validate_indexes, {"type": ["string", "integer"], "pattern": r"^\d+(-\d*)?$"})]


@dataclass(frozen=True, kw_only=True)
class NodeGroup(Strict):
    """A group of nodes, selected by their indexes in the stack."""

    nodes: Indexes
    """Indexes of the nodes: 0, 0-2, or 3- for the fourth and all after it."""
    roles: Annotated[tuple[Role, ...], Len(1)]
    """Roles of the nodes."""
    labels: Mapping[Name, Text] | None = None
    """Kubernetes labels."""
    taints: tuple[Name, ...] = ()
    """Kubernetes taints, each as key=value:effect or key:effect."""
    config: NodeConfig | None = field(default=None, repr=False)
    """Any other keys of these nodes' config.yaml (RKE2), or of a node in cluster.yml (RKE)."""

    @property
    def last(self) -> int | None:
        """The last index; None for an open range."""
        first, hyphen, last = self.nodes.partition("-")
        return None if hyphen and not last else int(last or first)

    def has(self, index: int) -> bool:
        """Whether the group contains the node with this index."""
        return int(self.nodes.partition("-")[0]) <= index <= (index if self.last is None else self.last)


def validate_host(value: object) -> object:
    """Validate the host and port of a registry, as in names of images."""
    if isinstance(value, str) and ("://" in value or value.endswith("/")):
        raise InvalidValue("is not HOST or HOST:PORT", "remove the scheme and the trailing slash")
    return value


@dataclass(frozen=True, kw_only=True)
class Registry(Strict):
    """A registry of container images that may require a login."""

    url: Annotated[Name, Reads(validate_host)]
    """Host and port, without a scheme."""
    user: Name | None = None
    """User name."""
    password: Secret | None = field(default=None, repr=False)
    """Password."""
    is_default: bool | None = None
    """Whether the cluster's own images are pulled from this registry."""


@dataclass(frozen=True, kw_only=True)
class KubernetesCluster:
    """An RKE2 or RKE cluster; fields with the same meaning have the same name for both."""

    distribution: Literal["rke2", "rke"] = "rke"
    """Kubernetes distribution."""
    kubernetes_version: Annotated[Name, Reads(validate_version)] | None = None
    """Version, such as v1.35.7+rke2r1 or v1.31.1-rancher1-1; default: the distribution's own."""
    roles: tuple[NodeGroup, ...] = ()
    """Roles of the nodes. Default for RKE: the first three nodes (of fewer than three: the first) are controlplane and
    etcd, and all are workers."""
    user: Name | None = None
    """User for SSH logins; default: the stack's output login_user, else ubuntu."""
    ssh_key_path: File | None = None
    """Private key for SSH logins (RKE); default: RKE's own, ~/.ssh/id_rsa."""
    cluster_cidr: Networks | None = None
    """Network of pods, or two, of IPv4 and IPv6 (dual-stack): 10.42.0.0/16,fd00:42::/56; default: allocated from
    cluster_networks."""
    service_cidr: Networks | None = None
    """Network of Services, or two as in cluster_cidr; default: allocated from cluster_networks."""
    cluster_dns: Address | None = None
    """Address of the cluster's DNS, within service_cidr; default: its tenth address."""
    network_plugin: Name | None = None
    """RKE2's cni or RKE's network plugin; default: canal, or with a section cilium: cilium (RKE: none)."""
    external_cloud_provider: bool = False
    """Whether the OpenStack cloud controller manager will be deployed; nodes wait for it."""
    private_registries: tuple[Registry, ...] = field(default=(), repr=False)
    """Registries of container images."""
    config: ClusterConfig | None = field(default=None, repr=False)
    """Any other keys of config.yaml (RKE2) or cluster.yml (RKE), as those programs spell them; secrets may be given
    by a source such as {env: NAME}."""
