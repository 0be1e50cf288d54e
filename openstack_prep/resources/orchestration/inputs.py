"""The inputs of a stack, in terms of a spec and of Heat.

Source: Orchestration API v1, "Create stack"; Heat Orchestration Template specification.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, NamedTuple

from annotated_types import Ge, Le

from openstack_prep.base.errors import PrepError
from openstack_prep.base.fields import File, Name
from openstack_prep.base.raw import Raw, Values
from openstack_prep.base.secret import Secret
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Adoptable, Context, FromContext, Key, Resource
from openstack_prep.core.resource import WritesFiles, followed_keys, supports
from openstack_prep.download.address import file_of
from openstack_prep.resources.compute.flavor import Flavor
from openstack_prep.resources.compute.quota import Quota
from openstack_prep.resources.files.clouds_entry import InCloudsYaml
from openstack_prep.resources.heat.flow import NOT_EMPTY, Destinations, Flow
from openstack_prep.resources.heat.package import SHIPPED, Package, Template, digest, read_package
from openstack_prep.resources.heat.parameters import (
    Found,
    Kind,
    list_violations,
    named_resources,
    parameter_mistakes,
    with_additions,
)
from openstack_prep.resources.heat.secret_outputs import secret_outputs
from openstack_prep.resources.identity.in_project import ByProjectUser, InProject
from openstack_prep.resources.network.security_group import SecurityGroup
from openstack_prep.resources.network.subnet import Subnet
from openstack_prep.resources.orchestration.existing import Existing
from openstack_prep.resources.orchestration.secrets import SecretsImage, carried_by, placeholder


class StackValues(NamedTuple):
    """What a resource provides for the parameters of its stack; parameters that the template lacks are left out."""

    values: Raw
    """Of parameters that the stack does not set."""
    additions: Mapping[str, Raw | Sequence[str]] = {}
    """Keys to add to mappings, and items to add to lists, whatever the stack sets there."""
    secrets: Mapping[str, Secret] = {}
    """Of hidden parameters that the stack does not set."""


@dataclass(frozen=True, kw_only=True)
class OnStack(InProject):
    """Base of kinds that use a stack's outputs, and may provide values of its template's parameters."""

    stack: Name
    """Stack of its nodes, declared by this spec or not; the shipped templates show which outputs it must have."""

    @property
    def stack_key(self) -> Key:
        return self.key_of("stack", self.stack)

    def follows(self) -> Iterable[Key]:
        return (self.stack_key,)

    def stack_values(self, context: Context) -> StackValues:
        """Return values for the parameters of the stack."""
        raise NotImplementedError(self.kind)


HELD: frozenset[Kind] = frozenset({"network", "router", "security_group", "subnet"})
"""The kinds that Neutron deletes only once no port of a stack uses them.

Nova deletes flavors and key pairs below running servers, and Glance images, unless its storage needs them.
Source: Neutron 29.0.0, db/db_base_plugin_v2.py, db/l3_db.py and db/securitygroups_db.py: NetworkInUse, SubnetInUse,
RouterInUse, SecurityGroupInUse.
"""


@dataclass(frozen=True)
class StackNeighbours(FromContext):
    """The related resources of a stack."""

    after: tuple[Resource, ...] = ()
    """The resources of the project that come before it."""
    quota: Quota | None = None
    """The quota that the spec declares for its project."""
    secrets_images: tuple[SecretsImage, ...] = ()
    """The images with its secrets."""


@dataclass(frozen=True, kw_only=True)
class Inputs(ByProjectUser, Adoptable):
    """The declared inputs of a stack; Stack adds the operations."""

    kind: ClassVar[str] = "stack"
    identity: ClassVar[frozenset[str]] = InProject.identity
    needs_login: ClassVar[bool] = True
    implied: ClassVar[frozenset[str]] = frozenset({"status"})

    name: Name
    """Name of the stack, unique in its project."""
    template: Template = field(repr=False)  # the URL may contain a login
    """Path or URL of the template, or shipped:rke-cluster.yaml and the like for a template of openstack_prep."""
    parameters: Mapping[Name, object] | None = field(default=None, repr=False)  # also of hidden parameters
    """Values of the template's parameters; they override those of environments."""
    secret_parameters: Mapping[Name, Secret] | None = field(default=None, repr=False)
    """Values of its hidden parameters. Heat does not return them, so a new value alone changes nothing in the stack."""
    secret_outputs: tuple[Name, ...] | None = None
    """Outputs that are secrets although neither the template, nor their name or form shows it. `show --reveal OUTPUT`
    prints an output that others show as stars.
    """
    environments: tuple[File, ...] | None = field(default=None, repr=False)
    """Environment files; later files override earlier ones."""
    tags: tuple[Name, ...] | None = None
    """Tags to have; other tags are left alone."""
    timeout: Annotated[int, Ge(1), Le(1440)] | None = None
    """Minutes that Heat has to create or update it; Heat's default is 60."""
    rollback: bool | None = None
    """Whether Heat rolls a failed operation back, which also deletes the failed nodes and their logs; default: false.
    """
    neighbours: StackNeighbours = field(default=StackNeighbours(), repr=False)
    """The related resources, which ``resolve`` finds in the spec."""

    @cached_property
    def package(self) -> Package | PrepError:
        """Its template and files, read once; or why they cannot be read."""
        try:
            return read_package(self.template, self.environments or ())
        except PrepError as error:
            return error

    def source_files(self) -> Iterator[str]:
        """Yield the template, the environments and the files that they name, as far as they are on this machine."""
        yield from self.environments or ()
        template = None if self.template.startswith(SHIPPED) else file_of(self.template)
        if template is None:
            return
        yield template
        for name in self.package.files if isinstance(self.package, Package) else ():
            path = file_of(name if "://" in name else str(Path(template).parent / name))
            if path is not None:
                yield path

    def is_secret_output(self, name: str) -> bool:
        """Whether an output is a secret by the spec or the template; each one is if the template cannot be read."""
        return isinstance(self.package, PrepError) or name in self._secret_outputs

    @cached_property
    def _secret_outputs(self) -> frozenset[str]:
        assert isinstance(self.package, Package)
        return secret_outputs(self.package) | set(self.secret_outputs or ())

    @property
    def given(self) -> Values:
        """The parameters that are not hidden, including those of environments."""
        package = self.package
        given = package.environment.get("parameters") or {} if isinstance(package, Package) else {}
        secret = self.secret_parameters or {}
        return {name: value for name, value in ({**given, **(self.parameters or {})}).items() if name not in secret}

    def desired(self) -> Values:
        if isinstance(self.package, PrepError):
            return {}
        return {
            "template": digest(self.package.template, self.package.files),
            "parameters": self.package.visible(self.given),
            "environment": self.package.settings(self.package.environment),
            "tags": frozenset(self.tags or ()),
            "status": "complete",
            "missing": frozenset(),
            "outdated": frozenset(),
            "pending": frozenset(),
        }

    @property
    def secrets(self) -> Mapping[str, Secret]:
        """The values of hidden parameters, including those of environments."""
        hidden = self.package.hidden if isinstance(self.package, Package) else frozenset()
        in_files = {name: Secret(str(value)) for name, value in self.given.items() if name in hidden}
        return in_files | dict(self.secret_parameters or {})

    @property
    def secrets_for_heat(self) -> Mapping[str, Secret]:
        """Those of them that Heat gets, because no image holds them."""
        held = {name for image in self.neighbours.secrets_images for name in image.secrets}
        return {name: secret for name, secret in self.secrets.items() if name not in held}

    def body(self, tags: Iterable[str], *, absent: Collection[str] = ()) -> tuple[Values, list[Secret]]:
        """Return the request body, and its secrets, with the parts of them that the template makes.

        ``tags`` are those to have besides the declared ones; ``absent`` the parameters that name images which do not
        exist yet, for a preview.
        """
        package = self.package
        if isinstance(package, PrepError):
            raise package
        secrets = self.secrets_for_heat
        values = self.given | {name: secret.reveal() for name, secret in secrets.items()}
        for image in self.neighbours.secrets_images:
            values |= {name: placeholder(name, form) for name, (_, form) in image.secrets.items()}
        values |= dict.fromkeys(absent, "")
        body: Values = {
            "template": package.template,
            "files": dict(package.files),
            "environment": {**package.environment, "parameters": values},
            "disable_rollback": not self.rollback,
        }
        if all_tags := {*(self.tags or ()), *tags}:
            body["tags"] = ",".join(sorted(all_tags))
        parts = [Secret(part) for secret in secrets.values() for part in package.parts(secret.reveal())]
        return body | ({"timeout_mins": self.timeout} if self.timeout else {}), [*secrets.values(), *parts]

    def absent_images(self, run: CloudRun) -> list[str]:
        """Return the parameters that name images with secrets which do not exist yet."""
        return [image.parameter for image in self.neighbours.secrets_images if run.look(image) is None]

    # --- its needs ------------------------------------------------------------------------

    def _comes_after(self, context: Context) -> tuple[Resource, ...]:
        """Return all project-scoped resources, and flavors, except those that depend on stacks or only write files."""
        before = [project for project in context.declared(InProject) if not self._comes_later(project)]
        rules = [group.own_rules for group in before if isinstance(group, SecurityGroup)]
        return (*context.declared(Flavor), *before, *(rule for rule in rules if rule is not None))

    def _comes_later(self, other: InProject) -> bool:
        """Whether another resource depends on stacks, or only writes files; one with a credential does more."""
        if other.kind in (self.kind, "address_pairs", "clouds_entry"):
            return True
        if supports(other, WritesFiles) and not isinstance(other, InCloudsYaml):
            return True
        keys = (*followed_keys(other), *other.needs(), *(reference.key for reference in other.references()))
        return any(key.kind == self.kind for key in keys)

    def _list_secrets_images(self, after: Sequence[Resource], *, for_apply: bool) -> tuple[SecretsImage, ...]:
        """Return the images that the template asks for, except those that the spec names itself."""
        package = self.package
        if isinstance(package, PrepError):
            return ()
        secrets = {name: secret for name, secret in self.secrets.items() if name in package.hidden}
        writers = {str(each.file): each.key for each in after if isinstance(each, InCloudsYaml)}
        found = []
        for parameter, names in carried_by(package, secrets, self.given).items():
            if parameter in self.given:
                continue
            image = self.sibling(
                SecretsImage,
                f"{self.name}-{parameter.replace('_', '-')}",
                disk_format="raw",
                visibility="private",
                parameter=parameter,
                secrets={name: (secrets[name], package.parameters[name]["type"]) for name in names},
                writers=tuple(writers[str(secrets[name].path)] for name in names if secrets[name].path in writers),
            )
            found.append(image.with_checksum() if for_apply else image)
        return tuple(found)

    def _completed(self, context: Context) -> tuple[Raw | None, Mapping[str, Secret] | None]:
        """Return its parameters and hidden ones, completed with what other resources of the spec provide."""
        mine = [stack for stack in context.declared(OnStack) if stack.stack_key == self.key]
        if not mine or isinstance(self.package, PrepError):
            return self.parameters, self.secret_parameters
        hidden, declared = self.package.hidden, self.package.parameters.keys()
        asked = declared - self.given.keys() - hidden
        values: Values = {}
        secrets: dict[str, Secret] = {}
        for stack in mine:
            provided = stack.stack_values(context)
            values |= {name: value for name, value in provided.values.items() if name in asked}
            for name in provided.additions.keys() & (declared - hidden):
                values[name] = with_additions(self.given.get(name), provided.additions[name])
            secrets |= {name: value for name, value in provided.secrets.items() if name in hidden - self.secrets.keys()}
        parameters = {**(self.parameters or {}), **values} if values else self.parameters
        return parameters, {**(self.secret_parameters or {}), **secrets} if secrets else self.secret_parameters

    def needs(self) -> Iterable[Key]:
        return (*super().needs(), *(resource.key for resource in (*self.neighbours.after, *self.uses())))

    def references(self) -> Iterable[Resource]:
        return (*super().references(), *self.uses())

    def outlives(self) -> Iterable[Key]:
        """Return what comes before the stack, apart from what its servers hold on to.

        What is used and not shown by the template is refused by its service as in use.
        """
        uses = self.uses()
        held = {each.key for each in uses if each.of in HELD}
        networks = {each.name for each in uses if each.of == "network"}
        subnets = self.of_project(subnet for subnet in self.neighbours.after if isinstance(subnet, Subnet))
        held |= {subnet.key for subnet in subnets if subnet.network in networks}
        return (*super().outlives(), *({resource.key for resource in (*self.neighbours.after, *uses)} - held))

    def uses(self) -> list[Existing]:
        """Return the resources that its parameters refer to, as far as the template shows it."""
        if isinstance(self.package, PrepError):  # then apply is refused, and destroy does not need it
            return []
        named = named_resources(self.package.template, self.given)
        return [self.sibling(Existing, name, of=kind) for kind, name in sorted(set(named))]

    # --- checks ---------------------------------------------------------------------------

    @property
    def hidden(self) -> frozenset[str]:
        return frozenset(self.secret_parameters or ())

    def mistakes(self, *, fetch: bool = True) -> Iterator[Found]:
        """Yield what is wrong with its parameters; ``fetch`` allows to ask programs and stores for secrets."""
        package = self.package
        if isinstance(package, PrepError):
            return
        given = self.given | dict(self.secret_parameters or {})
        yield from parameter_mistakes(package.parameters, given, fetch=fetch)
        for name in sorted(package.hidden & (self.parameters or {}).keys()):
            yield Found(name, f"parameters: {name} is hidden in the template", "move it to secret_parameters")
        for name in sorted(self.hidden & package.parameters.keys() - package.hidden):
            what = f"secret_parameters: {name} is not hidden in the template, so Heat would show its value"
            yield Found(name, what, "add hidden: true to the template")
        yield from self._list_misplaced(package)
        written = {str(each.file) for each in self.neighbours.after if isinstance(each, InCloudsYaml)}
        for name, secret in (self.secret_parameters or {}).items():
            if secret.awaited and not secret.ready and secret.path not in written:
                what = f"secret_parameters: {name}: {secret.path} does not exist, and this spec writes no entry to it"
                yield Found(name, what, "correct the path, or write the file")

    def _list_misplaced(self, package: Package) -> Iterator[Found]:
        """Yield the placeholders that Heat would refuse, or that something would use as they are."""
        given = {**self.given, **dict.fromkeys(self.secrets, NOT_EMPTY)}
        flow, registry = Flow(package.template, given), package.environment.get("resource_registry") or {}
        managed = {image.parameter for image in self.neighbours.secrets_images}
        own = {name for name in package.secret_images if self.given.get(name) and name not in managed}
        forms = {name: form for image in self.neighbours.secrets_images for name, (_, form) in image.secrets.items()}
        for name, form in sorted(forms.items()):
            holding = own | {image.parameter for image in self.neighbours.secrets_images if name in image.secrets}
            covered = {resource for resource in flow.resources if holding & flow.into(resource)}
            without = ", ".join(f'{each}: ""' for each in sorted(managed | own))
            fix = f"use another parameter there, or set {without} in parameters, for Heat to get and show the secrets"
            for what in list_violations(package.parameters[name], placeholder(name, form)):
                yield Found(name, f"parameters: {name}: its placeholder, which Heat gets, {what}", fix)
            found = Destinations(package.template, package.files, registry, given, frozenset(covered))
            for place, reason, _ in dict.fromkeys(found.find_elsewhere(name)):
                what = f"parameters: {name} reaches {place}, where nothing replaces its placeholder: {reason}"
                yield Found(name, what, fix)

    def awaits(self, run: CloudRun) -> bool:
        """Whether a resource of the spec that it may refer to, as only Heat knows, does not exist yet."""
        return any(run.look(resource) is None for resource in self.neighbours.after)

    def askable(self, run: CloudRun) -> bool:
        """Whether Heat can preview it: a connection may do so, and all resources that it refers to exist."""
        if isinstance(self.package, PrepError) or run.find_tenant(self.owner) is None:
            return False
        ready = all(secret.ready for secret in self.secrets_for_heat.values())
        return ready and not list(self.mistakes()) and all(run.look(each) is not None for each in self.uses())
