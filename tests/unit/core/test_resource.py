"""What every kind has without a line of its own, and what a resource takes from its context."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from pydantic import TypeAdapter, ValidationError

from openstack_prep.base.invalid import InvalidValue
from openstack_prep.core.model import (
    Change,
    Coherent,
    Context,
    FromContext,
    Key,
    Observed,
    Resolved,
    Resource,
)
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
    assert plain.resolve(context) == (plain,)
    for found in (
        plain.list_mistakes(context),
        plain.list_warnings(context),
        plain.list_inherited(plain),
        plain.references(),
        plain.needs(),
        plain.yields_to(),
        plain.follows(),
        plain.scan(None, None),
        plain.check(None, None),
        plain.list_losses(SEEN),
        plain.check_delete(None, SEEN, frozenset()),
    ):
        assert tuple(found) == ()
    assert (plain.key, plain.scope, tuple(plain.provides())) == (Key("plain", "a"), (), (plain.key,))
    assert (plain.can_have_twins, plain.settle(None, SEEN), plain.is_foreseen(SEEN), plain.texts(SEEN)) == (
        False,
        False,
        True,
        None,
    )
    assert plain.cloud_ids(SEEN) == plain.deleted_ids(SEEN) == {"1", "2"}
    assert [plain.is_replaced_by(Change(each, 1, 2)) for each in ("size", "name")] == [True, False]


def test_what_is_compared_is_what_was_declared() -> None:
    assert Plain(name="a", adopt=True).desired() == {}
    assert Plain(name="a", size=0).desired() == {"size": 0}


def test_those_that_exist_are_found_one_by_one() -> None:
    wanted = [Single(name="a"), Single(name="b")]
    assert Single.find({"a": SEEN}, wanted) == {wanted[0].key: SEEN}
    assert list(Single.scan_tagged("run", wanted[0])) == list(Single.scan("run", wanted[0]))


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


@dataclass(frozen=True, kw_only=True)
class ResolvedPlain(Plain, Resolved[Any]):
    """With what its context says."""

    after: tuple[str, ...] = ()


def test_a_resolved_kind_has_what_was_declared_and_what_was_taken() -> None:
    resolved = ResolvedPlain.of(Plain(name="a", size=2), after=("b",))
    assert resolved == ResolvedPlain(name="a", size=2, after=("b",))
    assert ResolvedPlain.of(Plain(name="a"), size=3).size == 3
    assert resolved.resolve(Context(resources=(), cloud=None)) == (resolved,)


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
