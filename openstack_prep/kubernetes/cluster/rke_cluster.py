"""An RKE2 or RKE cluster on the nodes of a stack: the files for the nodes, RKE, kubectl and Helm.

Source: RKE2's and RKE's documentation.

Source: RKE's documentation, "Adding and Removing Nodes": the next ``rke up`` applies the roles of cluster.yml.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from openstack_prep.base import shell
from openstack_prep.base.errors import Loss, Mistake, PlanRefused, SpecError
from openstack_prep.base.raw import Values, value_at
from openstack_prep.base.secret import secrets_in
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Change, Context, Key, Observed, Resource
from openstack_prep.core.observed import owner_text
from openstack_prep.core.resource import Unguarded, WrittenFile
from openstack_prep.kubernetes import cilium, cluster_yml, rke2
from openstack_prep.kubernetes.cluster import pool_addresses, rke_files, rke_parameters, rke_upgrade
from openstack_prep.kubernetes.cluster.rke_files import COMMANDS, VALUES, all_members, member, mistakes, warnings
from openstack_prep.kubernetes.cluster.rke_related import NETWORKS, RelatedResources, RkeFields
from openstack_prep.kubernetes.networks import Taken
from openstack_prep.kubernetes.nodes import groups
from openstack_prep.resources.files.marked_files import MarkedFiles, documents
from openstack_prep.resources.heat.stacks import Outputs, read_outputs
from openstack_prep.resources.identity import home
from openstack_prep.resources.lists import queries
from openstack_prep.resources.orchestration.existing import Existing
from openstack_prep.resources.orchestration.inputs import StackValues
from openstack_prep.resources.orchestration.record import StackRecord

# --- hint -------------------------------------------------------------------------------------


PLACES = {
    "cluster_cidr": ("cluster-cidr", "services.kube-controller.cluster_cidr"),
    "service_cidr": ("service-cidr", "services.kube-api.service_cluster_ip_range"),
}
"""The keys of config.yaml and cluster.yml that correspond to fields of a cluster."""


def networks_in(there: Iterable[str]) -> dict[str, str]:
    """Return the networks of pods and Services in files, by the names of their fields."""
    read = [each for text in there for each in documents(text) or ()]
    found = {}
    for name, places in PLACES.items():
        values = (value_at(document, place) for document in read for place in places)
        found[name] = next((value for value in values if isinstance(value, str)), None)
    return {name: value for name, value in found.items() if value}


BASTION = "USER@BASTION"
WAYS = "set node_floating_ips: true in the parameters of the stack, or use a bastion in its network"


def run_outputs(cluster: RkeFields, outputs: Outputs | None, folder: str) -> dict[str, str]:
    """Return the outputs for written files: their path, the next commands, warnings."""
    known = outputs if outputs and not list(mistakes(cluster, outputs)) else None
    values = {"path": folder} if cluster.distribution == "rke2" else {"path": f"{folder}/{cluster_yml.FILE}"}
    if known:
        commands, server = _one_line(_next(cluster, known, folder)), _unreachable_server(cluster, known)
        values["needs"] = f"SSH to {server}, which has no floating IP: {WAYS}; then {commands}" if server else ""
        values["next"] = "" if server else commands
        values["then"] = "; ".join(_later(cluster, folder))
        values["warning"] = "; ".join(warnings(cluster, known))
    return {name: text for name, text in values.items() if text}


def _later(cluster: RkeFields, folder: str) -> Iterator[str]:
    """Yield the files with commands for later, and when to run them."""
    if cluster.kube_vip or (cluster.cilium and cluster.cilium.load_balancer):
        yield f"{folder}/{rke_files.FILE}, when {'the cluster' if cluster.kube_vip else 'Cilium'} runs"
    if _in_a_mesh(cluster):
        yield f"{folder}/{COMMANDS}, when all clusters run"


def _next(cluster: RkeFields, outputs: Outputs, folder: str) -> str:
    """Return the commands for the kubeconfig and for Cilium, whose commands in a mesh are in a file."""
    if cluster.cilium is None or (_in_a_mesh(cluster) and cluster.cilium.mesh == "clustermesh-apiserver"):
        return _kubeconfig(cluster, outputs, folder)
    me = replace(member(cluster), values_file=f"{folder}/{VALUES[cluster.distribution]}")
    return f"{_kubeconfig(cluster, outputs, folder)}\n{cilium.install(me)}"


def _in_a_mesh(cluster: RkeFields) -> bool:
    return cluster.cilium is not None and cluster.cilium.mesh != "none" and bool(cilium.hint(all_members(cluster)))


def _kubeconfig(cluster: RkeFields, outputs: Outputs, folder: str) -> str:
    if cluster.distribution == "rke":
        return cluster_yml.kubeconfig_hint(shell.quote(f"{folder}/{cluster_yml.FILE}"))
    api = outputs.values.get("api_floating_address") or outputs.values["api_address"]
    hidden = _unreachable_server(cluster, outputs)
    server = hidden or outputs.values["node_floating_addresses"][0]
    user, kubeconfig = cluster.user or cluster_yml.DEFAULT_USER, shell.quote(f"{folder}/kubeconfig")
    return rke2.kubeconfig_hint(user, server, api, kubeconfig, cluster.name, BASTION if hidden else "")


def _unreachable_server(cluster: RkeFields, outputs: Outputs) -> str:
    """Return the address of the first server of RKE2 if nobody reaches it from outside; empty for any other."""
    if cluster.distribution == "rke" or outputs.values.get("node_floating_addresses"):
        return ""
    return str(outputs.values["server_addresses"][0])


def _one_line(commands: str) -> str:
    return commands.replace("\n", " && ")


# --- role -------------------------------------------------------------------------------------


PRECIOUS = ("controlplane", "etcd")
"""Roles that a node of a running cluster must not lose unnoticed."""


@dataclass(frozen=True)
class NewRoles:
    """A node that remains in the cluster and changes its roles."""

    name: str
    before: tuple[str, ...]
    after: tuple[str, ...]

    def __str__(self) -> str:
        return f"roles {self.name}: {', '.join(self.before) or 'none'} -> {', '.join(self.after)}"

    @property
    def in_file(self) -> str:
        """Start of the same change in the drift of cluster.yml."""
        return f"{cluster_yml.FILE}: nodes.{self.name}.role "


def changes(cluster: RkeFields, outputs: Outputs, there: Mapping[str, str]) -> tuple[NewRoles, ...]:
    """Return the nodes whose roles will differ from the written files (texts by name) when the stack is as declared.

    Nodes of RKE2 do not change roles: the stack creates servers and agents separately.
    """
    before = _roles_in(there.get(cluster_yml.FILE, "")) if cluster.distribution == "rke" else {}
    usable = outputs.settled and not list(rke_files.output_mistakes(cluster, outputs))
    names = [name.lower() for name, *_ in rke_files.machines(cluster, outputs)] if usable else list(before)
    count = rke_files.planned_nodes(cluster, outputs) if usable else rke_files.count_nodes(cluster, None)
    count = len(names) if count is None else count
    found = []
    for index, name in enumerate(names[:count]):
        group = next((each for each in groups(cluster, count) if each.has(index)), None)
        if group and name in before and {*group.roles} != {*before[name]}:
            found.append(NewRoles(name, before[name], group.roles))
    return tuple(found)


def list_losses(found: tuple[NewRoles, ...]) -> Iterator[Mistake]:
    """Yield roles that remaining nodes of a running cluster would lose."""
    for roles in found:
        lost = [role for role in PRECIOUS if role in roles.before and role not in roles.after]
        if lost:
            what = f"would lose {' and '.join(f'role {role}' for role in lost)} while remaining in the cluster"
            fix = "declare roles in the spec that keep it, or remove the node from etcd and allow the change"
            yield Mistake(str(roles), what, fix)


def _roles_in(text: str) -> dict[str, tuple[str, ...]]:
    """Return the roles of the nodes in a cluster.yml, by name."""
    read = documents(text) or [None]
    nodes: object = read[0].get("nodes") if isinstance(read[0], Mapping) else None
    found = {}
    for node in nodes if isinstance(nodes, list) else ():
        name, roles = (node.get("hostname_override"), node.get("role")) if isinstance(node, Mapping) else (None, None)
        if isinstance(name, str) and isinstance(roles, list):
            found[name] = tuple(map(str, roles))
    return found


# --- rke cluster ------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class RkeCluster(RkeFields, Unguarded):
    """The files of a cluster, created from its declaration and the outputs of its stack, and updated with them.

    The first line of each file is an ownership tag, and only the owner can read the file; a file without the tag is
    never overwritten.  Destroy keeps other files in the directory, such as RKE's state and kubeconfig.  The stack
    configures the nodes of RKE2: its template gets the networks, the plugin, the version, the choice of an external
    cloud provider, config, roles and private_registries as parameters, so that the nodes get what the files show.
    """

    @property
    def product(self) -> str:
        """Name of the product, as people write it."""
        return self.distribution.upper()

    def resolve(self, context: Context) -> Sequence[RkeCluster]:
        """Return the cluster with its networks and the related resources of the spec."""
        if self.related.clusters:
            return (self,)
        related = RelatedResources.of(context, self.allocated_from)
        known = related.clusters[self.name]
        assert isinstance(known, RkeCluster)
        return (replace(known, related=related),)

    def written_files(self, context: Context) -> Iterable[WrittenFile]:
        """Return the files that do not depend on the nodes."""
        (resolved,) = self.resolve(context)
        if not resolved.has_networks or list(resolved._mistakes(None, ())):
            return ()
        paths = (str(Path(self.directory) / name) for name in rke_files.names(resolved))
        return [WrittenFile("directory", path) for path in paths]

    def references(self) -> Iterable[Resource]:
        return (*super().references(), self.sibling(Existing, self.stack, of="stack"))

    def stack_values(self, context: Context) -> StackValues:
        """Return what an RKE2 cluster sets in its stack, which configures the nodes."""
        if self.distribution != "rke2":
            return StackValues({})
        (cluster,) = self.resolve(context)
        return rke_parameters.of_cluster(rke_files.as_declared(cluster, None))

    def desired(self) -> Values:
        values = {name: getattr(self, name) for name in ("directory", "distribution", *NETWORKS)}
        values = {name: value for name, value in values.items() if value is not None}  # no free network
        return values | {"nodes": f"of stack/{self.stack}", "drift": frozenset()}

    # --- current state --------------------------------------------------------------------

    def files(self, run: CloudRun) -> MarkedFiles:
        head = f"# {home.file_ownership(run).describe(self.name)}"
        return MarkedFiles(Path(self.directory), head, is_ours=partial(home.owns_file, run))

    def _outputs(self, run: CloudRun) -> Outputs | None:
        return read_outputs(run, self.owner, self.stack)

    def find_one(self, run: CloudRun) -> Observed | None:
        files = self.files(run)
        there = files.there()
        if not there:
            return None
        outputs = self._outputs(run)
        roles = changes(self, outputs, there) if outputs else ()
        drift = [*map(str, roles), *(self._drift(files, outputs) if outputs else ())]
        own_drift = frozenset(each for each in drift if not each.startswith(tuple(role.in_file for role in roles)))
        return Observed(
            id=self.directory,
            ours=True,
            values=self.desired() | networks_in(there.values()) | {"drift": own_drift, "roles": roles},
            outputs=self._run_outputs(outputs),
        )

    def _drift(self, files: MarkedFiles, outputs: Outputs) -> Iterator[str]:
        """Yield differences between the files and the declaration, or the reason why they are unknown."""
        wrong = list(rke_files.mistakes(self, outputs)) if outputs.settled else []
        if not outputs.settled:
            yield f"stack/{self.stack} is not complete"
        elif wrong and rke_files.planned_nodes(self, outputs) is None:
            yield from (f"{mistake.where}: {mistake.what}" for mistake in wrong)
        elif not wrong and self.has_networks:
            texts, shown = (rke_files.texts(self, outputs, openly=openly) for openly in (True, False))
            yield from files.drift(texts, shown)

    def _run_outputs(self, outputs: Outputs | None) -> dict[str, str]:
        """Return the path of the files and the next commands."""
        folder = os.path.relpath(self.directory)
        folder = self.directory if folder.startswith("..") else folder
        return run_outputs(self, outputs, folder)

    # --- checks ---------------------------------------------------------------------------

    def list_mistakes(self, context: Context) -> Iterable[Mistake]:
        (resolved,) = self.resolve(context)
        pools = pool_addresses.list_mistakes(resolved, for_plan=context.for_plan)
        return (*resolved._mistakes(None, ()), *pools)

    def list_warnings(self, context: Context) -> Iterable[str]:
        (resolved,) = self.resolve(context)
        return (*rke_files.warnings(resolved, None), *pool_addresses.list_warnings(resolved))

    def _mistakes(self, outputs: Outputs | None, taken: Sequence[Taken]) -> Iterator[Mistake]:
        found = list(rke_files.mistakes(self, outputs))
        nodes = 0 if found else rke_files.count_nodes(self, outputs) or 0
        yield from self.related.mistakes(self.name, taken, nodes)
        yield from self.related.contradictions(self.name, outputs.parameters if outputs else {})
        for mistake in found:
            yield self.mistake(f"{mistake.where}: {mistake.what}", mistake.fix, mistake.code, mistake.where)

    def _taken(self, run: CloudRun, outputs: Outputs | None) -> list[Taken]:
        """Return the existing subnets of the network of the nodes."""
        parameters = self.related.parameters(self) or (outputs.parameters if outputs else {})
        name = parameters.get("network")
        network = run.find_id(self.sibling(Existing, name, of="network")) if isinstance(name, str) and name else None
        if network is None:
            return []
        listed = queries.subnets_of(run, network)
        return [Taken(f"subnet/{block.name or block.id}", block.cidr) for block in listed]

    def check(self, run: CloudRun, observed: Observed | None) -> Iterator[Mistake]:
        outputs = self._outputs(run)
        settled = outputs if outputs is not None and outputs.settled else None
        # a stack of the spec may be about to change: its template and parameters describe the result
        described = None if self.related.stack(self) else settled
        found = list(self._mistakes(described, self._taken(run, described)))
        yield from found
        yield from dict.fromkeys(pool_addresses.check(self, run, settled.parameters if settled else {}))
        for mistake in rke_upgrade.mistakes(self, outputs.parameters) if outputs else ():
            yield self.mistake(f"{mistake.where}: {mistake.what}", mistake.fix, mistake.code, mistake.where)
        known = settled is not None and not found and not list(rke_files.mistakes(self, settled))
        names = list(rke_files.texts(self, settled, openly=False)) if settled and known else rke_files.names(self)
        for path in self.files(run).of_others(names) if self.related.has_own_directory(self.name) else ():
            yield self.mistake(
                f"{path} exists and is {owner_text(MarkedFiles.spec_of(path))}",
                "choose a different directory, or remove the file",
            )

    def list_losses(self, observed: Observed) -> Iterable[Loss]:
        for name in NETWORKS:
            before, after = observed.values.get(name), getattr(self, name)
            if after and before != after:
                what = f"{name} {before} -> {after}: a running cluster cannot change its networks"
                fix = f"write {name}: {before} into the spec, or allow the change if no cluster runs (--allow-replace)"
                yield Loss.about(self.key, what, fix)
        for loss in list_losses(observed.values.get("roles", ())):
            yield Loss.about(self.key, f"{loss.where}: {loss.what}", f"{loss.fix} (--allow-replace)")

    def list_plan_warnings(self, run: CloudRun, observed: Observed) -> Iterable[str]:
        outputs, stack = self._outputs(run), self.related.stack(self)
        if self.distribution != "rke2" or outputs is None or not outputs.settled or stack is None:
            return
        if self.has_networks and not list(rke_files.mistakes(self, outputs)):
            texts = rke_files.texts(self, outputs, openly=False)
            yield from rke_upgrade.registration_warnings(self.files(run).there(), texts)
        seen = run.known.get(stack.key)
        yield from rke_upgrade.new_agent_warnings(self, seen.record_as(StackRecord)) if seen else ()

    # --- operations ---------------------------------------------------------------------

    def render(self, run: CloudRun, *, openly: bool = False) -> dict[str, str]:
        """Return the files' texts by name, with secrets as asterisks unless ``openly``; raises SpecError."""
        outputs = self._outputs(run)
        if outputs is None:
            raise SpecError(
                [self.mistake(f"stack/{self.stack} does not exist", "create the stack, or correct the name")]
            )
        if not outputs.settled:
            raise SpecError([self.mistake(f"stack/{self.stack} is not complete", "wait for the stack, or fix it")])
        if found := list(self._mistakes(outputs, self._taken(run, outputs))):
            raise SpecError(found)
        return rke_files.texts(self, outputs, openly=openly)

    def create(self, run: CloudRun) -> Observed:
        """Write the files; raises PlanRefused if a secret of the stack, which exists by now, is not in its file here.

        No option allows to generate another one: with --allow-replace the stack itself does so, before.
        """
        stack = self.related.stack(self)
        for secret in secrets_in(stack.secret_parameters) if stack else ():
            if secret.is_to_generate:
                what = f"{secret.path} does not exist, and stack/{self.stack} has its value from elsewhere"
                raise PlanRefused([self.mistake(what, "copy the file from where the spec was applied")])
        self.files(run).write(self.render(run, openly=True))
        said = set(rke_files.warnings(self, None))  # before the plan
        for warning in rke_files.warnings(self, self._outputs(run)):
            if warning not in said:
                run.note(self.key, warning)
        observed = self.find_one(run)
        assert observed is not None
        return observed

    def update(self, run: CloudRun, observed: Observed, changes: Sequence[Change]) -> Observed:
        before = rke_upgrade.version_in(self.files(run).there().get(rke_upgrade.FILE, ""))
        if before and self.kubernetes_version not in (None, before):
            path = shlex.quote(f"{self.directory}/{rke_upgrade.FILE}")
            run.note(self.key, f"nodes that run keep {before} until you upgrade them: kubectl apply -f {path}")
        return self.create(run)

    def delete(self, run: CloudRun, observed: Observed) -> None:
        left = self.files(run).remove()
        if left:
            run.note(self.key, f"{self.directory} is kept because it contains {', '.join(left)}")


def on_networks(resources: Sequence[Resource], values: Mapping[str, Any]) -> Iterator[tuple[Resource, Key]]:
    """Yield the resources of a spec; clusters without networks of their own have those of the spec."""
    networks = values.get("cluster_networks")
    for resource in resources:
        if networks is not None and isinstance(resource, RkeCluster) and resource.networks is None:
            yield replace(resource, networks=networks), resource.key
        else:
            yield resource, resource.key
