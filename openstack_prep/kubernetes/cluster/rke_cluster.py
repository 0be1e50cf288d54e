"""An RKE2 or RKE cluster on the nodes of a stack: the files for the nodes, RKE, kubectl and Helm.

Source: RKE2's and RKE's documentation.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from openstack_prep.base.errors import Loss, Mistake, SpecError
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Change, Context, Key, Observed, OwnershipTag, Resolved, Resource
from openstack_prep.core.observed import owner_text
from openstack_prep.core.written_file import WrittenFile
from openstack_prep.kubernetes.cluster import rke_files, rke_hints, rke_roles
from openstack_prep.kubernetes.cluster.rke_related import NETWORKS, PARAMETERS, RelatedResources, RkeFields
from openstack_prep.kubernetes.networks import Taken
from openstack_prep.resources.files.marked_files import MarkedFiles
from openstack_prep.resources.lists import queries
from openstack_prep.resources.orchestration import stack_outputs
from openstack_prep.resources.orchestration.existing import Existing
from openstack_prep.resources.orchestration.stack_outputs import Outputs


@dataclass(frozen=True, kw_only=True)
class RkeCluster(RkeFields):
    """The files of a cluster, created from its declaration and the outputs of its stack, and updated with them.

    The first line of each file is an ownership tag, and only the owner can read the file; a file without the tag is
    never overwritten.  Destroy keeps other files in the directory, such as RKE's state and kubeconfig.  The stack
    configures the nodes of RKE2: its template gets the networks, the plugin, the version and the choice of an external
    cloud provider as parameters; roles, config and private_registries are in the files only.
    """

    @property
    def product(self) -> str:
        """Name of the product, as people write it."""
        return self.distribution.upper()

    def resolve(self, context: Context) -> Sequence[Resource]:
        """Return the cluster with its networks and the related resources of the spec."""
        related = RelatedResources.of(context, self.allocated_from)
        return (ResolvedRkeCluster.of(related.clusters[self.name], related=related),)

    def written_files(self, context: Context) -> Iterable[WrittenFile]:
        """Return the files that do not depend on the nodes."""
        (resolved,) = self.resolve(context)
        assert isinstance(resolved, ResolvedRkeCluster)
        if not resolved.has_networks or list(resolved._mistakes(None, ())):
            return ()
        paths = (str(Path(self.directory) / name) for name in rke_files.names(resolved))
        return [WrittenFile("directory", path) for path in paths]

    def references(self) -> Iterable[Resource]:
        return (*super().references(), self.sibling(Existing, self.stack, of="stack"))

    def tells_its_stack(self, context: Context) -> Raw:
        """Return the parameters that an RKE2 cluster sets in its stack, which configures the nodes."""
        if self.distribution != "rke2":
            return {}
        cluster = rke_files.as_declared(RelatedResources.of(context, self.allocated_from).clusters[self.name], None)
        values = {parameter: getattr(cluster, field) for field, parameter in PARAMETERS.items()}
        plugin = {"cni": values["cni"].split(",")} if values["cni"] else {}
        return {name: value for name, value in (values | plugin).items() if value}

    def desired(self) -> Values:
        values = {name: getattr(self, name) for name in ("directory", "distribution", *NETWORKS)}
        values = {name: value for name, value in values.items() if value is not None}  # no free network
        return values | {"nodes": f"of stack/{self.stack}", "drift": frozenset()}

    # --- current state --------------------------------------------------------------------

    def files(self, ownership: OwnershipTag) -> MarkedFiles:
        return MarkedFiles(Path(self.directory), f"# {ownership.describe(self.name)}")

    def _outputs(self, run: CloudRun) -> Outputs | None:
        return stack_outputs.read(run, self.owner, self.stack)

    def find_one(self, run: CloudRun) -> Observed | None:
        files = self.files(run.ownership)
        there = files.there()
        if not there:
            return None
        outputs = self._outputs(run)
        roles = rke_roles.changes(self, outputs, there) if outputs else ()
        drift = [*map(str, roles), *(self._drift(files, outputs) if outputs else ())]
        own_drift = frozenset(each for each in drift if not each.startswith(tuple(role.in_file for role in roles)))
        return Observed(
            id=self.directory,
            ours=True,
            values=self.desired() | rke_hints.networks_in(there.values()) | {"drift": own_drift, "roles": roles},
            outputs=self._run_outputs(outputs),
        )

    def _drift(self, files: MarkedFiles, outputs: Outputs) -> Iterator[str]:
        """Yield differences between the files and the declaration, or the reason why they are unknown."""
        wrong = list(rke_files.mistakes(self, outputs)) if outputs.settled else []
        if not outputs.settled:
            yield f"stack/{self.stack} is not complete"
        elif wrong and rke_files.planned_nodes(self, outputs) is None:
            yield from (f"{each.where}: {each.what}" for each in wrong)
        elif not wrong and self.has_networks:
            texts, shown = (rke_files.texts(self, outputs, openly=openly) for openly in (True, False))
            yield from files.drift(texts, shown)

    def _run_outputs(self, outputs: Outputs | None) -> dict[str, str]:
        """Return the path of the files and the next commands."""
        folder = os.path.relpath(self.directory)
        folder = self.directory if folder.startswith("..") else folder
        return rke_hints.run_outputs(self, outputs, folder)

    # --- checks ---------------------------------------------------------------------------

    def list_mistakes(self, context: Context) -> Iterable[Mistake]:
        (resolved,) = self.resolve(context)
        assert isinstance(resolved, ResolvedRkeCluster)
        return resolved._mistakes(None, ())

    def list_warnings(self, context: Context) -> Iterable[str]:
        (resolved,) = self.resolve(context)
        assert isinstance(resolved, ResolvedRkeCluster)
        return rke_files.warnings(resolved, None)

    def _mistakes(self, outputs: Outputs | None, taken: Sequence[Taken]) -> Iterator[Mistake]:
        found = list(rke_files.mistakes(self, outputs))
        nodes = 0 if found else rke_files.count_nodes(self, outputs) or 0
        yield from self.related.mistakes(self.name, taken, nodes)
        yield from self.related.contradictions(self.name, outputs.parameters if outputs else {})
        for each in found:
            yield self.mistake(f"{each.where}: {each.what}", each.fix, each.code, each.where)

    def _taken(self, run: CloudRun, outputs: Outputs | None) -> list[Taken]:
        """Return the existing subnets of the network of the nodes."""
        parameters = self.related.parameters(self) or (outputs.parameters if outputs else {})
        name = parameters.get("network")
        network = run.find_id(self.sibling(Existing, name, of="network")) if isinstance(name, str) and name else None
        if network is None:
            return []
        listed = queries.subnets_of(run, network)
        return [Taken(f"subnet/{each.name or each.id}", each.cidr) for each in listed]

    def check(self, run: CloudRun, observed: Observed | None) -> Iterator[Mistake]:
        outputs = self._outputs(run)
        settled = outputs if outputs is not None and outputs.settled else None
        # a stack of the spec may be about to change: its template and parameters describe the result
        described = None if self.related.stack(self) else settled
        found = list(self._mistakes(described, self._taken(run, described)))
        yield from found
        known = settled is not None and not found and not list(rke_files.mistakes(self, settled))
        names = list(rke_files.texts(self, settled, openly=False)) if settled and known else rke_files.names(self)
        for path in self.files(run.ownership).of_others(names) if self.related.has_own_directory(self.name) else ():
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
        for each in rke_roles.list_losses(observed.values.get("roles", ())):
            yield Loss.about(self.key, f"{each.where}: {each.what}", f"{each.fix} (--allow-replace)")

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
        self.files(run.ownership).write(self.render(run, openly=True))
        said = set(rke_files.warnings(self, None))  # before the plan
        for each in rke_files.warnings(self, self._outputs(run)):
            if each not in said:
                run.note(self.key, each)
        observed = self.find_one(run)
        assert observed is not None
        return observed

    def update(self, run: CloudRun, observed: Observed, changes: Sequence[Change]) -> Observed:
        return self.create(run)

    def delete(self, run: CloudRun, observed: Observed) -> None:
        left = self.files(run.ownership).remove()
        if left:
            run.note(self.key, f"{self.directory} is kept because it contains {', '.join(left)}")


@dataclass(frozen=True, kw_only=True)
class ResolvedRkeCluster(Resolved, RkeCluster):
    """A cluster with its networks and the related resources of the spec."""

    related: RelatedResources = field(default=RelatedResources(), repr=False)


def on_networks(resources: Sequence[Resource], values: Mapping[str, Any]) -> Iterator[tuple[Resource, Key]]:
    """Yield the resources of a spec; clusters without networks of their own have those of the spec."""
    networks = values.get("cluster_networks")
    for each in resources:
        if networks is not None and isinstance(each, RkeCluster) and each.networks is None:
            yield replace(each, networks=networks), each.key
        else:
            yield each, each.key
