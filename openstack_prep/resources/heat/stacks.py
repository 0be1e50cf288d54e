"""The stacks of a project as Heat reports them: inputs, resources and outputs.

Source: Orchestration API v1, "Stacks" (show, template, environment, files), "Stack resources"
(nested_depth, mark unhealthy); Compute API, "Servers" (delete_on_termination since microversion 2.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import quote

from openstack_prep.base.errors import NotFound
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.cloud_run import CloudRun, only_one
from openstack_prep.core.model import Resource
from openstack_prep.core.run import query
from openstack_prep.resources.lists.queries import stacks_of as stacks_of

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud

PORT, SERVER, VOLUME = "OS::Neutron::Port", "OS::Nova::Server", "OS::Cinder::Volume"
KEYPAIR, CONTAINER = "OS::Nova::KeyPair", "OS::Swift::Container"
STARS = "******"
"""What Heat shows in place of the value of a hidden parameter."""


@dataclass(frozen=True)
class HeatResource:
    """A resource of a stack, or of a nested stack."""

    name: str
    type: str
    id: str
    """The id of what it has created; empty if it has created nothing."""
    status: str
    stack: str
    """Name of the stack that contains it."""
    path: str
    """Name and id of that stack, as in a URL."""
    nested: str
    """Name of the stack that this resource is; empty if it is not a stack."""

    @classmethod
    def read(cls, raw: Raw) -> HeatResource:
        links = {link["rel"]: str(link["href"]).partition("/stacks/")[2] for link in reversed(raw["links"])}
        path = links.get("stack", "")
        return cls(
            name=raw["resource_name"],
            type=raw["resource_type"],
            id=raw["physical_resource_id"] or "",
            status=raw["resource_status"],
            stack=path.rpartition("/")[0],
            path=path,
            nested=links.get("nested", "").rpartition("/")[0],
        )


@dataclass(frozen=True)
class HeatStack:
    """A stack by name and id, for one identity; its resources are read once."""

    cloud: Cloud
    name: str
    id: str

    @property
    def path(self) -> str:
        return f"/stacks/{quote(self.name, safe='')}/{self.id}"

    def show(self) -> Values:
        """Return the stack with its outputs."""
        shown: Values = self.cloud.orchestration.ask("GET", self.path)["stack"]
        return shown

    def inputs(self) -> tuple[Values, Values, Values]:
        """Return the inputs of the stack: template, files, environment. Heat shows hidden parameters as stars."""
        return self.template, self.files, self.environment

    @cached_property
    def template(self) -> Values:
        """The template that Heat has."""
        return self.cloud.orchestration.get(f"{self.path}/template")

    @cached_property
    def files(self) -> Values:
        """The files that Heat has with the template."""
        return self.cloud.orchestration.get(f"{self.path}/files")

    @cached_property
    def environment(self) -> Values:
        return self.cloud.orchestration.get(f"{self.path}/environment")

    @property
    def hidden(self) -> frozenset[str]:
        """The hidden parameters that were given, by name, also those of nested templates.

        Heat shows them as stars (27.0.0, engine/service.py, get_environment); others have their defaults, which the
        templates show.
        """
        sections = (self.environment.get(name) or {} for name in ("parameters", "parameter_defaults"))
        return frozenset(name for section in sections for name, value in section.items() if value == STARS)

    @cached_property
    def resources(self) -> list[HeatResource]:
        """Its resources, including those of nested stacks."""
        path, params = f"{self.path}/resources", {"nested_depth": DEPTH}
        answer = self.cloud.orchestration.ask("GET", path, params=params)
        return list(map(HeatResource.read, answer["resources"]))

    @cached_property
    def security_groups(self) -> list[Values]:
        """The security groups of the project."""
        return self.cloud.network.list("/security-groups", "security_groups", project_id=self.cloud.project_id)

    @cached_property
    def servers(self) -> list[Values]:
        """The servers of the project."""
        return self.cloud.compute.list("/servers/detail", "servers")

    @property
    def contained_ids(self) -> frozenset[str]:
        """The ids of all that is deleted with it: its resources, and the volumes that go with its servers."""
        return self._resource_ids | self.attached_ids

    @property
    def _resource_ids(self) -> frozenset[str]:
        return frozenset(self._unique_id(each) for each in self.resources if each.id)

    def _unique_id(self, resource: HeatResource) -> str:
        """Return the id of what a resource has created, with its owner if the id is a name.

        Source: openstack_heat 27.0.1, engine/resources/openstack/nova/keypair.py and swift/container.py, handle_create.
        """
        if resource.type == CONTAINER:
            return f"{self.cloud.project_id}/{resource.id}"
        return f"{self.owner} {resource.id}" if resource.type == KEYPAIR else resource.id

    @cached_property
    def owner(self) -> str:
        """The name of the user by whom Heat works on the stack."""
        return str(self.show()["stack_owner"])

    @property
    def attached_ids(self) -> frozenset[str]:
        """The ids of volumes beside its resources that Nova deletes with its servers: its own, or those of others."""
        ids = self._resource_ids
        mine = (server for server in self.servers if server["id"] in ids) if SERVER in self.types else ()
        volumes = (volume for each in mine for volume in each["os-extended-volumes:volumes_attached"])
        return frozenset(volume["id"] for volume in volumes if volume["delete_on_termination"]) - ids

    @cached_property
    def places(self) -> dict[str, str]:
        """The position of each stack in the tree: "" is the root, "nodes.0." that of a member."""
        parents = {each.nested: each for each in self.resources if each.nested}
        places = {self.name: ""}

        def place(stack: str) -> str:
            if stack not in places:
                parent = parents[stack]
                places[stack] = f"{place(parent.stack)}{parent.name}."
            return places[stack]

        for stack in parents:
            place(stack)
        return places

    @property
    def by_place(self) -> dict[str, HeatResource]:
        """Its resources, by place."""
        return {self.places[each.stack] + each.name: each for each in self.resources}

    @property
    def made(self) -> dict[str, HeatResource]:
        """The resources that were created, by place."""
        return {place: each for place, each in self.by_place.items() if each.id and each.status != "CREATE_FAILED"}

    @property
    def ids(self) -> dict[str, str]:
        """The ids of the resources that are directly in it, by their names in the template."""
        return {each.name: each.id for each in self.made.values() if each.stack == self.name}

    @property
    def types(self) -> frozenset[str]:
        return frozenset(each.type for each in self.resources)

    def missing(self) -> dict[str, HeatResource]:
        """Return, by place, the servers and ports that Heat considers existing but that no longer exist."""
        standing: set[str] = set()
        if SERVER in self.types:
            standing |= {server["id"] for server in self.servers}
        if PORT in self.types:
            project = self.cloud.project_id
            standing |= {
                each["id"] for each in self.cloud.network.list("/ports", "ports", project_id=project, fields="id")
            }
        return {place: each for place, each in self._leaves.items() if each.id not in standing}

    def cut_off(self) -> dict[str, HeatResource]:
        """Return, by place, the servers whose last port no longer exists, which Heat does not notice.

        Servers whose port is a resource of the same stack are excluded: that port is missing, and Heat gives them its
        successor.
        """
        bare = {
            server["id"]
            for server in self.servers
            if not (server["addresses"] or server["status"] in ("BUILD", "ERROR"))
        }
        beside = {place.rpartition(".")[0] for place, each in self._leaves.items() if each.type == PORT}
        found = {
            place: each
            for place, each in self._leaves.items()
            if each.id in bare and place.rpartition(".")[0] not in beside
        }
        return {} if found and "allocate_network" in str(self.inputs()[:2]) else found  # such servers may need no port

    def made_of_images(self) -> dict[str, tuple[HeatResource, Raw]]:
        """Return, by place, its volumes, and what Cinder has copied from the image that each was made of."""
        listed = self.cloud.volume.list("/volumes/detail", "volumes") if VOLUME in self.types else ()
        origins = {each["id"]: each.get("volume_image_metadata") for each in listed}
        made = {place: each for place, each in self.made.items() if each.type == VOLUME}
        return {place: (each, origin) for place, each in made.items() if (origin := origins.get(each.id))}

    @property
    def _leaves(self) -> dict[str, HeatResource]:
        """The servers and ports that were created, by place."""
        leaves = (each for each in self.resources if not each.nested and each.id)
        return {self.places[leaf.stack] + leaf.name: leaf for leaf in leaves if leaf.type in (SERVER, PORT)}

    def properties_of(self, resource: HeatResource) -> Raw:
        """Return the properties that Heat has set last, without defaults; empty if it has no event of it any more.

        Only events show them. Heat deletes the oldest ones (27.0.1, common/config.py, max_events_per_stack), and lists
        the newest one first.
        """
        path = f"/stacks/{resource.path}/resources/{quote(resource.name, safe='')}/events"
        try:
            events = self.cloud.orchestration.get(path)["events"]
        except NotFound:  # 27.0.1, api/openstack/v1/events.py, index: there is no event
            return {}
        shown: Raw = self.cloud.orchestration.ask("GET", f"{path}/{events[0]['id']}", log=False)["event"]
        return shown.get("resource_properties") or {}

    def mark_unhealthy(self, resource: HeatResource, reason: str) -> None:
        """Make the next update create a resource again."""
        body = {"mark_unhealthy": True, "resource_status_reason": f"openstack-prep: {reason}"}
        path = f"/stacks/{resource.path}/resources/{quote(resource.name, safe='')}"
        self.cloud.orchestration.request("PATCH", path, json=body)


# The stacks of a project, as Heat lists them: one request per project.
#
# Source: Orchestration API v1, "List stacks".


def has_tagged(run: CloudRun, project: Resource | None) -> bool:
    """Whether a project has stacks that the spec manages."""
    cloud = run.find_tenant(project)
    if cloud is None or not cloud.has("orchestration"):
        return False
    return any(run.ownership.tag in (raw.get("tags") or ()) for raw in stacks_of(run, cloud))


def stack_names(run: CloudRun, project: Resource | None) -> list[str]:
    """Return the names of a project's stacks, as far as a connection to it lists them."""
    cloud = run.find_tenant(project)
    return [stack["stack_name"] for stack in stacks_of(run, cloud)] if cloud is not None else []


DEPTH = 5  # levels of nested stacks: Heat's default maximum


def stack_of(
    run: CloudRun, project: Resource | None, name: str, *, elsewhere: bool = False
) -> tuple[Cloud, Raw] | None:
    """Return a project's stack, by name or id, and the connection that sees it; None if the stack does not exist yet.

    Whoever has the role admin in any project sees the stacks of all projects: ``elsewhere`` accepts a stack of another
    project if the project has none. Raises NotUnique, and NotAllowed if no connection may list stacks: a stack that is
    not visible must not be treated as missing.
    """
    cloud = run.find_tenant(project)
    if cloud is None:
        if run.acting_user(project) is not None or run.find_project_id(project) is None:
            return None  # the user who would have created it does not exist yet
        cloud = run.tenant(project)
    named = [stack for stack in stacks_of(run, cloud) if name in (stack["stack_name"], stack["id"])]
    own = [each for each in named if each.get("project") in (None, cloud.project_id)]
    found = only_one(own or (named if elsewhere else ()), f"stack/{name}")
    return (cloud, found) if found else None


# A stack, whoever created it, as kinds that depend on it see it: its outputs, servers and ports.
#
# Source: Orchestration API v1, "Show stack details".


@dataclass(frozen=True)
class Outputs:
    """The outputs of a stack and the values of its parameters, with hidden ones as stars.

    ``settled``: no operation is in progress and the last one succeeded; otherwise outputs may be outdated.
    """

    stack: str
    settled: bool
    values: Raw
    parameters: Raw


def read_outputs(run: CloudRun, project: Resource | None, name: str) -> Outputs | None:
    """Return the outputs of a stack, by name or id; None if the stack does not exist yet.

    An administrator may refer to a stack of any project. Raises NotUnique, NotAllowed.
    """
    found = stack_of(run, project, name, elsewhere=True)
    if found is None:
        return None
    cloud, stack = found
    raw = _shown(run, cloud, stack["stack_name"], stack["id"])
    return Outputs(
        stack=name,
        settled=raw["stack_status"].endswith("_COMPLETE") and not raw["stack_status"].startswith("DELETE"),
        values={output["output_key"]: output.get("output_value") for output in raw.get("outputs") or ()},
        parameters=raw.get("parameters") or {},
    )


@query
def _shown(run: CloudRun, cloud: Cloud, name: str, stack_id: str) -> Raw:
    """Return a stack with its outputs and parameters."""
    return HeatStack(cloud, name, stack_id).show()


# --- the servers and ports of a stack, including those of nested stacks ---
#
# Source: Orchestration API v1, "List resources" (nested_depth).


def servers_of(run: CloudRun, project: Resource | None, stack: str) -> frozenset[str] | None:
    """Return the ids of the servers of a project's stack; None if the stack does not exist yet.

    Raises NotAllowed if no connection may read it: a stack that is not visible must not be treated as missing.
    """
    return _ids_of(run, project, stack, SERVER)


def ports_in(run: CloudRun, project: Resource | None, stack: str) -> frozenset[str]:
    """Return the ids of the ports that are resources of a project's stack, whichever server has them."""
    return _ids_of(run, project, stack, PORT) or frozenset()


def _ids_of(run: CloudRun, project: Resource | None, stack: str, kind: str) -> frozenset[str] | None:
    seen = stack_of(run, project, stack)
    if seen is None:
        return None
    cloud, found = seen
    resources = _resources(run, cloud, found["stack_name"], found["id"])
    return frozenset(resource.id for resource in resources if resource.type == kind and resource.id)


@query
def _resources(run: CloudRun, cloud: Cloud, name: str, stack_id: str) -> Sequence[HeatResource]:
    """Return a stack's resources, including those of nested stacks."""
    return HeatStack(cloud, name, stack_id).resources
