"""The conversion of a cluster.yml: a handler per key, so that no key is dropped in silence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.base.raw import Raw, Values
from openstack_prep.base.secret import HIDDEN, Secret
from openstack_prep.kubernetes.convert import chart_keys, cluster_keys, etcd_keys, nodes, service_keys
from openstack_prep.kubernetes.convert.model import ENABLED, ChartConfig, Content, Draft, Entry, Handler, masked
from openstack_prep.kubernetes.convert.moving import moving_steps
from openstack_prep.kubernetes.convert.versions import SINCE, Target, target
from openstack_prep.kubernetes.keys.schema import value_at

HANDLERS: Mapping[str, Handler] = {
    **cluster_keys.HANDLERS,
    **service_keys.HANDLERS,
    **etcd_keys.HANDLERS,
    **chart_keys.HANDLERS,
}
"""By key, with [] for the members of a list; a key converts everything below it."""
STEPS = "moving.txt"


@dataclass(frozen=True)
class Conversion:
    """The files for RKE2, and what became of each key."""

    target: Target
    entries: tuple[Entry, ...]
    empty: tuple[str, ...]
    """Keys without a value, for which RKE and RKE2 have defaults."""
    files: Mapping[str, Content]
    steps: tuple[str, ...]
    """How workloads move to a new cluster."""

    def texts(self, *, openly: bool) -> dict[str, str]:
        """Return the files' texts by name, with secrets as asterisks unless ``openly``."""
        return {name: _text(content, openly) for name, content in self.files.items()}

    def data(self) -> Values:
        """Return the conversion as data, without secrets."""
        return {
            "kubernetes_version": self.target.version,
            "keys": [{"key": each.key, "becomes": each.becomes, "note": each.note} for each in self.entries],
            "empty": list(self.empty),
            "files": self.texts(openly=False),
            "steps": list(self.steps),
        }

    def __str__(self) -> str:
        """Return the table of keys, and the steps."""
        lines = [f"RKE2 {self.target.version}: {self.target.note}"]
        for title, chosen in (
            ("carries over", [each for each in self.entries if each.becomes]),
            ("does not carry over", [each for each in self.entries if not each.becomes]),
        ):
            lines += ["", f"{title}:", *_table(chosen)] if chosen else []
        lines += ["", f"keys without a value: {len(self.empty)}"] if self.empty else []
        lines += ["", "moving to a new cluster:", *(f"{n}. {step}" for n, step in enumerate(self.steps, 1))]
        return "\n".join(lines)


def _table(entries: Sequence[Entry]) -> list[str]:
    width = max(len(each.key) for each in entries)
    return [
        f"  {each.key:<{width}}  {'; '.join(filter(None, (each.becomes, each.note))) or 'the default'}"
        for each in entries
    ]


def _text(content: Content, openly: bool) -> str:
    if isinstance(content, Secret):
        return content.reveal() if openly else f"{HIDDEN}\n"
    if isinstance(content, ChartConfig):
        return dump(content.document(openly=openly))
    return content if isinstance(content, str) else dump(*(content if openly else map(masked, content)))


def convert(data: Raw, *, version: str | None = None) -> Conversion:
    """Convert a cluster.yml that ``rke check`` accepts; ``version`` chooses the release of RKE2."""
    source = "kubernetes_version" if data.get("kubernetes_version") else "system_images.kubernetes"
    declared = str(value_at(data, source) or "").rpartition(":")[2]  # an image has its version as tag
    chosen = target(declared, version)
    draft, empty = Draft(data, chosen.minor), []
    if declared:
        draft.note(source, chosen.version, chosen.note)
    for key in _walk(draft, data, ""):
        empty.append(key)
    if chosen.minor >= chart_keys.TRAEFIK_DEFAULT and not value_at(data, "ingress.provider"):
        draft.config["ingress-controller"] = "ingress-nginx"  # RKE's default
    chart_keys.default_ingress_class(draft)
    if len(draft.admission) > 1:
        draft.config.setdefault("kube-apiserver-arg", []).append(f"{ENABLED}={','.join(draft.admission)}")
    _drop_newer_keys(draft)
    found = nodes.nodes_of(draft)
    shared = _shared_files(draft)
    files: dict[str, Content] = {
        f"{'node-' if f'{name}.yaml' in shared else ''}{name}.yaml": [each]
        for name, each in nodes.documents(draft, found).items()
    }
    files |= shared
    steps, whole = (moving_steps(data, chosen, found, list(files), openly=openly) for openly in (False, True))
    text = "".join(f"{number}. {step}\n" for number, step in enumerate(whole, 1))
    files[STEPS] = text if steps == whole else Secret(text)
    return Conversion(chosen, tuple(draft.entries), tuple(dict.fromkeys(empty)), files, steps)


def _shared_files(draft: Draft) -> dict[str, Content]:
    """Return the files that do not belong to one node."""
    logins = nodes.registries(draft)
    files: dict[str, Content] = {"registries.yaml": [logins]} if logins else {}
    files |= {f"{chart}-config.yaml": ChartConfig(chart, values) for chart, values in draft.charts.items()}
    return files | draft.files


def _walk(draft: Draft, value: Any, key: str) -> list[str]:
    """Convert a value and everything below it; return the keys without a value."""
    if value in (None, "", {}, []):
        return [key]
    if handler := HANDLERS.get(key):
        handler(draft, key, value)
        return []
    if isinstance(value, Mapping):
        return [found for name, each in value.items() for found in _walk(draft, each, f"{key}.{name}".lstrip("."))]
    assert isinstance(value, list), key  # rke check refuses keys that have no handler
    return [found for each in value for found in _walk(draft, each, f"{key}[]")]


def _drop_newer_keys(draft: Draft) -> None:
    """Drop keys that this version of RKE2 does not have yet."""
    newer = {name for name in draft.config if SINCE.get(name, 0) > draft.minor}
    for name in newer:
        del draft.config[name]
    for index, entry in enumerate(draft.entries):
        if entry.becomes in newer:
            why = f"RKE2 has {entry.becomes} since 1.{SINCE[entry.becomes]}"
            draft.entries[index] = replace(entry, becomes=None, note=why)
