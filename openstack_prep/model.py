"""The words of this package: frozen data, no I/O.

A *resource* is one thing we want to exist; what stands in the cloud in its place is *observed*; a
*step* leads from the one to the other, and its *result* says how it went.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast
from urllib.parse import quote, unquote

from openstack_prep.errors import Mistake
from openstack_prep.key import Key as Key

if TYPE_CHECKING:
    from openstack_prep.cloud import Cloud
    from openstack_prep.site import Site

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Mark:
    """Our sign on what we create, so that destroy takes back nothing else.

    ``spec`` is the name of the spec.  It stands at the end of a description, as
    ``[openstack-prep:SPEC/NAME]``, or alone as a tag or property ``openstack-prep:SPEC``.
    NAME tells apart things that have no name of their own in OpenStack, such as floating IPs.
    """

    spec: str

    _PATTERN: ClassVar[re.Pattern[str]] = re.compile(r" ?\[openstack-prep:([^\]/]*)(?:/([^\]]*))?\]$")

    @property
    def tag(self) -> str:
        return f"openstack-prep:{_word(self.spec)}"

    def describe(self, name: str, text: str | None = None) -> str:
        """Return a description that carries the mark behind the user's own text."""
        return f"{text or ''} [{self.tag}/{_word(name)}]".lstrip()

    @staticmethod
    def specs_in(tags: Iterable[str]) -> list[str]:
        """Return the names of the specs whose ownership tags are among some tags."""
        found = (tag.partition(":")[2] for tag in sorted(tags) if tag.startswith("openstack-prep:"))
        return [unquote(name) for name in found if not name.startswith("~") and "~" not in name]

    @classmethod
    def name_in(cls, description: str | None) -> str | None:
        """Return the name that a mark in a description gives, whosever mark it is."""
        found = cls._PATTERN.search(description or "")
        return unquote(found[2]) if found and found[2] else None

    def owns(self, description: str | None, name: str | None = None) -> bool:
        """Whether a description carries our mark, and, if given, for just this name."""
        found = self._PATTERN.search(description or "")
        return found is not None and found[1] == _word(self.spec) and (name is None or found[2] == _word(name))

    @classmethod
    def strip(cls, description: str | None) -> str:
        """Return the user's own text of a description."""
        return cls._PATTERN.sub("", description or "")


def _word(name: str) -> str:
    """Return a name without what ends a mark, or what tags may not hold: as in a URL."""
    return quote(name, safe="")


@dataclass(frozen=True, kw_only=True)
class Observed:
    """What stands in the cloud where a resource should.

    ``values`` use the spec's own vocabulary, normalised, so that compare is ``==``.  ``outputs``
    are worth showing besides the id (an address, a checksum).  ``handle`` is what update and delete
    need and nobody compares (a revision number, child ids).  ``holds`` are ids of what is deleted with it.
    ``twins`` are further things with our ownership tag and the same name, made by concurrent or
    interrupted runs where OpenStack allows a name twice.  ``used_by`` says who uses one of several twins.
    """

    id: str
    values: Mapping[str, Any] = field(default_factory=dict)
    ours: bool = False
    outputs: Mapping[str, str] = field(default_factory=dict)
    handle: Mapping[str, Any] = field(default_factory=dict)
    holds: frozenset[str] = frozenset()
    twins: tuple[Observed, ...] = ()
    used_by: tuple[str, ...] = ()
    created_at: str = ""

    @property
    def in_use(self) -> bool:
        """Whether one of several twins has anything on it, ours or not."""
        return bool(self.used_by or self.holds)


@dataclass(frozen=True, slots=True)
class Change:
    """One field that is not as it should be."""

    field: str
    before: Any
    after: Any


@dataclass(frozen=True, kw_only=True)
class Resource:
    """One thing that should exist: the base of all kinds.

    A field that is None is left alone.  A kind is a frozen dataclass of its desired state with the
    verbs find, create, update and delete; it holds no connection, the *site* is handed in.
    """

    kind: ClassVar[str]
    identity: ClassVar[frozenset[str]] = frozenset({"name", "project"})
    """Fields that say which one it is; they are never compared."""
    declarable: ClassVar[bool] = True
    """Whether a spec can declare one; others are only referred to."""
    in_each_project: ClassVar[bool] = False
    """Whether ``scan`` looks into one project at a time."""
    own_id: ClassVar[bool] = True
    """Whether the id of what is observed is its own: a role assignment shows that of its role."""
    immutable: ClassVar[frozenset[str]] = frozenset()
    """Fields that the API cannot change: another value means a replacement, by consent only."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {
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

    def desired(self) -> dict[str, Any]:
        """Return the fields to compare, those left unset taken out."""
        pairs = ((each.name, getattr(self, each.name)) for each in fields(self) if each.name not in self.identity)
        return {name: value for name, value in pairs if value is not None}

    def resolve(self, context: Context) -> Sequence[Resource]:
        """Return the resources that represent this one in a plan, with all that it takes from its context.

        Most kinds return themselves.  Several are returned when the parts have different dependencies; the
        first keeps the key.  May read the context, and files and URLs, those that only an apply needs with
        ``context.for_apply`` alone; must not read the cloud, and changes nothing.  What is taken becomes a
        field: a declared one that was left open, or one of a Resolved kind.  Resolving again what was
        resolved returns an equal resource.  Raises SpecError when resources of the spec contradict each
        other, another PrepError when something cannot be read: then the plan is refused with that error,
        and holds the resource as it was.
        """
        return (self,)

    def references(self) -> Iterable[Resource]:
        """Bare resources that must exist before this one: in the spec, or in the cloud already."""
        return ()

    def needs(self) -> Iterable[Key]:
        """Further keys whose steps come first when the spec has them; absent ones do not matter."""
        return ()

    def follows(self) -> Iterable[Key]:
        """Keys that come first, and whose changes change what this one should be, as a stack's nodes do."""
        return ()

    def provides(self) -> Iterable[Key]:
        """Keys that others can need and that several resources may provide together."""
        return (self.key,)

    @classmethod
    def find(cls, site: Site, wanted: Sequence[Self]) -> Mapping[Key, Observed]:
        """Return what exists of these, read in bulk: one list call a scope, however many are wanted."""
        raise NotImplementedError(cls)

    @classmethod
    def scan(cls, site: Site, owner: Resource | None) -> Iterable[tuple[Self, Observed]]:
        """Yield everything of the kind in a project, and in the cloud for kinds that lie in none.

        Each is given as a spec would declare it, every field filled in that the API tells, and as it
        stands; ``ours`` says whether it carries the ownership tag of this spec.  Reads in bulk what
        ``find`` reads, changes nothing, raises CloudError.  A kind that cannot be listed yields nothing.
        """
        return ()

    def check(self, site: Site, observed: Observed | None) -> Iterable[Mistake]:
        """Yield what would go wrong, as far as reading tells; runs while planning an apply."""
        return ()

    def losses(self, observed: Observed) -> Iterable[Mistake]:
        """Yield what an update would take from those who use it: refused unless consented to."""
        return ()

    def check_delete(self, site: Site, observed: Observed, going: frozenset[str]) -> Iterable[Mistake]:
        """Yield what deleting it would orphan; ``going`` are the ids that go with it."""
        return ()

    def create(self, site: Site) -> Observed:
        raise NotImplementedError(self.kind)

    def update(self, site: Site, observed: Observed, changes: Sequence[Change]) -> Observed:
        raise NotImplementedError(self.kind)

    def delete(self, site: Site, observed: Observed) -> None:
        raise NotImplementedError(self.kind)


@dataclass(frozen=True, kw_only=True)
class Resolved(Resource):
    """Base of the resolved form of a kind: its further fields are what ``resolve`` takes from the context.

    They are no fields of the declared kind, so no spec can give them.
    """

    @classmethod
    def of(cls, declared: Resource, **taken: object) -> Self:
        """Return the resolved form of a resource; ``taken`` are the further fields."""
        given = {each.name: getattr(declared, each.name) for each in fields(declared)}
        return cls(**given | taken)

    def resolve(self, context: Context) -> Sequence[Resource]:
        return (self,)


@dataclass(frozen=True, kw_only=True)
class Context:
    """What resources are resolved from: all resources of the spec as declared, and the connection in use."""

    resources: Sequence[Resource]
    cloud: Cloud
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


class Action(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"
    KEEP = "keep"

    @property
    def mark(self) -> str:
        return {"create": "+", "update": "~", "replace": "-/+", "delete": "-", "keep": "="}[self.value]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing to do to one resource, after the steps it needs.

    ``follows`` are those of them whose work changes what is to be done: so that is found out just before.
    ``label`` tells its resource from the others of the plan; empty when the key's own text does.
    ``duplicate_of`` is the id of the twin that stays.
    """

    resource: Resource
    action: Action
    observed: Observed | None = None
    changes: tuple[Change, ...] = ()
    needs: frozenset[Key] = frozenset()
    follows: frozenset[Key] = frozenset()
    reason: str = ""
    label: str = ""
    duplicate_of: str = ""

    @property
    def key(self) -> Key:
        return self.resource.key

    def __str__(self) -> str:
        return self.label or str(self.key)


INTERRUPT = "the interrupt"
"""The cause of steps that were skipped because the user stopped the run."""


class Status(StrEnum):
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, kw_only=True)
class Result:
    """How one step went; ``cause`` names the failed step because of which it was skipped."""

    step: Step
    status: Status
    observed: Observed | None = None
    seconds: float = 0.0
    error: Exception | None = None
    cause: str = ""
