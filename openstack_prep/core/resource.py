"""The contract of a kind: what each of its functions may read and change, and what it must return or raise.

A new kind implements ``find`` (or ``find_one``), ``create``, ``update`` and ``delete``. What only some kinds need are
protocols: small groups of functions that a kind adds. The planner and the executor know no kind: they rely only on this
contract, and ask for a protocol where they need it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Never, Protocol, Self, cast

from pydantic_core import CoreSchema, PydanticCustomError, PydanticKnownError, PydanticOmit, core_schema

from openstack_prep.base.errors import Loss, Mistake
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.key import Key
from openstack_prep.base.raw import Values
from openstack_prep.core.observed import Change, Observed, Texts, UpdateEffects

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from typing_extensions import TypeIs, TypeVar  # TypeVar with a default, as in Python 3.13

    S = TypeVar("S", default=Any)
    """What the functions of a kind work with: ``CloudRun`` for all kinds of OpenStack's."""
    C = TypeVar("C", default=Any)
    """A connection."""
else:
    from typing import TypeVar

    S, C = TypeVar("S"), TypeVar("C")

T = TypeVar("T")
P = TypeVar("P")


class Coherent:
    """Base of dataclasses whose fields can contradict each other.

    Fields are compared after normalisation: when a spec is read, or when a plan is created from resources made in
    Python. A constructor does not compare them, because ``protocol="TCP"`` is not yet ``tcp`` at that time.
    """

    def contradictions(self) -> Iterable[InvalidValue]:
        """Yield each contradiction, with its fix."""
        return ()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        def compare(value: Coherent) -> Coherent:
            for contradiction in value.contradictions():  # a type of its own: the mistake is about the whole resource
                fields = {"what": contradiction.what, "fix": contradiction.fix}
                raise PydanticCustomError("contradiction", "{text}", {"text": str(contradiction), **fields})
            return value

        return core_schema.no_info_after_validator_function(compare, handler(source))


@dataclass(frozen=True, kw_only=True)
class Resource(Generic[S]):
    """One object that should exist: the base of all kinds.

    A kind is a frozen dataclass of the desired state; a field that is None is not managed. It holds neither a
    connection nor any state outside of its fields: ``dataclasses.replace`` keeps its plan.
    """

    kind: ClassVar[str]
    identity: ClassVar[frozenset[str]] = frozenset({"name", "project"})
    """Fields that identify the resource; they are never compared."""
    immutable: ClassVar[frozenset[str]] = frozenset()
    """Fields that the API cannot change: a different value means a replacement, which needs --allow-replace."""

    __pydantic_config__: ClassVar[dict[str, object]] = {
        "extra": "forbid",
        "strict": True,  # YAML has its own types: `yes` is not a number and 010 is not a text
    }

    if TYPE_CHECKING:  # a field of most kinds; others derive it

        @property
        def name(self) -> str: ...

    @property
    def scope(self) -> tuple[str, ...]:
        """Where the name is unique, from the outside in; empty for resources of the whole cloud."""
        return ()

    @cached_property
    def key(self) -> Key:
        return Key(self.kind, self.name, self.scope)

    # --- before anything is read: pure ----------------------------------------------------

    def desired(self) -> Values:
        """Return the declared fields in the form in which ``find`` returns them; unset fields are left out.

        It is called often, by several threads: it must return equal values each time, and may read only the resource
        itself and the files that it names. Must not raise.
        """
        uncompared = self.identity | {"adopt"}
        pairs = ((each.name, getattr(self, each.name)) for each in fields(self) if each.name not in uncompared)
        return {name: value for name, value in pairs if value is not None and not isinstance(value, FromContext)}

    def references(self) -> Iterable[Resource]:
        """Return bare resources that must exist before this one: in the spec, or already in the cloud.

        Undeclared ones are looked up with their own ``find``; a missing one is an error.
        """
        return ()

    def needs(self) -> Iterable[Key]:
        """Return further keys whose steps come first if the spec has them; absent keys do not matter."""
        return ()

    # --- reading: changes nothing ---------------------------------------------------------

    @classmethod
    def find(cls, run: S, wanted: Sequence[Self]) -> Mapping[Key, Observed]:
        """Return the existing ones of these, by key; missing ones are left out.

        It reads in bulk: one list request per scope, however many resources are wanted. It is called in a thread per
        kind, while others read, so it must read through ``run.read_once`` or ``run.look``. ``wanted`` may be bare: a
        name with its scope. It works as the administrator as far as possible, because the project's own user may not
        exist yet. Values are in the vocabulary of ``desired``. It must find resources that a killed run of this spec
        has left incomplete. Raises NotUnique if a name is ambiguous, and CloudError.

        Here it calls ``find_one`` for each, which is enough for a kind whose lists are stored by the run.
        """
        pairs = ((each, each.find_one(run)) for each in wanted)
        return {each.key: observed for each, observed in pairs if observed is not None}

    def find_one(self, run: S) -> Observed | None:
        """Return the existing counterpart of this resource alone, as ``find`` would; None if it is missing."""
        raise NotImplementedError(self.kind)

    # --- changing -------------------------------------------------------------------------

    def create(self, run: S) -> Observed:
        """Create it, and return it as ``find`` would, with ``ours`` set.

        It is called if ``find`` has found nothing, or after ``delete`` in a replacement; all its references exist by
        then. The first request that creates something sets the ownership tag. A run may be killed, or an answer lost,
        after any request: ``find`` must be able to see which later parts are missing, and ``update`` must be able to
        complete them.

        Not idempotent, and need not be: after a retryable CloudError the executor does not call it again, but finds,
        decides and then calls what is left to do. Any other exception ends the step.
        """
        raise NotImplementedError(self.kind)

    def update(self, run: S, observed: Observed, changes: Sequence[Change]) -> Observed:
        """Bring an existing resource to the desired state, and return it as ``find`` would.

        ``changes`` are the fields that differ, none of them immutable. It changes only these: what others have added is
        kept. Idempotent: it may be called again with the result of a new ``find``, after any part was done. It must not
        delete data unless ``list_losses`` has reported it. Raises like ``create``.
        """
        raise NotImplementedError(self.kind)

    def delete(self, run: S, observed: Observed) -> None:
        """Delete it, and return when it no longer exists.

        It is called for managed resources, after ``check_delete``; in a replacement also for ``Untagged``
        kinds, with --allow-replace. Idempotent: a resource that no longer exists counts as deleted. It must
        not delete what others have added, unless that cannot exist without it. Raises like ``create``.
        """
        raise NotImplementedError(self.kind)


# --- what a kind may add --------------------------------------------------------------
# A kind has a protocol by having its functions; ``supports`` asks for it. A marker is a base without functions.


class Undeclarable:
    """Marker of kinds that no spec can declare: other resources only refer to them."""


class BareReference:
    """Marker of kinds whose ``find`` returns no more than an id: others that look for the key cannot use the result."""


class OnePerSpec:
    """Marker of kinds of which a spec can declare one, whereas others refer to several."""


class InEachProject:
    """Marker of kinds whose ``scan`` reads one project at a time."""


class Untagged:
    """Marker of kinds that carry no ownership tag themselves: they are never reported as no longer in the spec."""


class LeavesContent:
    """Marker of kinds that contain something which may outlive them; that only shows once they are deleted."""


class Unguarded:
    """Marker of kinds of which any update is carried out, whatever has changed since: it is decided again before."""


class HasImplied(Protocol):
    """A kind with values that no spec can set."""

    implied: ClassVar[frozenset[str]]
    """Fields that no spec can set and that all created resources have: a plan shows them only if they differ."""


class MayHaveTwins(Protocol):
    """A kind of which OpenStack may accept a second one with the same name."""

    @property
    def can_have_twins(self) -> bool:
        """Whether it does, so that concurrent runs may create two."""


class Resolves(Protocol):
    """A kind that takes values from the rest of its spec, or consists of parts with dependencies of their own."""

    def resolve(self, context: Context) -> Sequence[Resource]:
        """Return the resources that represent this one in a plan, completed with values from its context.

        Several resources are returned if the parts have different dependencies; the first one keeps the key. Each value
        becomes a field: a declared field that is unset, or one whose type is derived from ``FromContext``. It is called
        once per plan, before the cloud is read, and again when that plan is created again: resolving a resolved
        resource returns an equal resource.

        May read the context, and files and URLs; those that only an apply needs only if ``context.for_apply`` is set.
        Must not read the cloud, nor change anything. Raises SpecError if resources of the spec contradict each other,
        which ends the run; any other PrepError if something cannot be read: then a plan to apply is refused with that
        error, and contains the unresolved resource.
        """


class ListsMistakes(Protocol):
    """A kind with rules that need no cloud."""

    def list_mistakes(self, context: Context) -> Iterable[Mistake]:
        """Yield what is wrong with a declared resource by rules that need no cloud.

        It is called before a plan to apply reads the cloud, and by validate; the mistakes of all resources end the run
        together. May read the context and files. Raises like ``resolve``.
        """


class Checks(Protocol):
    """A kind with rules that need the cloud."""

    def check(self, run: Any, observed: Observed | None) -> Iterable[Mistake]:
        """Yield what would go wrong, as far as reading shows it; each mistake refuses the plan.

        It is called once per plan to apply, after ``find``, in parallel with the checks of others. May read the cloud;
        a CloudError ends the plan. Problems of the resource are yielded, not raised.
        """


class MayNeedNoCloud(Protocol):
    """A kind of which some resources have nothing in a cloud."""

    @property
    def needs_cloud(self) -> bool:
        """Whether anything of the resource is in a cloud; a spec of which nothing is needs no login."""


class CarriesTag(Protocol):
    """A kind whose ownership tag shares a text of limited length with what the user writes and how it is named."""

    def list_long_texts(self, spec: str) -> Iterable[Mistake]:
        """Yield the texts that are longer than the service stores, with the tag of the spec of this name."""


class NeedsQuota(Protocol):
    """A kind that counts against quotas of its project."""

    def quota_need(self, run: Any, changes: Sequence[Change] | None) -> Mapping[str, int]:
        """Return, by the spec's names of quotas, what a new one takes, or what these changes of an existing one add."""


class ListsUnchecked(Protocol):
    """A kind with values that only its service can judge."""

    def list_unchecked(self, run: Any, changes: Sequence[Change] | None) -> Iterable[str]:
        """Yield what no plan knows of a new one, or of these changes of an existing one, by what was read before."""


class ListsWarnings(Protocol):
    """A kind that warns about valid settings."""

    def list_warnings(self, context: Context) -> Iterable[str]:
        """Yield the warnings, by rules that need no cloud; only called without mistakes."""


class ListsPlanWarnings(Protocol):
    """A kind that warns about what apply leaves for others to do."""

    def list_plan_warnings(self, run: Any, observed: Observed) -> Iterable[str]:
        """Yield the warnings about an existing resource; ``run.known`` has all others of the plan."""


class ListsInherited(Protocol):
    """A kind that takes values from the connection."""

    def list_inherited(self, resolved: Resource) -> Iterable[str]:
        """Yield warnings about what ``resolve`` took from it; ``resolved`` is the part with the same key.

        Pure; it is called for plans to apply.
        """


class YieldsTo(Protocol):
    """A kind that asks for something which others of its spec ask for by name, such as a free address."""

    def yields_to(self) -> Iterable[Key]:
        """Return keys whose steps come first in an apply, because what they ask for must still be free then."""


class Outlives(Protocol):
    """A kind that can exist without some of what it comes after, such as a network without the quota of its project."""

    def outlives(self) -> Iterable[Key]:
        """Return keys whose deletion, as the target of a destroy, leaves the resource as it is, or only cuts it off.

        No service refuses that deletion because of the resource; what it cuts off is named as a loss.
        """


class Follows(Protocol):
    """A kind whose work depends on what others do in the same run."""

    def follows(self) -> Iterable[Key]:
        """Return keys that come first and whose changes determine the work of this resource, such as a stack's nodes.

        If one of them changes, the executor calls ``find`` again right before the step, and decides again.
        """


class Provides(Protocol):
    """A kind that provides more than the resource itself, such as a subnet on a network."""

    def provides(self) -> Iterable[Key]:
        """Return the keys that others wait for with ``needs``; several resources may provide one together."""


class ListsAlternatives(Protocol):
    """A kind that others refer to by name."""

    def list_alternatives(self, run: Any) -> Iterable[str]:
        """Return the names of existing resources that may be meant by this one, which is referred to and missing.

        They are for a suggestion: it may leave out what is hard to list. Raises CloudError.
        """


class Scannable(Protocol):
    """A kind whose existing resources can be listed, declared or not."""

    @classmethod
    def scan(cls, run: Any, owner: Any) -> Iterable[tuple[Any, Observed]]:
        """Yield all resources of the kind in a project, or in the cloud for kinds outside of projects.

        Each is returned as a spec would declare it, with every field that the API reports, and as observed; ``ours`` is
        set if it has the ownership tag of this spec. It reads in bulk what ``find`` reads, changes nothing, and raises
        CloudError.
        """


class ScansTagged(Protocol):
    """A kind whose ``scan`` is slow or says too much where those with the ownership tag of the spec are wanted."""

    @classmethod
    def scan_tagged(cls, run: Any, owner: Any) -> Iterable[tuple[Any, Observed]]:
        """Yield those of ``scan`` that may have the tag, for a deletion.

        Unlike that of ``scan``, a resource declares only what the spec surely made: what others may have added since
        counts as theirs.
        """


class HasCloudIds(Protocol):
    """A kind that something else than its id identifies."""

    def cloud_ids(self, observed: Observed) -> frozenset[str]:
        """Return what identifies it in the cloud: resources that share any of these are the same.

        For other kinds it is the id, and those of what it contains.
        """


class HasDeletedIds(Protocol):
    """A kind whose deletion removes something else than itself and all that it contains."""

    def deleted_ids(self, observed: Observed) -> frozenset[str]:
        """Return the ids of what its deletion removes.

        A kind that is only a part of something else, such as the rules of a security group, must not return the id of
        the whole.
        """


class LosesInUpdate(Protocol):
    """A kind whose update may delete what others use."""

    def list_losses(self, observed: Observed) -> Iterable[Loss]:
        """Yield what an update would delete that others use; each refuses the plan without --allow-replace.

        Pure: it judges by the result of ``find``. Replacements need not be yielded, because the planner knows them. A
        run refuses losses that its plan has not shown, by ``Loss.things``.
        """


class PreviewsUpdate(Protocol):
    """A kind of which only the service knows the effect of an update: it is asked again right before each update."""

    def is_foreseen(self, observed: Observed) -> bool:
        """Return whether ``find`` could report all losses of an update."""


class HasTexts(Protocol):
    """A kind of text files."""

    def texts(self, observed: Observed) -> Texts | None:
        """Return the content of the file, so that a plan shows which lines change.  Pure."""


class ListsEffects(Protocol):
    """A kind that consists of parts, to which an update does different things."""

    def update_effects(self, observed: Observed) -> UpdateEffects | None:
        """Return what an update does to its parts; None if nothing is known.  Pure."""


class Settles(Protocol):
    """A kind whose service may still be working on it, for an earlier run or for somebody else."""

    def is_settled(self, observed: Observed) -> bool:
        """Whether no operation was in progress, which changes values by itself.  Pure."""

    def settle(self, run: Any, observed: Observed) -> bool:
        """Wait for an operation in progress before an update is decided; return whether there was one."""


class JudgesChanges(Protocol):
    """A kind with changes of which only some mean a replacement."""

    def is_replaced_by(self, change: Change) -> bool:
        """Return whether a change means a replacement; that of an ``immutable`` field always does.  Pure."""


class ChecksDeletion(Protocol):
    """A kind that something else may use."""

    def check_delete(self, run: Any, observed: Observed, going: frozenset[str]) -> Iterable[Mistake]:
        """Yield what a deletion would break, or what makes the service refuse it; no option allows that.

        ``going`` are the ids that are deleted with it. It is called for each deletion and replacement of a plan, in
        parallel with others, and again right before the deletion. May read the cloud.
        """


class Recreates(Protocol):
    """A kind whose new resource has room for what others have set at the old one."""

    def recreate(self, run: Any, observed: Observed) -> Observed:
        """Replace it: delete it, create it, and return it as ``find`` would."""


class HasId(Protocol):
    """A kind whose name in a spec does not find the object again that ``scan`` has found, such as by its port."""

    def by_id(self, observed: Observed) -> Resource:
        """Return the resource that finds the same object by its id, for a deletion that is retried."""


class HasContainer(Protocol):
    """A kind whose resources are deleted with another one: the rules of a group, the roles of a user."""

    @property
    def container(self) -> Key:
        """The key of the other one."""


def supports(resource: object, protocol: Callable[..., P]) -> TypeIs[P]:
    """Return whether the kind of a resource has all that a protocol names."""
    return _has(cast(Any, type(resource)), protocol)  # a protocol as type[P] would have to be concrete for mypy


def kind_supports(kind: type, protocol: Callable[..., P]) -> TypeIs[type[P]]:
    """Return whether a kind has all that a protocol names."""
    return _has(cast(Any, kind), protocol)


@cache
def _has(kind: Any, protocol: Any) -> bool:
    """Return it as ``isinstance`` would: that takes 20 microseconds each time, and a large plan asks 100,000 times."""
    names = (name for name in {*vars(protocol), *protocol.__annotations__} if not name.startswith("_"))
    return all(hasattr(kind, name) for name in names)


# Those of the functions above that other kinds have a default for.


def can_have_twins(resource: Resource) -> bool:
    return supports(resource, MayHaveTwins) and resource.can_have_twins


def needs_cloud(resource: Resource) -> bool:
    return not supports(resource, MayNeedNoCloud) or resource.needs_cloud


def resolve(resource: Resource, context: Context) -> Sequence[Resource]:
    return resource.resolve(context) if supports(resource, Resolves) else (resource,)


def provided_keys(resource: Resource) -> Iterable[Key]:
    return resource.provides() if supports(resource, Provides) else (resource.key,)


def outlived_keys(resource: Resource) -> Iterable[Key]:
    return resource.outlives() if supports(resource, Outlives) else ()


def followed_keys(resource: Resource) -> Iterable[Key]:
    return resource.follows() if supports(resource, Follows) else ()


def scan_kind(kind: type[Resource], run: Any, owner: Resource | None) -> Iterable[tuple[Any, Observed]]:
    return kind.scan(run, owner) if kind_supports(kind, Scannable) else ()


def cloud_ids(resource: Resource, observed: Observed) -> frozenset[str]:
    ids = frozenset({observed.id, *observed.contained_ids})
    return resource.cloud_ids(observed) if supports(resource, HasCloudIds) else ids


def deleted_ids(resource: Resource, observed: Observed) -> frozenset[str]:
    ids = frozenset({observed.id, *observed.contained_ids})
    return resource.deleted_ids(observed) if supports(resource, HasDeletedIds) else ids


def is_replaced_by(resource: Resource, change: Change) -> bool:
    is_judged = supports(resource, JudgesChanges) and resource.is_replaced_by(change)
    return is_judged or change.field in resource.immutable


@dataclass(frozen=True, kw_only=True)
class Context(Generic[C]):
    """The context in which resources are resolved: all declared resources of the spec, and the connection in use."""

    resources: Sequence[Resource]
    cloud: C
    for_apply: bool = False
    """Whether the resource is about to be applied; destroy and show need less."""
    for_plan: bool = False
    """Whether a plan reads the cloud next: then ``check`` judges what depends on existing resources."""
    _results: dict[Hashable, object] = field(default_factory=dict, repr=False, compare=False)

    def declared(self, kind: type[T]) -> Sequence[T]:
        """Return the declared resources of a kind, in the order of the spec."""
        return self.read_once(
            (Context, kind), lambda: tuple(resource for resource in self.resources if isinstance(resource, kind))
        )

    def read_once(self, name: Hashable, derive: Callable[[], T]) -> T:
        """Return the result of ``derive`` for the whole spec, which several resources need; it is called once."""
        if name not in self._results:
            self._results[name] = derive()
        return cast(T, self._results[name])


# --- files that resources write: the protocol by which a spec finds two that would write the same one ---


@dataclass(frozen=True)
class WrittenFile:
    """A file, or a ``part`` of it: several resources may write different parts of one file."""

    field: str
    """The field of the resource that names it, as a dotted path."""
    path: str
    part: str = ""
    is_only_copy: bool = False
    """Whether it holds a secret that nobody can write again."""
    in_folder_of: str = ""
    """The program whose files its folder holds, and whose users delete the folder as a whole."""


class WritesFiles(Protocol):
    """A kind whose resources write files, besides the files of its generated secrets."""

    def written_files(self, context: Context) -> Iterable[WrittenFile]:
        """Return the files, as far as they are known without a cloud."""
        ...


# --- kinds that apply changes only with permission (adoption), and what comes from the rest of a spec ---


@dataclass(frozen=True, kw_only=True)
class Adoptable(Resource[S]):
    """Base of kinds that apply changes as a whole: without our ownership tag, a change needs permission."""

    adopt: bool | Literal["permanently"] = False
    """Allow apply to change it although it exists and is not managed by this spec; destroy still keeps it. permanently:
    this spec manages it from then on, so that destroy deletes it.
    """

    if TYPE_CHECKING:  # a field of each kind

        @property
        def description(self) -> str | None: ...

    @property
    def takes_over(self) -> bool:
        """Whether the spec shall manage it although somebody else has created it."""
        return self.adopt == "permanently"

    @property
    def can_be_managed(self) -> bool:
        """Whether a spec can manage it at all, so that destroy deletes it."""
        return True

    def take_over(self, run: S, observed: Observed) -> Observed:
        """Add the ownership tag to an existing resource, and return it as ``find`` would.

        In most kinds the description carries the tag; the text in it is kept. Idempotent.
        """
        text = observed.values["description"] if self.description is None else self.description
        change = Change("description", observed.values["description"], text)
        own = cast(Self, replace(cast(Any, self), description=text))
        return own.update(run, replace(observed, ours=True), (change,))


class FromContext:
    """Base of the types of fields that ``resolve`` or ``scan`` sets: no spec can, and an export leaves them out.

    Such a field has a default, which no resolved resource has, and a copy of the resource keeps its value. It is never
    compared.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> CoreSchema:
        def refuse(value: object) -> Never:
            raise PydanticKnownError("unexpected_keyword_argument")  # like any other key that no field has

        return core_schema.no_info_plain_validator_function(refuse)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: object, handler: object) -> Never:
        raise PydanticOmit
