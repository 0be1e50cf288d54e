"""The conversion as a whole: files, the proof, what does not carry over, notes and steps."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.base.raw import Values
from openstack_prep.exposures.convert import pools, proof, rendering
from openstack_prep.exposures.convert.deciding import decide
from openstack_prep.exposures.convert.model import Decision, Left, Old, Wanted
from openstack_prep.exposures.convert.proof import Kept
from openstack_prep.exposures.convert.reading import COMMAND
from openstack_prep.exposures.convert.steps import BEFORE, COMMANDS, POOLS, SERVICES, Step, steps

MOST_NAMES = 5


@dataclass(frozen=True)
class Conversion:
    """What was converted to what; ``files`` contain no secrets."""

    wanted: Wanted
    count: int
    kept: tuple[Kept, ...]
    left: tuple[Left, ...]
    notes: tuple[str, ...]
    steps: tuple[Step, ...]
    files: Mapping[str, str]

    @property
    def tag(self) -> str:
        """The name in the ownership tag of the files: it differs for other Services, whose way back is not replaced."""
        return f"{self.wanted.to}-{hashlib.sha256(self.files[BEFORE].encode()).hexdigest()[:12]}"

    def data(self) -> Values:
        """Return the conversion as data."""
        return {
            "to": self.wanted.to,
            "release": self.wanted.release,
            "services": [_lists(asdict(each)) for each in self.kept],
            "left": [_lists(asdict(each)) for each in self.left],
            "notes": list(self.notes),
            "files": dict(self.files),
            "steps": [_lists(asdict(each)) for each in self.steps],
        }

    def __str__(self) -> str:
        if not self.kept and not self.left:
            return f"nothing to convert: {self.count} Services, without addresses in externalIPs"
        lines = [f"{self.wanted.to} {self.wanted.release}: {len(self.kept)} of {self.count} Services change"]
        if self.kept:
            lines += ["", "addresses afterwards = before, read again from the files:", *proof.table(self.kept)]
        if self.left:
            lines += ["", "does not carry over:", *_left_lines(self.left)]
        lines += ["", "notes:", *(f"  - {each}" for each in self.notes)] if self.notes else []
        lines += ["", "steps:", *_numbered(self.steps)] if self.steps else []
        return "\n".join(lines)


def _lists(values: Values) -> Values:
    return {name: list(each) if isinstance(each, tuple) else each for name, each in values.items()}


def _left_lines(left: tuple[Left, ...]) -> Iterator[str]:
    for each in left:
        yield f"  {each.service}  {', '.join(each.addresses)}: {each.why}"
        yield f"    fix: {each.fix}"


def _numbered(found: tuple[Step, ...]) -> Iterator[str]:
    return (f"{number}. {step}" for number, step in enumerate(found, 1))


def convert(old: Old, wanted: Wanted) -> Conversion:
    """Convert; raises SpecError if the load balancer refuses the pools."""
    decision = decide(old, wanted)
    manifests = pools.manifests(pools.ranges(old, decision), wanted) if decision.carriers else []
    texts = {
        POOLS: dump(*manifests),
        SERVICES: dump(*rendering.services(old, decision, wanted)),
        BEFORE: dump(*rendering.before(old, decision)),
    }
    kept = proof.prove(old, texts[POOLS], texts[SERVICES], wanted)
    way = tuple(steps(old, decision, wanted)) if decision.carriers else ()
    files = {**texts, COMMANDS: "\n".join(_numbered(way)) + "\n"} if decision.carriers else {}
    notes = tuple(_notes(old, decision, wanted))
    return Conversion(wanted, old.count, kept, decision.left, notes, way, files)


def _notes(old: Old, decision: Decision, wanted: Wanted) -> Iterator[str]:
    if not decision.carriers:
        return
    if not old.has_nodes:
        yield f"no Nodes were given, so addresses of nodes are not recognized; {COMMAND} lists them"
    if old.others:
        names = f"{_names(list(old.others))} of type LoadBalancer without a class"
        if wanted.to == "cilium":
            yield (
                f"as soon as there is a pool, Cilium removes addresses that are in no pool of Cilium from {names}: "
                "give them a loadBalancerClass first, or (1.17 and later) set defaultLBServiceIPAM: none"
            )
        else:
            yield f"{wanted.to} also takes {names}, unless another load balancer that runs has a class"
    for pool in old.pools:
        what = f"pool {pool.name} keeps its free addresses"
        interface = f"; its interface was {pool.interface}" if pool.interface else ""
        if wanted.to == "kube-vip":
            yield f"{what}, and kube-vip assigns them to any Service of type LoadBalancer{interface}"
        else:
            yield f"{what}, which Services get only on request{interface}"
    changed = {each.of.key: each.of for each in decision.carriers}
    if without := [key for key, each in changed.items() if not each.selector]:
        yield f"{_names(without)} without a selector: their EndpointSlices must have ready addresses"
    if local := [key for key, each in changed.items() if each.policy == "Local"]:
        yield f"{_names(local)} with externalTrafficPolicy Local: only nodes with a ready pod announce and answer"
    if added := [each.key for each in decision.carriers if each.is_additional]:
        why = "one Service cannot have these addresses together, or has others already"
        yield f"additional, with the same selector and ports: {_names(added)}; {why}"
    yield "manifests of these Services in git, Helm or Argo CD still contain externalIPs; change them, too"


def _names(keys: list[str]) -> str:
    more = len(keys) - MOST_NAMES
    rest = f" and {more} more" if more > 0 else ""
    return f"Service{'s' if len(keys) > 1 else ''} {', '.join(sorted(keys)[:MOST_NAMES])}{rest}"
