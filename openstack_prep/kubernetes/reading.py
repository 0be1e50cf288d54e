"""Strict checks of an existing config.yaml (RKE2) or cluster.yml (RKE).

Source: RKE decodes by yaml.v2, which ignores unknown keys and accepts the booleans of YAML 1.1, but not in quotes.
Rancher 2.6 ("Edit as YAML" of a cluster of RKE) has RKE's file below ``rancher_kubernetes_engine_config``; it creates
the nodes from its node pools.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.fields import OLD_BOOLEANS
from openstack_prep.base.formats.yaml_places import Document
from openstack_prep.base.given_file import STDIN, name_of
from openstack_prep.base.raw import Raw, Steps, dotted, value_at
from openstack_prep.kubernetes import cluster_yml, nodes, rke2_rules, rules
from openstack_prep.kubernetes.file_forms import RANCHER, find_cluster_yml, find_objects
from openstack_prep.kubernetes.keys.schema import Fault, load_schema, map_values
from openstack_prep.kubernetes.registries import registry_faults
from openstack_prep.resources.file_forms import refuse_other_form

Form: TypeAlias = Literal["cluster.yml", "server", "agent", "registries"]
"""The config.yaml of an RKE2 server or agent, RKE2's registries.yaml, or RKE's cluster.yml."""


class RkeFileContent(NamedTuple):
    """What a file says to RKE or RKE2."""

    data: Raw
    mistakes: list[Mistake]
    """All mistakes, in the order of the text."""
    of_rancher: bool = False
    """Whether the file is a cluster of Rancher, which has RKE's keys in one of its own and no nodes."""


def read(path: Path, form: Form = "cluster.yml", minor: int | None = None) -> RkeFileContent:
    """Return the content of a file, or of standard input for -, and all mistakes in it.

    ``minor`` is N of the Kubernetes 1.N of an RKE2; None for the newest.
    Raises SpecError when the file cannot be read or is not one YAML document.
    """
    document = Document(path, origin=Path(STDIN) if str(path) == "-" else None)
    document.refuse_bare_keys()  # RKE and RKE2 ignore them, whatever was meant
    quoted: list[Fault] = []

    def as_boolean(value: object, schema: Raw, steps: Steps) -> object:
        if schema.get("type") != "boolean" or not isinstance(value, str):
            return value
        if not document.is_quoted(steps):
            return OLD_BOOLEANS.get(value.lower(), value)
        if form in ("cluster.yml", "registries") and value.lower() in (*OLD_BOOLEANS, "true", "false"):
            quoted.append(Fault(steps, f"{value!r} is a string, because it is in quotes", "remove the quotes"))
        return value

    if document.data is None and form != "cluster.yml":
        return RkeFileContent({}, [])  # K3s, pkg/configfilearg/parser.go, readConfigFile: no document has no keys
    if not isinstance(document.data, Mapping):
        raise SpecError([Mistake(document.name, "is not a mapping", f"name the {NAMES[form]}")])
    whole: Raw = document.data
    _refuse_other_files(whole, document, path, form)
    of_rancher = RANCHER in whole
    above: Steps = (RANCHER,) if of_rancher else ()
    data = map_values(whole[RANCHER] if of_rancher else whole, load_schema(form), as_boolean, above)
    assert isinstance(data, Mapping)
    first: dict[Steps, Fault] = {}
    for fault in [
        *quoted,
        *(replace(each, steps=(*above, *each.steps)) for each in _faults(data, form, of_rancher, minor)),
    ]:
        first.setdefault(fault.steps, fault)  # one per place: the others result from it
    found = [(document.part(steps), _mistake(fault, document)) for steps, fault in first.items()]
    mistakes = [each for _, each in sorted([*document.repeated_at.items(), *found], key=lambda each: each[0])]
    if of_rancher and whole.get("name"):
        data = {"cluster_name": whole["name"], **data}
    return RkeFileContent(data, mistakes, of_rancher)


def _refuse_other_files(data: Raw, document: Document, path: Path, form: Form) -> None:
    """Raise SpecError for a file of another form: what is wrong with each of its keys would say nothing."""
    if form == "cluster.yml" and RANCHER in data and not isinstance(data[RANCHER], Mapping):
        what = f"{RANCHER} of a cluster.yml of Rancher is not a mapping"
        raise SpecError([Mistake(document.place([RANCHER]), what, "write the keys of RKE below it")])
    if form == "cluster.yml" and ("nodes" in data or find_cluster_yml(data)):
        return
    wanted = f"the {NAMES[form]}"
    if find_objects(data) and str(data["apiVersion"]).startswith("provisioning.cattle.io/"):
        wanted = f"{wanted}; Rancher keeps the keys of RKE2 in spec.rkeConfig, and shows cluster.yml by Edit as YAML"
    others = [NAMES[each] for each in ("server", "agent")] if form in ("server", "agent") else [NAMES[form]]
    refuse_other_form(data, document.place, path, wanted, [f"a {each}" for each in others])


def _mistake(fault: Fault, document: Document) -> Mistake:
    return fault.mistake(f"{document.place(fault.steps)}: {dotted(fault.steps)}")


NAMES: dict[Form, str] = {
    "cluster.yml": "cluster.yml of RKE",
    "server": "config.yaml of an RKE2 server",
    "agent": "config.yaml of an RKE2 agent",
    "registries": "registries.yaml of RKE2",
}


def rancher_note(content: RkeFileContent) -> Iterator[str]:
    """Yield which part of a cluster.yml of Rancher is checked."""
    if content.of_rancher:
        yield f"is a cluster.yml of Rancher; only the keys of RKE, below {RANCHER}, are checked"


def missing_nodes(path: Path) -> Mistake:
    """Return the mistake of a cluster.yml of Rancher without nodes, where nodes are needed."""
    fix = f"write nodes below {RANCHER}, with address, user and role of each machine"
    return Mistake(name_of(path), "is a cluster.yml of Rancher, whose node pools define the nodes", fix)


def warnings(data: Raw, form: Form = "cluster.yml") -> Iterator[str]:
    """Yield warnings about valid settings."""
    if form in ("server", "agent"):
        yield from rke2_rules.warnings(data, is_server=form == "server")
    if form == "agent":
        has = {"server": bool(data.get("server")), "token": bool(data.get("token") or data.get("token-file"))}
        for name in has if any(has.values()) else ():  # a file of config.yaml.d may have neither
            if not has[name]:
                yield f"{name} is missing: RKE2 starts only if a file of config.yaml.d or the environment has it"
    if form != "cluster.yml":
        return
    yield from rules.warnings(data)
    yield from rke2_rules.arp_warning(data)
    found = data.get("nodes")
    roles = [value_at(each, "role") for each in found] if isinstance(found, list) else []
    assigned = [role for role in roles if isinstance(role, list)]
    yield from nodes.etcd_warning(sum("etcd" in each for each in assigned))
    yield from nodes.worker_warning(assigned)
    yield from nodes.taint_warning([list(rules.taints_of(each)) for each in found] if isinstance(found, list) else [])


def _faults(data: Raw, form: Form, of_rancher: bool, minor: int | None) -> Iterator[Fault]:
    if form == "registries":
        yield from registry_faults(data)
        return
    if form != "cluster.yml":
        yield from rke2_rules.document_faults(data, load_schema(form), minor)
        return
    yield from rules.keys(data)
    yield from rules.values(data, has_nodes="nodes" in data or not of_rancher)
    yield from cluster_yml.faults(data)
