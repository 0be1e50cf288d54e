"""An RKE or RKE2 cluster on the nodes of a stack: the files that RKE, kubectl and Helm are given.

Source: RKE's and RKE2's documentation; what stands in the files is the matter of ``openstack_prep.kubernetes``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from openstack_prep.base.errors import Loss, Mistake, SpecError
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.site import Site
from openstack_prep.core.model import Change, Context, Key, Mark, Observed, Resolved, Resource
from openstack_prep.kubernetes.cluster import rke_files, rke_hints, rke_roles
from openstack_prep.kubernetes.cluster.rke_scene import NETWORKS, PARAMETERS, RkeFields, Scene
from openstack_prep.kubernetes.networks import Taken
from openstack_prep.resources.files.marked_files import MarkedFiles
from openstack_prep.resources.lists import queries
from openstack_prep.resources.orchestration import stack_outputs
from openstack_prep.resources.orchestration.existing import Existing
from openstack_prep.resources.orchestration.stack_outputs import Outputs


@dataclass(frozen=True, kw_only=True)
class RkeCluster(RkeFields):
    """The files of a cluster, made of what its stack tells of the nodes, and kept in step with it.

    Each has our mark for its first line and only its owner can read it; a file without the mark is
    somebody else's, and never overwritten.  What RKE leaves in the directory, its state and the
    kubeconfig, stays there after destroy.  The nodes of RKE2 are configured by their stack: its template
    is told the networks, the plugin, the version and whether there is an external cloud provider; roles,
    config and private_registries are in the files alone.
    """

    def resolve(self, context: Context) -> Sequence[Resource]:
        """Return it with its networks and what it takes from the rest of the spec."""
        scene = Scene.of(context, self.drawn_from)
        return (ResolvedRkeCluster.of(scene.clusters[self.name], scene=scene),)

    def references(self) -> Iterable[Resource]:
        return (*super().references(), self.sibling(Existing, self.stack, of="stack"))

    def tells_its_stack(self, context: Context) -> Raw:
        """Return what an RKE2 cluster has drawn, for its nodes are configured by their stack."""
        if self.distribution != "rke2":
            return {}
        drawn = rke_files.as_declared(Scene.of(context, self.drawn_from).clusters[self.name], None)
        said = {parameter: getattr(drawn, field) for field, parameter in PARAMETERS.items()}
        plugin = {"cni": said["cni"].split(",")} if said["cni"] else {}
        return {name: value for name, value in (said | plugin).items() if value}

    def desired(self) -> Values:
        said = {name: getattr(self, name) for name in ("directory", "distribution", *NETWORKS)}
        said = {name: value for name, value in said.items() if value is not None}  # one there was no room for
        return said | {"nodes": f"of stack/{self.stack}", "drift": frozenset()}

    # --- what is there --------------------------------------------------------------------

    def files(self, mark: Mark) -> MarkedFiles:
        return MarkedFiles(Path(self.directory), f"# {mark.describe(self.name)}")

    def _outputs(self, site: Site) -> Outputs | None:
        return stack_outputs.read(site, self.owner, self.stack)

    @classmethod
    def find(cls, site: Site, wanted: Sequence[Self]) -> Mapping[Key, Observed]:
        found = ((each, each._observed(site)) for each in wanted)
        return {each.key: observed for each, observed in found if observed is not None}

    def _observed(self, site: Site) -> Observed | None:
        files = self.files(site.mark)
        there = files.there()
        if not there:
            return None
        outputs = self._outputs(site)
        roles = rke_roles.changes(self, outputs, there) if outputs else ()
        drift = [*map(str, roles), *(self._drift(files, outputs) if outputs else ())]
        told = frozenset(each for each in drift if not each.startswith(tuple(role.in_file for role in roles)))
        return Observed(
            id=self.directory,
            ours=True,
            values=self.desired() | rke_hints.networks_in(there.values()) | {"drift": told, "roles": roles},
            outputs=self._told(outputs),
        )

    def _drift(self, files: MarkedFiles, outputs: Outputs) -> Iterator[str]:
        """Yield how the files differ from what they should be, or why that cannot be told."""
        wrong = list(rke_files.mistakes(self, outputs)) if outputs.settled else []
        if not outputs.settled:
            yield f"stack/{self.stack} is not complete"
        elif wrong and rke_files.to_come(self, outputs) is None:
            yield from (f"{each.where}: {each.what}" for each in wrong)
        elif not wrong and self.has_networks:
            texts, shown = (rke_files.texts(self, outputs, openly=openly) for openly in (True, False))
            yield from files.drift(texts, shown)

    def _told(self, outputs: Outputs | None) -> dict[str, str]:
        """Return where the files are, and what to type next."""
        folder = os.path.relpath(self.directory)
        folder = self.directory if folder.startswith("..") else folder
        return rke_hints.told(self, outputs, folder)

    # --- what would go wrong --------------------------------------------------------------

    def _mistakes(self, site: Site, outputs: Outputs | None) -> Iterator[Mistake]:
        found = list(rke_files.mistakes(self, outputs))
        nodes = 0 if found else rke_files.how_many(self, outputs) or 0
        yield from self.scene.mistakes(self.name, self._taken(site, outputs), nodes)
        yield from self.scene.contradictions(self.name, outputs.parameters if outputs else {})
        yield from (self.mistake(f"{each.where}: {each.what}", each.remedy) for each in found)

    def _taken(self, site: Site, outputs: Outputs | None) -> list[Taken]:
        """Return the subnets that the network of its nodes has in the cloud."""
        parameters = self.scene.parameters(self) or (outputs.parameters if outputs else {})
        name = parameters.get("network")
        network = site.find_id(self.sibling(Existing, name, of="network")) if isinstance(name, str) and name else None
        if network is None:
            return []
        listed = queries.subnets_of(site, network)
        return [Taken(f"subnet/{each.name or each.id}", each.cidr) for each in listed]

    def check(self, site: Site, observed: Observed | None) -> Iterator[Mistake]:
        outputs = self._outputs(site)
        settled = outputs if outputs is not None and outputs.settled else None
        # a stack of the spec may be about to change: what its template and parameters say is what will be
        found = list(self._mistakes(site, None if self.scene.stack(self) else settled))
        yield from found
        known = settled is not None and not found and not list(rke_files.mistakes(self, settled))
        names = list(rke_files.texts(self, settled, openly=False)) if settled and known else rke_files.names(self)
        for path in self.files(site.mark).of_others(names) if self.scene.has_a_folder_of_its_own(self.name) else ():
            yield self.mistake(f"{path} is somebody else's", "name another directory, or remove it")

    def losses(self, observed: Observed) -> Iterable[Loss]:
        for name in NETWORKS:
            before, after = observed.values.get(name), getattr(self, name)
            if after and before != after:
                what = f"{name} {before} -> {after}, and a cluster that runs cannot change it"
                remedy = f"write {name}: {before} into the spec, or consent when there is no such cluster"
                yield Loss.about(self.key, what, f"{remedy} (--allow-replace)")
        for each in rke_roles.losses(observed.values.get("roles", ())):
            yield Loss.about(self.key, f"{each.where}: {each.what}", f"{each.remedy} (--allow-replace)")

    # --- the verbs ------------------------------------------------------------------------

    def render(self, site: Site, *, openly: bool = False) -> dict[str, str]:
        """Return the texts of its files by name, what nobody may see as stars unless ``openly``; raises SpecError."""
        outputs = self._outputs(site)
        if outputs is None:
            raise SpecError([self.mistake(f"stack/{self.stack} does not exist", "make it first, or correct the name")])
        if not outputs.settled:
            raise SpecError([self.mistake(f"stack/{self.stack} is not complete", "wait for it, or mend it")])
        if found := list(self._mistakes(site, outputs)):
            raise SpecError(found)
        return rke_files.texts(self, outputs, openly=openly)

    def create(self, site: Site) -> Observed:
        self.files(site.mark).write(self.render(site, openly=True))
        for each in rke_files.warnings(self, self._outputs(site)):
            site.note(self.key, each)
        observed = self._observed(site)
        assert observed is not None
        return observed

    def update(self, site: Site, observed: Observed, changes: Sequence[Change]) -> Observed:
        return self.create(site)

    def delete(self, site: Site, observed: Observed) -> None:
        left = self.files(site.mark).remove()
        if left:
            site.note(self.key, f"{self.directory} stays, for it holds {', '.join(left)}")


@dataclass(frozen=True, kw_only=True)
class ResolvedRkeCluster(Resolved, RkeCluster):
    """A cluster with its networks, which knows the rest of the spec."""

    scene: Scene = field(default=Scene(), repr=False)
