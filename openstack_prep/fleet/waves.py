"""Which targets of a fleet are worked on, and in which order; pure functions."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from openstack_prep.base.errors import ConfigError
from openstack_prep.fleet.file.loading import meant
from openstack_prep.fleet.file.model import Fleet, Target, WaveFields


@dataclass(frozen=True)
class Wave:
    """Targets that are worked on at the same time."""

    title: str
    targets: tuple[Target, ...]


def choose(fleet: Fleet, only: Collection[str]) -> list[Target]:
    """Return the targets of some groups, or of some names; without any all of them.  Raises ConfigError."""
    known = {each.name for each in fleet.targets} | {group for each in fleet.targets for group in each.groups}
    for name in only:
        if name not in known:
            raise ConfigError(
                f"--only {name}: the fleet {fleet.name} has no such group or target; {meant(name, known)}"
            )
    return [each for each in fleet.targets if not only or {each.name, *each.groups} & {*only}]


def arrange(fleet: Fleet, targets: Sequence[Target]) -> list[Wave]:
    """Return targets in waves, in the order of the fleet; the last one has the rest."""
    left, waves = list(targets), list[Wave]()
    for number, each in enumerate(fleet.waves, 1):
        chosen = list(_of_wave(each, left, len(targets)))
        left = [target for target in left if target not in chosen]
        if chosen:
            waves.append(Wave(f"wave {number} ({_words(each)})", tuple(chosen)))
    if left:
        waves.append(Wave("the rest" if waves else "all targets", tuple(left)))
    return waves


def _of_wave(wave: WaveFields, left: Sequence[Target], total: int) -> Iterator[Target]:
    if wave.percent is not None:
        yield from left[: math.ceil(total * wave.percent / 100)]
        return
    for each in left:
        if each.name in wave.targets or {*each.groups} & {*wave.groups}:
            yield each


def _words(wave: WaveFields) -> str:
    return f"{wave.percent} %" if wave.percent is not None else ", ".join((*wave.groups, *wave.targets))
