"""What is known about an existing stack: Heat's status, its missing resources, and the effect of an update."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from openstack_prep.base.raw import Raw, Values
from openstack_prep.base.style import first_of
from openstack_prep.core.deletion_loss import DeletionLoss, Unchecked
from openstack_prep.core.model import UpdateEffects
from openstack_prep.resources.heat.flow import GROUPS
from openstack_prep.resources.heat.preview import MAYBE, Effect
from openstack_prep.resources.heat.stacks import HeatResource, HeatStack

PENDING = "pending"
"""The field of a stack that lists what an update would do."""
SHOWN = 5
"""Places that a plan names per verb."""
NAMES = {"restore": "rebuild", MAYBE: "unknown"}
"""Names of verbs in a plan's data, where they differ."""
WORDS = {
    "add": "adds",
    "update": "updates",
    "replace": "replaces",
    "rebuild": "rebuilds",
    "delete": "deletes",
    "unknown": "may replace members of",
}


@dataclass(frozen=True, kw_only=True)
class StackRecord:
    stack: HeatStack
    status: str
    """Heat's status, such as CREATE_COMPLETE."""
    tags: frozenset[str] = frozenset()
    """All tags of the stack, including those of others."""
    missing: Mapping[str, HeatResource] = field(default_factory=dict)
    """By place: servers and ports that an update has to create again, including servers without a port."""
    cut_off: frozenset[str] = frozenset()
    """Places of the servers that have lost their last port."""
    outdated: Mapping[str, HeatResource] = field(default_factory=dict)
    """By place: volumes that an update has to create again, because the secrets on them have changed."""
    preview: tuple[Effect, ...] = ()
    """What an update would do; empty if Heat was not ``asked``, or has ``refused``."""
    group_names: Mapping[str, str] = field(default_factory=dict)
    """By group of the template, such as pool1: the value of its parameter pool1_name."""
    kept: tuple[str, ...] = ()
    """Parameters whose new values only new servers get."""
    taken: tuple[DeletionLoss | Unchecked, ...] = ()
    """What an update would take from others, and what nobody may read of it."""
    asked: bool = False
    refused: str = ""
    """Why Heat refuses the update."""

    @property
    def in_progress(self) -> bool:
        return self.status.endswith("_IN_PROGRESS")

    @property
    def effects(self) -> UpdateEffects | None:
        """What an update would do, as a plan shows it: agents 2 to 3: Heat adds agents.2, rebuilds none."""
        if not self.preview:
            return None
        sizes = self._sizes()
        places: dict[str, list[str]] = {name: [] for name in WORDS}
        for effect in self.preview:
            if not (effect.verb == "update" and effect.place in sizes):  # its size says it
                places[NAMES.get(effect.verb, effect.verb)].append(effect.place)
        done = [f"{WORDS[name]} {self._named(listed)}" for name, listed in places.items() if listed]
        if not places["replace"] and not places["rebuild"] and not places["unknown"]:
            done.append("rebuilds none")
        if self.kept:
            done.append(self.kept_text)
        begin = ", ".join(f"{self._titled(group)} {before} to {after}" for group, (before, after) in sizes.items())
        text = f"{begin}: Heat {', '.join(done)}" if begin else f"Heat {', '.join(done)}"
        data: Values = {name: {"before": before, "after": after} for name, (before, after) in sizes.items()}
        return UpdateEffects(PENDING, text, {"sizes": data, **places, "kept": list(self.kept)})

    @property
    def kept_text(self) -> str:
        """What existing servers keep."""
        return f"leaves the files of existing servers, so only new ones get {', '.join(self.kept)}"

    def _named(self, places: Sequence[str]) -> str:
        return first_of(map(self._titled, places), SHOWN)

    def _titled(self, place: str) -> str:
        name = self.group_names.get(place, place)
        return place if name == place else f"{place} ({name})"

    def _sizes(self) -> dict[str, tuple[int, int]]:
        """Return the number of members before and after, of each group whose number changes."""
        groups = sorted(place for place, each in self.stack.by_place.items() if each.nested and each.type in GROUPS)
        standing = Counter(place.rpartition(".")[0] for place in self.stack.made)
        difference: Counter[str] = Counter()
        for group in groups:
            depth = len(group) + 1
            for verb, sign in (("add", 1), ("delete", -1)):
                inside = {
                    effect.place[depth:].partition(".")[0]
                    for effect in self.preview
                    if effect.verb == verb and effect.place.startswith(f"{group}.")
                    if (verb == "add" and "." not in effect.place[depth:]) or verb == "delete"
                }
                difference[group] += sign * len(inside)
        return {group: (standing[group], standing[group] + number) for group, number in difference.items() if number}

    @property
    def deleting(self) -> bool:
        return self.status.startswith("DELETE")


def group_names(template: Raw, values: Raw) -> dict[str, str]:
    """Return the names of groups by which people know them: the values of parameters such as pool1_name."""
    resources: Raw = template.get("resources") or {}
    groups = (name for name, each in resources.items() if each.get("type") in GROUPS)
    return {name: str(values[f"{name}_name"]) for name in groups if values.get(f"{name}_name")}
