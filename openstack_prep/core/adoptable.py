"""Kinds that apply changes only with permission (adoption), and resolved kinds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, Never, Self, cast

from openstack_prep.core.observed import Change, Observed
from openstack_prep.core.resource import Context, Resource, S

if TYPE_CHECKING:
    from pydantic_core import CoreSchema


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

    Such a field has a default, and a copy of the resource keeps its value.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> CoreSchema:
        from pydantic_core import PydanticKnownError, core_schema

        def refuse(value: object) -> Never:
            raise PydanticKnownError("unexpected_keyword_argument")  # like any other key that no field has

        return core_schema.no_info_plain_validator_function(refuse)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: object, handler: object) -> Never:
        from pydantic_core import PydanticOmit

        raise PydanticOmit


@dataclass(frozen=True, kw_only=True)
class Resolved(Resource[S]):
    """Base of the resolved form of a kind: its additional fields are what ``resolve`` takes from the context.

    They are not fields of the declared kind, so no spec can set them.
    """

    @classmethod
    def of(cls, declared: Resource, **taken: object) -> Self:
        """Return the resolved form of a resource; ``taken`` are the additional fields."""
        given = {each.name: getattr(declared, each.name) for each in fields(declared)}
        return cls(**given | taken)

    def resolve(self, context: Context) -> Sequence[Resource]:
        return (self,)
