"""The sections of a spec: one declaration for reading, for the schema and for docs/spec.md."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from functools import cache, lru_cache
from typing import Annotated, Any, ClassVar, NamedTuple

from openstack_prep import kinds
from openstack_prep.base.fields import Name, Reads
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.core.model import Resource
from openstack_prep.spec.variables import Variable, VariableName


def included(value: object) -> object:
    """Check the path of an included file, which has to be the same on each machine."""
    if isinstance(value, str) and not is_included(value):
        raise InvalidValue("is not a relative path", "write one relative to this file, without variables")
    return value


def is_included(path: str) -> bool:
    """Whether a path is relative and has no variables."""
    return bool(path) and path[0] not in "/~" and not any(each in path for each in ("\0", "://", "${"))


Included = Annotated[str, Reads(included)]


@dataclass(frozen=True, kw_only=True)
class Clouds:
    """Entries of clouds.yaml to use."""

    admin: Name | None = None
    """Entry for an administrator's work; --os-cloud overrides it, and it overrides OS_CLOUD."""
    tenant: Name | None = None
    """Entry scoped to the project, for the project's own work; default: the user that the spec declares."""
    custom_policies: bool = False
    """Whether the cloud's own policies give members more rights than OpenStack's defaults: a right that is missing by
    the defaults is then a warning, not a refusal."""


@dataclass(frozen=True, kw_only=True)
class Sections:
    """The sections of a spec, in the order of reports."""

    __pydantic_config__: ClassVar[dict[str, object]] = Resource.__pydantic_config__ | {"title": "openstack_prep spec"}

    name: Name
    """Name of the cluster. Ownership tags contain it, so keep it. To rename a spec, first destroy it by its old name.
    """
    include: tuple[Included, ...] = ()
    """Other files with sections, relative to this file; paths in a file are relative to its own folder."""
    variables: Mapping[VariableName, Variable] = field(default_factory=dict)
    """Values that differ from one use of the spec to another: `${name}` in a value stands for them."""
    clouds: Clouds = Clouds()
    """Entries of clouds.yaml to use."""
    project: kinds.Project | None = None
    """The project; default: the project that the cloud entry is scoped to."""
    users: tuple[kinds.User, ...] = ()
    """Users; the first with a password and a role in the project does the project's own work."""
    role_assignments: tuple[kinds.RoleAssignment, ...] = ()
    """Role assignments."""
    quota: kinds.Quota | None = None
    """Quotas of the project."""
    flavors: tuple[kinds.Flavor, ...] = ()
    """Sizes of servers."""
    images: tuple[kinds.Image, ...] = ()
    """Images to upload."""
    keypairs: tuple[kinds.Keypair, ...] = ()
    """SSH public keys."""
    networks: tuple[kinds.Network, ...] = ()
    """Networks."""
    subnets: tuple[kinds.Subnet, ...] = ()
    """Subnets."""
    routers: tuple[kinds.Router, ...] = ()
    """Routers."""
    security_groups: tuple[kinds.SecurityGroup, ...] = ()
    """Security groups and their rules."""
    ports: tuple[kinds.Port, ...] = ()
    """Ports, such as those that reserve virtual addresses."""
    server_groups: tuple[kinds.ServerGroup, ...] = ()
    """Server groups."""
    floating_ips: tuple[kinds.FloatingIP, ...] = ()
    """Floating IPs."""
    floating_ip_attachments: tuple[kinds.FloatingIPAttachment, ...] = ()
    """Floating IPs on existing ports."""
    address_pools: tuple[kinds.AddressPool, ...] = ()
    """Addresses that are reserved for load balancers of clusters."""
    pool_files: tuple[kinds.PoolFile, ...] = ()
    """Files that register addresses of networks outside of OpenStack."""
    recordsets: tuple[kinds.Recordset, ...] = ()
    """DNS records in zones of Designate."""
    address_pairs: tuple[kinds.AddressPairs, ...] = ()
    """Addresses that ports may use besides their own."""
    stacks: tuple[kinds.Stack, ...] = ()
    """Heat stacks."""
    exposures: tuple[kinds.Exposure, ...] = ()
    """What leads from outside to the services, virtual machines and hosts of clusters."""
    exposed_clusters: tuple[kinds.ExposedCluster, ...] = ()
    """Clusters with exposures: the files for them, and their nodes in OpenStack."""
    cluster_networks: kinds.ClusterNetworks | None = None
    """Networks from which the networks of pods and Services are allocated, so that those of two clusters never overlap.
    """
    rke_clusters: tuple[kinds.RkeCluster, ...] = ()
    """RKE and RKE2 clusters on the nodes of stacks."""
    object_store: kinds.ObjectStore | None = None
    """The project's account in the object store."""
    application_credentials: tuple[kinds.ApplicationCredential, ...] = ()
    """Application credentials, each with the clouds.yaml entry that stores its secret."""
    clouds_yaml: tuple[kinds.CloudsEntry, ...] = ()
    """Entries to write to clouds.yaml files."""
    env_file: kinds.EnvFile | None = None
    """A file of shell variables to write."""
    install_config: kinds.InstallConfig | None = None
    """An install-config.yaml to write."""

    def placed(self) -> Iterator[tuple[tuple[str | int, ...], Resource]]:
        """Yield every resource and its place."""
        for section in fields(self):
            value = getattr(self, section.name)
            if isinstance(value, Resource):
                yield (section.name,), value
            elif isinstance(value, tuple):
                for index, resource in enumerate(value):
                    if isinstance(resource, Resource):
                        yield (section.name, index), resource


class Section(NamedTuple):
    """The place of resources of a kind in a spec: a single resource, or a list."""

    name: str
    many: bool
    rank: int
    """Its position among the sections."""


@cache
def _by_kind() -> dict[str, Section]:
    """Return the sections by the names of the classes in their types, which loads none of these classes."""
    found = {}
    for rank, section in enumerate(fields(Sections)):
        for name in re.findall(r"\bkinds\.(\w+)", str(section.type)):
            found[name] = Section(section.name, str(section.type).startswith("tuple"), rank)
    return found


def section_of(kind: type[Resource]) -> Section:
    """Return the section for resources of a kind, or of one derived from it; raises KeyError if no spec has them."""
    sections = _by_kind()
    return sections[next((each.__name__ for each in kind.__mro__ if each.__name__ in sections), kind.__name__)]


@cache
def adapter() -> Any:
    """Return pydantic's adapter of all sections, for the schema."""
    from pydantic import TypeAdapter

    return TypeAdapter(Sections)


def read(text: str, given: Collection[str], context: Mapping[str, object], name: str | None = None) -> Sections:
    """Return the sections in a JSON text; ``given`` are their names, and ``name`` is the spec's if it is not there.

    Raises pydantic's ValidationError.
    """
    names = tuple(each.name for each in fields(Sections) if each.name in given or (each.name, name) == ("name", None))
    known: dict[str, Any] = {} if name is None else {"name": name}
    return Sections(**known, **vars(_adapter_of(names).validate_json(text, context=context)))


@lru_cache(maxsize=16)
def _adapter_of(names: Sequence[str]) -> Any:
    """Return pydantic's adapter of some sections; for all of them it takes three times as long."""
    from pydantic import TypeAdapter

    chosen = [(each.name, each.type) for each in fields(Sections) if each.name in names]
    # pydantic looks the types up in the module, and takes the settings from the class
    namespace = {"__module__": __name__, "__pydantic_config__": Sections.__pydantic_config__}
    return TypeAdapter(make_dataclass(Sections.__name__, chosen, namespace=namespace, kw_only=True))
