"""Secrets on their way through data: a token stands for each until a field for secrets takes it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from openstack_prep.base.secret import Secret


@dataclass
class Tokens:
    """Secrets that never become text, by their tokens; each place has a token of its own."""

    given: dict[str, tuple[str, Secret]] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    plain: bool = False
    """Whether a field for secrets was given a text."""

    def add(self, secret: Secret, place: str) -> dict[str, str]:
        """Return what stands for a secret in the data."""
        token = secrets.token_hex(16)
        self.given[token] = place, secret
        return {"token": token}

    def get(self, value: object) -> Secret | None:
        """Return the secret that a value stands for; None if it is not a token."""
        if not isinstance(value, dict) or list(value) != ["token"] or value["token"] not in self.given:
            return None
        return self.given[value["token"]][1]

    def take(self, value: object) -> Secret | None:
        """Return the same for a field for secrets, which may hold it."""
        self.plain |= isinstance(value, str)
        if (secret := self.get(value)) and isinstance(value, dict):
            self.taken.add(value["token"])
        return secret

    def drop(self, value: object) -> Secret | None:
        """Return the same, and forget the token: nothing will hold it."""
        secret = self.get(value)
        if secret and isinstance(value, dict):
            del self.given[value["token"]]
        return secret

    @property
    def left(self) -> list[str]:
        """The places of the tokens that no field for secrets has taken."""
        return [place for token, (place, _) in self.given.items() if token not in self.taken]
