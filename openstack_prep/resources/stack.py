"""Stacks: what Heat makes out of a template.

Source: Orchestration API v1, "Stacks"; Heat Orchestration Template specification.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar, Self

from annotated_types import Ge, Le

from openstack_prep.cloud import Cloud
from openstack_prep.errors import CloudError, Mistake, PrepError
from openstack_prep.fields import File, Name
from openstack_prep.model import Change, Key, Observed, Resource
from openstack_prep.resources import heat_package, heat_parameters
from openstack_prep.resources.existing import Existing
from openstack_prep.resources.heat import HeatStack
from openstack_prep.resources.heat_events import Waiting, in_progress
from openstack_prep.resources.heat_package import Package, Template, digest
from openstack_prep.resources.heat_preview import STATELESS, Refused, foresee
from openstack_prep.resources.project import ByTenant, InProject
from openstack_prep.secret import HIDDEN, Secret
from openstack_prep.site import Site, only_one

INPUTS = ("template", "parameters", "environment", "tags")
DONE = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "CHECK_COMPLETE")
TAG_LENGTH = 80  # characters that Heat takes


@dataclass(frozen=True, kw_only=True)
class Stack(ByTenant):
    """A stack of Heat's.  Our mark is a tag.

    It comes after everything else of the spec that lies in a project, for only its template knows
    what it uses.  What Heat says that an update would do stands in the plan; what it would replace
    needs consent.  Servers and ports that are gone are made again.  A stack in progress is waited
    for.  After a failure the next apply goes on with the same stack.
    """

    kind: ClassVar[str] = "stack"
    identity: ClassVar[frozenset[str]] = InProject.identity

    name: Name
    """Name of the stack, unique in its project."""
    template: Template
    """Path or URL of the template, or shipped:rke-cluster.yaml and the like for one that comes with openstack_prep."""
    parameters: Mapping[Name, Any] | None = None
    """Values of the template's parameters; stronger than those of environments."""
    secret_parameters: Mapping[Name, Secret] | None = None
    """Values of its hidden parameters.  Heat does not show them, so that a new value alone changes nothing."""
    environments: tuple[File, ...] | None = None
    """Environment files; later ones are stronger."""
    tags: tuple[Name, ...] | None = None
    """Tags to have; others stay."""
    timeout: Annotated[int, Ge(1), Le(1440)] | None = None
    """Minutes for Heat to make or change it; Heat's own is 60."""
    rollback: bool | None = None
    """Whether Heat takes back what failed, nodes that could tell why included; not done by default."""
    adopt: bool | None = None
    """Consent to change a stack of that name that another made; it is ours from then on."""

    after: ClassVar[frozenset[Key]] = (
        frozenset()
    )  # each has its own once it is completed: no field, for no spec gives it

    # --- what it is made from ----------------------------------------------------------------

    @cached_property
    def _read(self) -> Package | PrepError:
        try:
            return heat_package.read(self.template, self.environments or ())
        except PrepError as error:
            return error

    def informed(self) -> Self:
        if isinstance(self._read, PrepError):
            raise self._read
        return self

    @property
    def _given(self) -> dict[str, Any]:
        """The parameters that somebody may see, with those of environments."""
        package = self._read
        given = package.environment.get("parameters") or {} if isinstance(package, Package) else {}
        secret = self.secret_parameters or {}
        return {name: value for name, value in ({**given, **(self.parameters or {})}).items() if name not in secret}

    def desired(self) -> dict[str, Any]:
        if isinstance(self._read, PrepError):
            return {}
        return {
            "template": digest(self._read.template, self._read.files),
            "parameters": _shown(self._read, self._given),
            "environment": _rest(self._read, self._read.environment),
            "tags": frozenset(self.tags or ()),
            "status": "complete",
            "missing": frozenset(),
            "pending": frozenset(),
        }

    def _secrets(self, package: Package) -> dict[str, Secret]:
        in_files = {name: Secret(str(self._given[name])) for name in package.hidden & self._given.keys()}
        return in_files | dict(self.secret_parameters or {})

    def _body(self, site: Site, tags: Iterable[str]) -> tuple[dict[str, Any], list[Secret]]:
        """Return what Heat is sent, and what of it nobody may see."""
        package = self.informed()._read
        assert isinstance(package, Package)
        secrets = self._secrets(package)
        values = self._given | {name: secret.reveal() for name, secret in secrets.items()}
        body = {
            "template": package.template,
            "files": dict(package.files),
            "environment": {**package.environment, "parameters": values},
            "tags": ",".join(sorted({site.mark.tag, *(self.tags or ()), *tags})),
            "disable_rollback": not self.rollback,
        }
        return body | ({"timeout_mins": self.timeout} if self.timeout else {}), list(secrets.values())

    # --- what it needs -----------------------------------------------------------------------

    def completed(self, others: Sequence[Resource], cloud: Cloud) -> Self:
        made = replace(self)
        kinds = ("stack", "clouds_entry", "env_file", "install_config")
        keys = frozenset(each.key for each in others if isinstance(each, InProject) and each.kind not in kinds)
        object.__setattr__(made, "after", keys)
        return made

    def needs(self) -> Iterable[Key]:
        return (*super().needs(), *self.after, *(each.key for each in self._uses()))

    def references(self) -> Iterable[Resource]:
        return (*super().references(), *self._uses())

    def _uses(self) -> list[Existing]:
        """Return what its parameters name, by the template's constraints."""
        if isinstance(self._read, PrepError):  # then an apply is refused, and a destroy does not care
            return []
        named = heat_parameters.named(self._read.parameters, self._given)
        return [self.sibling(Existing, name, of=kind) for kind, name in sorted(set(named))]

    # --- what is there -----------------------------------------------------------------------

    @classmethod
    def find(cls, site: Site, wanted: Sequence[Self]) -> Mapping[Key, Observed]:
        found = {}
        for owner, mine in cls.by_project(wanted).items():
            cloud = site.find_tenant(owner)
            if cloud is None and site.acting_user(owner) is None and site.find_project_id(owner) is not None:
                cloud = site.tenant(owner)  # says who is wanting: what we cannot see, we must not take for absent
            if cloud is None:  # who would have made it is not there yet
                continue
            listed = site.once(("stacks", owner), partial(cloud.orchestration.list, "/stacks", "stacks"))
            for each in mine:
                raw = only_one((one for one in listed if one["stack_name"] == each.name), str(each.key))
                if raw is not None:
                    found[each.key] = each._observed(site, HeatStack(cloud, each.name, raw["id"]))
        return found

    def _observed(self, site: Site, stack: HeatStack) -> Observed:
        raw = stack.show()
        tags = frozenset(raw.get("tags") or ())
        ours = site.mark.tag in tags
        status = "complete" if raw["stack_status"] in DONE else raw["stack_status"]
        if self.adopt and not ours:
            status += ", of another"
        missing = {} if in_progress(raw) else stack.missing()
        values: dict[str, Any] = {"status": status, "tags": tags & frozenset(self.tags or ())}
        handle: dict[str, Any] = {"stack": stack, "raw": raw, "tags": tags, "missing": missing, "preview": []}
        if isinstance(self._read, Package):
            template, files, environment = stack.inputs()
            values["template"] = digest(template, files)
            values["environment"] = _rest(self._read, environment)
            given = environment.get("parameters") or {}
            values["parameters"] = _shown(self._read, {k: v for k, v in given.items() if k not in self._hidden()})
            if not in_progress(raw) and not raw["stack_status"].startswith("DELETE"):
                self._foresee(site, handle, values)
        values["missing"] = frozenset(f"{place} {each['physical_resource_id']}" for place, each in missing.items())
        values["pending"] = frozenset(map(str, handle["preview"]))
        return Observed(
            id=raw["id"],
            ours=ours,
            values=values,
            outputs=self._outputs(raw),
            handle=handle,
            holds=frozenset(each["physical_resource_id"] for each in stack.resources if each["physical_resource_id"]),
        )

    def _hidden(self) -> frozenset[str]:
        return frozenset(self.secret_parameters or ())

    def _foresee(self, site: Site, handle: dict[str, Any], values: Mapping[str, Any]) -> None:
        """Ask Heat what an update would do, when there is one to do and all that it names is there."""
        wanted = self.desired()
        same = all(values.get(name) == wanted[name] for name in INPUTS)
        if same or isinstance(self._read, PrepError) or not self._askable(site):
            return
        body, secrets = self._body(site, handle["tags"])
        before, names = values["parameters"], sorted(self._given.keys() - self._read.hidden)
        try:
            handle["preview"] = foresee(handle["stack"], body, secrets, before, names)
        except Refused as error:
            handle["refused"] = str(error)

    def _askable(self, site: Site) -> bool:
        ready = all(secret.ready for secret in (self.secret_parameters or {}).values())
        return ready and not list(self._mistakes()) and all(site.look(each) is not None for each in self._uses())

    def _outputs(self, raw: Mapping[str, Any]) -> dict[str, str]:
        """Return the stack's outputs as text; a hidden parameter that shows in one becomes stars."""
        values = {each["output_key"]: each.get("output_value") for each in raw.get("outputs") or ()}
        secrets = [each.reveal() for each in (self.secret_parameters or {}).values() if each.ready]
        texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in values.items()}
        for secret in filter(None, secrets):
            texts = {name: text.replace(secret, HIDDEN) for name, text in texts.items()}
        return dict(sorted(texts.items()))

    # --- what would go wrong -----------------------------------------------------------------

    def _mistakes(self) -> Iterator[tuple[str, str]]:
        package = self._read
        if isinstance(package, PrepError):
            return
        given = self._given | dict(self.secret_parameters or {})
        yield from heat_parameters.mistakes(package.parameters, given)
        for name in sorted(package.hidden & (self.parameters or {}).keys()):
            yield f"parameters: {name} is hidden in the template", "give it under secret_parameters"
        for name in sorted(self._hidden() & package.parameters.keys() - package.hidden):
            yield (
                f"secret_parameters: {name} is not hidden in the template, so that Heat would show it",
                "add hidden: true",
            )

    def check(self, site: Site, observed: Observed | None) -> Iterator[Mistake]:
        if len(site.mark.tag) > TAG_LENGTH:
            yield self.mistake(f"its mark {site.mark.tag} is too long for a tag", "give the spec a shorter name")
        for what, remedy in self._mistakes():
            yield self.mistake(what, remedy)
        if observed is None:
            yield from self._ask_heat(site)
        elif "refused" in observed.handle:
            yield self.mistake(f"Heat refuses the update: {observed.handle['refused']}", "correct that")
        if observed and not observed.ours and not self.adopt and self._differs(observed):
            what = f"{observed.id} has that name, was not made by this spec, and is another"
            yield self.mistake(what, "choose another name, or consent to changing it by adopt: true")

    def _differs(self, observed: Observed) -> bool:
        return any(observed.values.get(name) != value for name, value in self.desired().items() if name != "pending")

    def _ask_heat(self, site: Site) -> Iterator[Mistake]:
        """Yield what Heat says against making it, when all that it names is there to be looked at."""
        cloud = site.find_tenant(self.owner)
        if cloud is None or isinstance(self._read, PrepError) or not self._askable(site):
            return
        body, secrets = self._body(site, ())
        try:
            body = {"stack_name": self.name, **body}
            cloud.orchestration.post("/stacks/preview", body, secrets=secrets, log=False)
        except CloudError as error:
            if error.status not in (400, 403):
                raise
            yield self.mistake(f"Heat refuses it: {error}", "correct that")

    def losses(self, observed: Observed) -> Iterable[Mistake]:
        standing = observed.handle["stack"].standing - observed.handle["missing"].keys()
        replaced = (each for each in observed.handle["preview"] if each.verb == "replace" and each.place in standing)
        lost = [f"{each.place} ({each.type})" for each in replaced if each.type not in STATELESS]
        if lost:
            yield self.mistake(
                f"the update would delete and make again {', '.join(sorted(lost))}",
                "take back what changes them, or consent to that (--allow-replace)",
            )

    # --- the verbs ---------------------------------------------------------------------------

    def create(self, site: Site) -> Observed:
        cloud = site.tenant(self.owner)
        body, secrets = self._body(site, ())
        made = cloud.orchestration.post("/stacks", {"stack_name": self.name, **body}, secrets=secrets)["stack"]
        return self._finished(site, HeatStack(cloud, self.name, made["id"]))

    def update(self, site: Site, observed: Observed, changes: Sequence[Change]) -> Observed:
        stack: HeatStack = observed.handle["stack"]
        if in_progress(observed.handle["raw"]):  # by a run that was killed, or by somebody else
            self._waiting(site, stack).end(self.timeout)
            found = type(self).find(site.fresh(), [self]).get(self.key)
            if found is None:
                return self.create(site)
            observed, stack = found, found.handle["stack"]
        if observed.handle["raw"]["stack_status"].startswith("DELETE"):
            self.delete(site, observed)
            return self.create(site)
        if not self._differs(observed):
            return observed
        for each in observed.handle["missing"].values():
            stack.mark_unhealthy(each)
        body, secrets = self._body(site, observed.handle["tags"])
        stack.cloud.orchestration.request("PUT", stack.path, json=body, secrets=secrets, once=True)
        return self._finished(site, stack)

    def delete(self, site: Site, observed: Observed) -> None:
        stack: HeatStack = observed.handle["stack"]
        if observed.handle["raw"]["stack_status"] != "DELETE_IN_PROGRESS":
            stack.cloud.orchestration.delete(stack.path)
        waiting = self._waiting(site, stack)
        waiting.raise_for_failure(waiting.end(self.timeout))

    def _waiting(self, site: Site, stack: HeatStack) -> Waiting:
        return Waiting(stack.cloud.orchestration, stack.path, lambda text: site.note(self.key, text))

    def _finished(self, site: Site, stack: HeatStack) -> Observed:
        waiting = self._waiting(site, stack)
        waiting.raise_for_failure(waiting.end(self.timeout))
        return self._observed(site.fresh(), stack)


def _shown(package: Package, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters without those that Heat hides."""
    return {name: value for name, value in sorted(parameters.items()) if name not in package.hidden}


def _rest(package: Package, environment: Mapping[str, Any]) -> str | None:
    """Return what tells an environment apart but for its parameters; None when there is nothing else in it."""
    registry = dict(environment.get("resource_registry") or {})
    defaults = _shown(package, environment.get("parameter_defaults") or {})
    registry = {name: value for name, value in registry.items() if value and value != name}  # Heat adds those
    return digest(registry, defaults) if registry or defaults else None
