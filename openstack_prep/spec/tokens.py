"""Secrets on their way through data: a token stands for each until a field for secrets takes it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from openstack_prep.base.secret import Secret


@dataclass
class Tokens:
    """Secrets that never become text, by their tokens; ``left`` are the places of those that no field has taken."""

    given: dict[str, tuple[str, Secret]] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def add(self, secret: Secret, place: str) -> dict[str, str]:
        """Return what stands for a secret in the data."""
        token = secrets.token_hex(16)
        self.given[token] = place, secret
        return {"token": token}

    def take(self, value: object) -> Secret | None:
        """Return the secret that a value stands for; None if it is not a token."""
        if not isinstance(value, dict) or list(value) != ["token"] or value["token"] not in self.given:
            return None
        self.taken.add(value["token"])
        return self.given[value["token"]][1]

    @property
    def left(self) -> list[str]:
        return [place for token, (place, _) in self.given.items() if token not in self.taken]
