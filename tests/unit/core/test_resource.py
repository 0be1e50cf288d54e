"""What every kind has without a line of its own, and what a resource takes from its context."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import pytest
from pydantic import TypeAdapter, ValidationError

from openstack_prep.base.errors import Mistake
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.core import resource as contract
from openstack_prep.core.model import (
    Change,
    Coherent,
    Context,
    FromContext,
    Key,
    Observed,
    Resource,
)
from openstack_prep.core.resource import (
    Checks,
    HasImplied,
    MayHaveTwins,
    Provides,
    Resolves,
    Settles,
    can_have_twins,
    cloud_ids,
    deleted_ids,
    followed_keys,
    is_replaced_by,
    kind_supports,
    needs_cloud,
    provided_keys,
    resolve,
    scan_kind,
    supports,
)
from openstack_prep.core.twin import check_delete
from tests.kinds import KINDS
from tests.unit.box import Box


@dataclass(frozen=True, kw_only=True)
class Plain(Resource[Any]):
    """A kind that brings nothing but its name and two fields."""

    kind: ClassVar[str] = "plain"
    immutable: ClassVar[frozenset[str]] = frozenset({"size"})

    name: str
    size: int | None = None
    adopt: bool = False


@dataclass(frozen=True, kw_only=True)
class Single(Plain):
    """A kind that finds one at a time."""

    def find_one(self, run: Any) -> Observed | None:
        return run.get(self.name)

    @classmethod
    def scan(cls, run: Any, owner: Resource | None) -> Iterator[tuple[Any, Observed]]:
        yield owner, run


SEEN = Observed(id="1", contained_ids=frozenset({"2"}))


def test_what_a_kind_does_not_bring_says_its_name() -> None:
    plain = Plain(name="a")
    for act in (
        lambda: plain.find_one(None),
        lambda: Plain.find(None, [plain]),
        lambda: plain.create(None),
        lambda: plain.update(None, SEEN, ()),
        lambda: plain.delete(None, SEEN),
    ):
        with pytest.raises(NotImplementedError, match=r"^plain$"):
            act()


def test_a_kind_that_asks_for_nothing() -> None:
    plain, context = Plain(name="a"), Context(resources=(), cloud=None)
    for found in (
        plain.references(),
        plain.needs(),
        followed_keys(plain),
        scan_kind(Plain, None, None),
        check_delete(plain, None, SEEN, frozenset()),
    ):
        assert tuple(found) == ()
    assert (plain.key, plain.scope) == (Key("plain", "a"), ())
    assert (resolve(plain, context), tuple(provided_keys(plain))) == ((plain,), (plain.key,))
    assert (can_have_twins(plain), supports(plain, Checks), needs_cloud(plain)) == (False, False, True)
    assert cloud_ids(plain, SEEN) == deleted_ids(plain, SEEN) == {"1", "2"}
    assert [is_replaced_by(plain, Change(each, 1, 2)) for each in ("size", "name")] == [True, False]


@dataclass(frozen=True, kw_only=True)
class Rich(Plain):
    """A kind with every function for which others have a default, and some more."""

    can_have_twins: ClassVar[bool] = True
    implied: ClassVar[frozenset[str]] = frozenset({"status"})

    def resolve(self, context: Context) -> Sequence[Resource]:
        return (Plain(name="b"),)

    def provides(self) -> Sequence[Key]:
        return (Key("plain", "c"),)

    def follows(self) -> Sequence[Key]:
        return (Key("plain", "d"),)

    def cloud_ids(self, observed: Observed) -> frozenset[str]:
        return frozenset({"3"})

    def deleted_ids(self, observed: Observed) -> frozenset[str]:
        return frozenset({"4"})

    def is_replaced_by(self, change: Change) -> bool:
        return change.field == "colour"

    def check_delete(self, run: Any, observed: Observed, going: frozenset[str]) -> Sequence[Mistake]:
        return (Mistake("here", observed.id),)


def test_what_a_kind_adds_is_asked_for() -> None:
    rich, context = Rich(name="a"), Context(resources=(), cloud=None)
    assert (resolve(rich, context), tuple(provided_keys(rich))) == ((Plain(name="b"),), (Key("plain", "c"),))
    assert (tuple(followed_keys(rich)), can_have_twins(rich)) == ((Key("plain", "d"),), True)
    assert (cloud_ids(rich, SEEN), deleted_ids(rich, SEEN)) == ({"3"}, {"4"})
    assert tuple(check_delete(rich, None, SEEN, frozenset())) == (Mistake("here", "1"),)
    changes = [Change(each, 1, 2) for each in ("size", "name", "colour")]
    assert [is_replaced_by(rich, each) for each in changes] == [True, False, True]


def test_a_kind_has_a_protocol_by_all_that_the_protocol_names() -> None:
    asked = (HasImplied, Resolves, MayHaveTwins, Provides, Settles)
    assert [supports(Rich(name="a"), each) for each in asked] == [True, True, True, True, False]
    assert [kind_supports(Plain, each) for each in asked] == [False] * len(asked)


PROTOCOLS = [
    each for each in vars(contract).values() if each is not Protocol and getattr(each, "_is_protocol", False) is True
]


@pytest.mark.parametrize("kind", KINDS.values())
def test_functions_of_protocols_are_called_as_the_protocols_say(kind: type[Resource]) -> None:
    """mypy compares their signatures only for classes that name the protocol as a base."""
    for protocol in (each for each in PROTOCOLS if kind_supports(kind, each)):
        for name in (name for name in vars(protocol) if not name.startswith("_")):
            if callable(wanted := getattr(protocol, name)):
                given = getattr(kind, name)
                assert [*inspect.signature(given).parameters] == [*inspect.signature(wanted).parameters], name


def test_what_is_compared_is_what_was_declared() -> None:
    assert Plain(name="a", adopt=True).desired() == {}
    assert Plain(name="a", size=0).desired() == {"size": 0}


def test_those_that_exist_are_found_one_by_one() -> None:
    wanted = [Single(name="a"), Single(name="b")]
    assert Single.find({"a": SEEN}, wanted) == {wanted[0].key: SEEN}
    assert list(scan_kind(Single, "run", wanted[0])) == [(wanted[0], "run")]


# --- context ------------------------------------------------------------------------------


def test_the_declared_resources_of_a_kind_are_those_in_the_order_of_the_spec() -> None:
    boxes = (Box(name="b"), Plain(name="x"), Box(name="a"), Single(name="y"))
    context = Context(resources=boxes, cloud=None)
    assert context.declared(Box) == (boxes[0], boxes[2])
    assert context.declared(Plain) == (boxes[1], boxes[3])
    assert context.declared(Single) == (boxes[3],)
    assert context.declared(Box) is context.declared(Box)


def test_what_several_resources_derive_is_derived_once() -> None:
    context, asked = Context(resources=(), cloud=None), list[int]()

    def derive() -> Sequence[int]:
        asked.append(1)
        return tuple(asked)

    assert [context.read_once("a", derive), context.read_once("a", derive), context.read_once("b", derive)] == [
        (1,),
        (1,),
        (1, 1),
    ]
    assert Context(resources=(), cloud=None).read_once("a", derive) == (1, 1, 1)


@dataclass(frozen=True)
class Beside(FromContext):
    """What a context says."""

    names: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Placed(Plain):
    """A kind with what its context says."""

    beside: Beside = Beside()


def test_what_comes_from_the_context_is_kept_by_a_copy_and_never_compared() -> None:
    placed = Placed(name="a", size=2, beside=Beside(("b",)))
    assert replace(placed, size=3).beside == Beside(("b",))
    assert placed.desired() == {"size": 2}


# --- reading a spec -----------------------------------------------------------------------


class Taken(FromContext):
    """What only a context sets."""


@dataclass(frozen=True)
class Pair(Coherent):
    """Two numbers in order."""

    low: int
    high: int
    taken: Taken | None = None

    def contradictions(self) -> Iterator[InvalidValue]:
        if self.low > self.high:
            yield InvalidValue(f"{self.low} is above {self.high}", "swap them")


def test_fields_that_contradict_each_other_are_a_mistake_of_the_whole() -> None:
    adapter = TypeAdapter(Pair)
    assert adapter.validate_python({"low": 1, "high": 2}) == Pair(1, 2)
    with pytest.raises(ValidationError) as caught:
        adapter.validate_python({"low": 3, "high": 2})
    (error,) = caught.value.errors()
    assert (error["type"], error["loc"]) == ("contradiction", ())
    assert error["ctx"] == {"text": error["msg"], "what": "3 is above 2", "fix": "swap them"}
    assert tuple(Coherent().contradictions()) == ()


def test_what_a_context_sets_is_no_field_of_a_spec() -> None:
    adapter = TypeAdapter(Pair)
    with pytest.raises(ValidationError) as caught:
        adapter.validate_python({"low": 1, "high": 2, "taken": "x"})
    assert "unexpected_keyword_argument" in {each["type"] for each in caught.value.errors()}
    assert adapter.json_schema()["properties"].keys() == {"low", "high"}
