"""The contract of a kind: what each of its functions may read and change, and what it must return or raise.

Whoever adds a kind implements ``find``, ``create``, ``update`` and ``delete``, and of the rest only what the kind
needs.  The planner and the executor know no kind: they rely on what is written here alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, cast

from openstack_prep.base.errors import Loss, Mistake
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.key import Key
from openstack_prep.base.raw import Values
from openstack_prep.core.observed import Change, Observed, Texts

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema
    from typing_extensions import TypeVar  # with a default, as in Python 3.13

    S = TypeVar("S", default=Any)
    """What the functions of a kind work with: ``Site`` for all kinds of OpenStack's."""
    C = TypeVar("C", default=Any)
    """A connection."""
else:
    from typing import TypeVar

    S, C = TypeVar("S"), TypeVar("C")

T = TypeVar("T")


class Coherent:
    """Base of what has fields that can contradict each other.

    They are compared once each has its one form: when a spec is read, or when a plan is made of resources that were
    made in Python.  A constructor does not compare them, because ``protocol="TCP"`` is not yet ``tcp`` there.
    """

    def contradictions(self) -> Iterable[InvalidValue]:
        """Yield each contradiction, with its remedy."""
        return ()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        def compare(value: Coherent) -> Coherent:
            for found in value.contradictions():
                raise found
            return value

        return core_schema.no_info_after_validator_function(compare, handler(source))


@dataclass(frozen=True, kw_only=True)
class Resource(Generic[S]):
    """One thing that should exist: the base of all kinds.

    A kind is a frozen dataclass of its desired state; a field that is None is left alone.  It holds neither a
    connection nor any state that is not a field: ``dataclasses.replace`` keeps its plan.
    """

    kind: ClassVar[str]
    identity: ClassVar[frozenset[str]] = frozenset({"name", "project"})
    """Fields that say which one it is; they are never compared."""
    is_described: ClassVar[bool] = True
    """Whether what it finds says more than an id, so that it does for whoever else looks for that key."""
    declarable: ClassVar[bool] = True
    """Whether a spec can declare one; others are only referred to."""
    one_per_spec: ClassVar[bool] = False
    """Whether others refer to several of which a spec can declare one."""
    in_each_project: ClassVar[bool] = False
    """Whether ``scan`` looks into one project at a time."""
    has_tag: ClassVar[bool] = True
    """Whether it carries the ownership tag itself; what does not is never found to be no longer in the spec."""
    immutable: ClassVar[frozenset[str]] = frozenset()
    """Fields that the API cannot change: another value means a replacement, by consent only."""
    implied: ClassVar[frozenset[str]] = frozenset()
    """Fields that no spec can give and that all that is created has: a plan shows them only where they differ."""
    previewed: ClassVar[bool] = False
    """Whether only the service can tell what an update does: then it is asked again right before each update."""

    __pydantic_config__: ClassVar[dict[str, object]] = {
        "extra": "forbid",
        "strict": True,  # YAML has types of its own: `yes` is no number and 010 no text
    }

    if TYPE_CHECKING:  # a field of most kinds; others derive it

        @property
        def name(self) -> str: ...

    @property
    def scope(self) -> tuple[str, ...]:
        """Where the name is unique, from the outside in; empty for what the whole cloud shares."""
        return ()

    @property
    def key(self) -> Key:
        return Key(self.kind, self.name, self.scope)

    @property
    def can_have_twins(self) -> bool:
        """Whether OpenStack accepts a second one with the same name, so that concurrent runs may create two."""
        return False

    # --- before anything is read: pure ----------------------------------------------------

    def desired(self) -> Values:
        """Return the declared fields in the form that ``find`` returns them in; fields left unset are left out.

        Called often, by several threads: must return equal values each time, and may read nothing but the
        resource itself and the files that it names.  Must not raise.
        """
        uncompared = self.identity | {"adopt"}
        pairs = ((each.name, getattr(self, each.name)) for each in fields(self) if each.name not in uncompared)
        return {name: value for name, value in pairs if value is not None}

    def resolve(self, context: Context) -> Sequence[Resource]:
        """Return the resources that represent this one in a plan, with all that it takes from its context.

        Most kinds return themselves.  Several are returned when the parts have different dependencies; the
        first keeps the key.  What is taken becomes a field: a declared one that was left open, or one of a
        Resolved kind.  Called once per plan, before the cloud is read, and again when that plan is made
        again: to resolve what was resolved returns an equal resource.

        May read the context, and files and URLs; those that only an apply needs when ``context.for_apply``
        is set alone.  Must not read the cloud, nor change anything.  Raises SpecError when resources of the
        spec contradict each other, which ends the run; any other PrepError when something cannot be read:
        then a plan to apply is refused with that error, and holds the resource as it was.
        """
        return (self,)

    def references(self) -> Iterable[Resource]:
        """Return bare resources that must exist before this one: in the spec, or in the cloud already.

        Those that the spec does not declare are looked up with their own ``find``; a missing one is a mistake.
        """
        return ()

    def needs(self) -> Iterable[Key]:
        """Return further keys whose steps come first when the spec has them; absent ones do not matter."""
        return ()

    def follows(self) -> Iterable[Key]:
        """Return keys that come first and whose changes change what is to be done here, as a stack's nodes do.

        When one of them changes, the executor calls ``find`` again right before the step, and decides again.
        """
        return ()

    def provides(self) -> Iterable[Key]:
        """Return the keys that others wait for with ``needs``; several resources may provide one together."""
        return (self.key,)

    # --- reading: changes nothing ---------------------------------------------------------

    @classmethod
    def find(cls, site: S, wanted: Sequence[Self]) -> Mapping[Key, Observed]:
        """Return what exists of these, by key; what does not exist is left out.

        Reads in bulk: one list call per scope, however many are wanted.  Called in a thread per kind, while
        others read, so all that is read goes through ``site.once`` or ``site.look``.  ``wanted`` may be bare:
        a name with its scope.  Works as the administrator as far as possible, because the project's own user
        may not exist yet.  Values are in the vocabulary of ``desired``.  Must find what a killed run of this
        spec has left half made.  Raises NotUnique when a name does not tell which one is meant, and CloudError.
        """
        raise NotImplementedError(cls)

    @classmethod
    def scan(cls, site: S, owner: Resource | None) -> Iterable[tuple[Self, Observed]]:
        """Yield everything of the kind in a project, and in the cloud for kinds that lie in none.

        Each is given as a spec would declare it, every field filled in that the API tells, and as it
        stands; ``ours`` says whether it carries the ownership tag of this spec.  Reads in bulk what
        ``find`` reads, changes nothing, raises CloudError.  A kind that cannot be listed yields nothing.
        """
        return ()

    def cloud_ids(self, observed: Observed) -> frozenset[str]:
        """Return what tells it from all others of its kind in the cloud, whatever it is called: mostly its id.

        Two resources that share any of these are one thing.
        """
        return frozenset({observed.id, *observed.holds})

    def check(self, site: S, observed: Observed | None) -> Iterable[Mistake]:
        """Yield what would go wrong, as far as reading tells; each mistake refuses the plan.

        Called once per plan to apply, after ``find``, in parallel with the checks of others.  May read the
        cloud; a CloudError ends the plan.  What is wrong with the resource is yielded, not raised.
        """
        return ()

    def losses(self, observed: Observed) -> Iterable[Loss]:
        """Yield what an update would take from those who use it; each refuses the plan without --allow-replace.

        Pure: judges by what ``find`` has read.  Replacements need not be yielded; the planner knows them.  A run
        refuses those that its plan has not shown, by ``Loss.things``.
        """
        return ()

    def is_foreseen(self, observed: Observed) -> bool:
        """Return whether ``find`` could tell all that an update would take away; only asked of ``previewed`` kinds."""
        return True

    def texts(self, observed: Observed) -> Texts | None:
        """Return the file that it is, so that a plan shows which lines change; None: it is none.  Pure."""
        return None

    def settle(self, site: S, observed: Observed) -> bool:
        """Wait for work that is in progress on it, before an update is decided; return whether there was any."""
        return False

    def check_delete(self, site: S, observed: Observed, going: frozenset[str]) -> Iterable[Mistake]:
        """Yield what a deletion would orphan or break; ``going`` are the ids that are deleted with it.

        Called once per plan to destroy, in parallel with others.  May read the cloud.
        """
        return ()

    # --- changing -------------------------------------------------------------------------

    def create(self, site: S) -> Observed:
        """Create it, and return it as ``find`` would, with ``ours`` set.

        Called when ``find`` has found nothing, or after ``delete`` in a replacement; all that it references
        exists by then.  The first request that creates something carries the ownership tag.  A run may be
        killed, or an answer lost, after any request: what follows the first POST must be something that
        ``find`` can tell is missing and ``update`` can do.

        Not idempotent, and need not be: after a retryable CloudError the executor does not call it again but
        finds, decides and then calls what is left to do.  Any other exception ends the step.
        """
        raise NotImplementedError(self.kind)

    def update(self, site: S, observed: Observed, changes: Sequence[Change]) -> Observed:
        """Bring what was found to the desired state, and return it as ``find`` would.

        ``changes`` are the fields that differ, none of them immutable.  Touches those alone: what others have
        added stays.  Idempotent: may be called again with what a new ``find`` returns, after any part was
        done.  Must not delete what holds data unless ``losses`` has told so.  Raises like ``create``.
        """
        raise NotImplementedError(self.kind)

    def delete(self, site: S, observed: Observed) -> None:
        """Delete it, and return when it is gone.

        Called for what is ours, after ``check_delete``; in a replacement also for what carries no tag
        (``has_tag``), by consent.
        Idempotent: what is gone already counts as deleted.  Must leave alone what others have added, unless
        that cannot exist without it.  Raises like ``create``.
        """
        raise NotImplementedError(self.kind)


@dataclass(frozen=True, kw_only=True)
class Context(Generic[C]):
    """What resources are resolved from: all resources of the spec as declared, and the connection in use."""

    resources: Sequence[Resource]
    cloud: C
    for_apply: bool = False
    """Whether the resource is about to be applied; destroy and show need less."""
    _results: dict[Hashable, object] = field(default_factory=dict, repr=False, compare=False)

    def declared(self, kind: type[T]) -> list[T]:
        """Return the resources of a kind, in the order of the spec."""
        return [each for each in self.resources if isinstance(each, kind)]

    def once(self, name: Hashable, derive: Callable[[], T]) -> T:
        """Return what ``derive`` makes of the whole spec; several resources need it, and it is called once."""
        if name not in self._results:
            self._results[name] = derive()
        return cast(T, self._results[name])
