"""Strict checks of an existing config.yaml (RKE2) or cluster.yml (RKE).

Source: RKE decodes by yaml.v2, which ignores unknown keys and accepts the booleans of YAML 1.1, but not in quotes.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.formats.yaml_places import Document
from openstack_prep.base.raw import Raw
from openstack_prep.kubernetes import cluster_yml_networks, nodes, rke2_rules, rules
from openstack_prep.kubernetes.keys.schema import Fault, Steps, dotted, load_schema, map_values, value_at

Form: TypeAlias = Literal["cluster.yml", "server", "agent"]
"""The config.yaml of an RKE2 server or agent, or RKE's cluster.yml."""

STDIN = Path("/dev/stdin")
WORDS = {"yes": True, "on": True, "y": True, "no": False, "off": False, "n": False}


def read(path: Path, form: Form = "cluster.yml") -> tuple[Raw, list[Mistake]]:
    """Return the content of a file, or of standard input for -, and all mistakes in it, in the order of the text.

    Raises SpecError when the file cannot be read or is not one YAML document.
    """
    document = Document(path, origin=STDIN if str(path) == "-" else None)
    quoted: list[Fault] = []

    def as_boolean(value: object, schema: Raw, steps: Steps) -> object:
        if schema.get("type") != "boolean" or not isinstance(value, str):
            return value
        if not document.is_quoted(steps):
            return WORDS.get(value.lower(), value)
        if form == "cluster.yml" and value.lower() in (*WORDS, "true", "false"):
            quoted.append(Fault(steps, f"{value!r} is a string, because it is in quotes", "remove the quotes"))
        return value

    data = map_values(document.data, load_schema(form), as_boolean)
    if not isinstance(data, Mapping):
        raise SpecError([Mistake(str(path), "is not a mapping", f"name the {NAMES[form]}")])
    if "rke_clusters" in data:
        fix = f"run openstack-prep apply {shlex.quote(str(path))}, then check the files that it writes"
        raise SpecError([Mistake(document.place(["rke_clusters"]), "is a spec of openstack-prep", fix)])
    first: dict[Steps, Fault] = {}
    for fault in [*quoted, *_faults(data, form)]:
        first.setdefault(fault.steps, fault)  # one per place: the others result from it
    found = [(document.part(steps), _mistake(fault, document)) for steps, fault in first.items()]
    return data, [each for _, each in sorted([*document.repeated_at.items(), *found], key=lambda each: each[0])]


def _mistake(fault: Fault, document: Document) -> Mistake:
    return fault.mistake(f"{document.place(fault.steps)}: {dotted(fault.steps)}")


NAMES: dict[Form, str] = {
    "cluster.yml": "cluster.yml of RKE",
    "server": "config.yaml of an RKE2 server",
    "agent": "config.yaml of an RKE2 agent",
}


def warnings(data: Raw, form: Form = "cluster.yml") -> Iterator[str]:
    """Yield warnings about valid settings."""
    if form != "cluster.yml":
        return
    yield from rules.warnings(data)
    found = data.get("nodes")
    roles = [value_at(each, "role") for each in found] if isinstance(found, list) else []
    assigned = [each for each in roles if isinstance(each, list)]
    yield from nodes.etcd_warning(sum("etcd" in each for each in assigned))
    yield from nodes.worker_warning(assigned)


def _faults(data: Raw, form: Form) -> Iterator[Fault]:
    if form != "cluster.yml":
        yield from rke2_rules.document_faults(data, load_schema(form))
        return
    yield from rules.keys(data)
    yield from rules.values(data)
    yield from cluster_yml_networks.faults(data)
