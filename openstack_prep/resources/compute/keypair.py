"""SSH key pairs of a user; Nova puts the public key into new servers.

Source: Compute API, "Keypairs"; those of other users since microversion 2.10.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self
from urllib.parse import quote

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, NotFound
from openstack_prep.base.fields import Name, PublicKey, public_key
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Context, Key, Observed, OwnershipTag, Resource
from openstack_prep.resources.identity import home
from openstack_prep.resources.identity import user as users
from openstack_prep.resources.identity.in_project import ByProjectUser, quotas_of
from openstack_prep.resources.identity.project import DEFAULT_DOMAIN
from openstack_prep.resources.identity.user import User
from openstack_prep.resources.lists import queries

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud


NAMES = re.compile(r"(?! )[a-zA-Z0-9_ -]+(?<! )")
"""Names of new key pairs (Nova 34.0.0, compute/keypairs.py, _validate_new_key_pair; schemas/keypairs.py below 2.92)."""


@dataclass(frozen=True)
class Holder:
    """The user who owns the key pair."""

    user_id: str


@dataclass(frozen=True, kw_only=True)
class Keypair(ByProjectUser):
    """A public key that belongs to a user. The ownership tag is appended to the key's comment.

    It names the key pair, because Nova shows the key with its comment, and people register such a key again under
    another name. In tags of 1.0.0rc1 and earlier the name is missing: they count only while the key pair is declared.
    """

    kind: ClassVar[str] = "keypair"
    identity: ClassVar[frozenset[str]] = ByProjectUser.identity | {"user", "user_domain"}
    immutable: ClassVar[frozenset[str]] = frozenset({"public_key"})

    name: Name
    """Name of the key pair, unique per user."""
    public_key: PublicKey
    """The key as in a .pub file, or {file: PATH}; its comment is not compared."""
    user: Name | None = None
    """Name of the owner; default: the user who acts in the project."""
    user_domain: Name = DEFAULT_DOMAIN
    """Name of the owner's domain."""

    @property
    def scope(self) -> tuple[str, ...]:
        return ("user", self.user_domain, self.user) if self.user else self.place

    def desired(self) -> Values:
        return {"public_key": _without_comment(self.public_key)}

    def references(self) -> Iterable[Resource]:
        yield from super().references()
        if self.user:
            yield User(name=self.user, domain=self.user_domain)

    def needs(self) -> Iterable[Key]:
        return () if self.user else super().needs()

    def outlives(self) -> Iterable[Key]:
        """Return the quotas alone: a key pair belongs to the user that logs in to the project, by a role."""
        return (quotas_of(self.place, self.project),)

    def list_mistakes(self, context: Context) -> Iterable[Mistake]:
        try:
            public_key(self.public_key, Path())
        except InvalidValue as error:
            yield self.mistake(f"public_key {error.what}", error.fix, error.code)

    def check(self, run: CloudRun, observed: Observed | None) -> Iterable[Mistake]:
        if observed is None and not NAMES.fullmatch(self.name):
            what = "is not a name that Nova accepts for a new key pair"
            yield self.mistake(what, "use letters, digits, spaces inside, _ and -", Code.SPEC_INVALID_VALUE, "name")

    def find_one(self, run: CloudRun) -> Observed | None:
        cloud, user_id = self._holder(run)
        raw = queries.keypairs(run, cloud, user_id).get(self.name) if user_id else None
        return self._observed(run, raw, user_id) if raw is not None and user_id is not None else None

    @classmethod
    def scan(cls, run: CloudRun, owner: Resource | None) -> Iterator[tuple[Self, Observed]]:
        """Yield the key pairs of the user who acts in the project, else of the spec's users who have a role there."""
        for user, raw, user_id in users.keypairs(run, owner):
            fields: Values = {"user": user.name, "user_domain": user.domain} if user else {}
            key = _without_comment(raw["public_key"])
            declared = cls(name=raw["name"], public_key=key, **cls.placing(owner), **fields)
            found = declared._observed(run, raw, user_id)
            is_named = _comment(raw)[-1:] == [declared._tag(run.ownership)]
            yield declared, replace(found, ours=found.ours and is_named)

    def cloud_ids(self, observed: Observed) -> frozenset[str]:
        return frozenset({f"{observed.record_as(Holder).user_id} {observed.id}"})

    def deleted_ids(self, observed: Observed) -> frozenset[str]:
        return self.cloud_ids(observed)

    def _holder(self, run: CloudRun) -> tuple[Cloud, str | None]:
        user = User(name=self.user, domain=self.user_domain) if self.user else None
        return users.keypair_holder(run, self.owner, user)

    def _observed(self, run: CloudRun, raw: Raw, user_id: str) -> Observed:
        comment = _comment(raw)
        named = run.ownership.home_among(comment)
        tags = ([run.ownership.tag], [self._tag(run.ownership)])
        return Observed(
            id=raw["name"],
            ours=comment[-1:] in tags and home.is_ours(run, named),
            home=named,
            managed_by=home.other_spec(run, _spec_in(comment), named),
            values={"public_key": _without_comment(raw["public_key"])},
            outputs={"fingerprint": raw["fingerprint"]},
            record=Holder(user_id),
        )

    def _tag(self, ownership: OwnershipTag) -> str:
        return f"{ownership.tag}/{quote(self.name, safe='')}"

    def create(self, run: CloudRun) -> Observed:
        cloud, user_id = self._holder(run)
        if user_id is None:
            raise NotFound(f"{self.key}: its user exists neither in the spec nor in the cloud")
        *home_tag, _ = home.ownership(run).tags
        body = {
            "name": self.name,
            "public_key": " ".join([self.public_key, *home_tag, self._tag(run.ownership)]),
            "user_id": user_id,
        }
        return self._observed(run, cloud.compute.post("/os-keypairs", {"keypair": body})["keypair"], user_id)

    def delete(self, run: CloudRun, observed: Observed) -> None:
        cloud, _ = self._holder(run)
        user_id = observed.record_as(Holder).user_id
        cloud.compute.delete(f"/os-keypairs/{quote(self.name, safe='')}?user_id={user_id}")


def _comment(raw: Raw) -> list[str]:
    words: list[str] = raw["public_key"].split()
    return words[2:]


def _spec_in(comment: Sequence[str]) -> str | None:
    """Return the name of the spec whose ownership tag ends a comment."""
    return next(iter(OwnershipTag.specs_in(word.partition("/")[0] for word in comment[-1:])), None)


def _without_comment(key: str) -> str:
    return " ".join(key.split()[:2])
