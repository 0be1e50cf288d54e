"""Plans of a fleet in one file, to be applied later: of each target what ``plan -o`` saves of a single spec."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.formats.foreign_text import parse_json
from openstack_prep.base.given_file import MIB, name_of, read_bytes, unreadable
from openstack_prep.base.private_file import write_private_here
from openstack_prep.base.raw import Values
from openstack_prep.fleet.file.fields import Fleet
from openstack_prep.fleet.order import TargetOutcome
from openstack_prep.verbs.plan_file import AGAIN, digest_of, refuse_other_file, validated
from openstack_prep.version import __version__

FORMAT = 1
MOST_BYTES = 512 * MIB


def save(path: Path, fleet: Fleet, outcomes: Iterable[TargetOutcome]) -> int:
    """Write the plans of all targets whose plan may be carried out; return how many.

    Raises PrepError, ConfigError for a file that is no saved plan.
    """
    refuse_other_file(path)
    plans = {outcome.target: outcome.saved for outcome in outcomes if outcome.saved is not None}
    content = {"format": FORMAT, "made_by": f"openstack-prep {__version__}", "fleet": fleet.name, "targets": plans}
    write_private_here(path, json.dumps({**content, "digest": digest_of(content)}) + "\n")
    return len(plans)


def read(path: Path, fleet: Fleet) -> Mapping[str, Values]:
    """Return the saved plans by target; raises SpecError unless it is an intact plan of this fleet."""
    try:
        raw: Any = parse_json(read_bytes(path, MOST_BYTES))
    except OSError as error:
        raise SpecError([Mistake(name_of(path), unreadable(error), AGAIN)]) from None
    except ValueError:
        raw = None
    plans = raw.get("targets") if isinstance(raw, dict) and raw.get("format") == FORMAT else None
    if not isinstance(plans, dict) or not isinstance(raw.get("fleet"), str):
        raise SpecError([Mistake(str(path), "is not a saved plan of a fleet of this version", AGAIN)])
    if raw.get("digest") != digest_of({name: value for name, value in raw.items() if name != "digest"}):
        raise SpecError([Mistake(str(path), "was edited or damaged: its digest does not match", AGAIN)])
    if raw["fleet"] != fleet.name:
        what = f"is a plan of the fleet {raw['fleet']}, not of {fleet.name}"
        raise SpecError([Mistake(str(path), what, "pass the fleet file that it was created from")])
    mistakes: list[Mistake] = []
    for name, each in plans.items():
        try:
            if not isinstance(each, dict):
                raise SpecError([Mistake(f"{path}: {name}", "is not valid in a saved plan", AGAIN)])
            validated(Path(f"{path}: {name}"), each)
        except SpecError as error:
            mistakes += error.mistakes
    if mistakes:
        raise SpecError(mistakes)
    return plans
