"""The JSON Schema of the documents that commands print with ``--format json`` or ``yaml``.

Enumerations and records come from the code that prints them; unit tests compare the rest with the output of every
command.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, get_args

from openstack_prep.base.diagnostic import Diagnostic
from openstack_prep.base.diagnostic import Status as DiagnosticStatus
from openstack_prep.base.raw import Values
from openstack_prep.cli.reference.explain import PARTS
from openstack_prep.cli.running import FORMAT
from openstack_prep.core.model import Action, Status
from openstack_prep.exposures.convert.model import Left
from openstack_prep.exposures.convert.proof import Kept
from openstack_prep.exposures.convert.steps import Step as ConvertStep
from openstack_prep.exposures.model import Way
from openstack_prep.fleet.order import Status as TargetStatus
from openstack_prep.kubernetes.cilium.required import Passage, Place, Protocol
from openstack_prep.kubernetes.cluster.rke_checklist import Step as ChecklistStep
from openstack_prep.kubernetes.convert.model import Entry
from openstack_prep.openshift.tools import fetching
from openstack_prep.pictures.topology import model
from openstack_prep.verbs.audit import Code, Drift

TEXT = {"type": "string"}
TEXT_OR_NULL = {"type": ["string", "null"]}
NUMBER = {"type": "number"}
INTEGER = {"type": "integer"}
BOOLEAN = {"type": "boolean"}
TEXTS = {"type": "array", "items": TEXT}
BY_NAME = {"type": "object", "additionalProperties": TEXT}
NUMBERS = {"type": "object", "additionalProperties": INTEGER}
ANYTHING: Values = {}


def _enum(values: Iterable[Any]) -> Values:
    return {"enum": [getattr(each, "value", each) for each in values]}


def _object(required: Values, optional: Values | None = None, description: str = "") -> Values:
    shape = {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}
    about = {"description": description} if description else {}
    return about | shape | {"additionalProperties": False}


def _record(kind: Any, **special: Values) -> Values:
    """Return an object with all fields of a dataclass: texts, unless they are special."""
    return _object({each.name: special.get(each.name, TEXT) for each in fields(kind)})


def _list(name: str) -> Values:
    return {"type": "array", "items": _ref(name)}


def _ref(name: str) -> Values:
    return {"$ref": f"#/$defs/{name}"}


def _document(description: str, required: Values, optional: Values | None = None) -> Values:
    return _object({"version": {"const": FORMAT}, **required}, optional, description)


def _mapping(description: str, pattern: str, value: Values) -> Values:
    """Return a document whose keys are names."""
    shape = {"properties": {"version": {"const": FORMAT}}, "patternProperties": {pattern: value}}
    about = {"description": description, "type": "object", "required": ["version"]}
    return about | shape | {"additionalProperties": False}


EXISTS = {"id": TEXT, "ours": BOOLEAN, "outputs": BY_NAME}
STEP = {
    "resource": TEXT,
    "action": _enum(Action),
    "id": TEXT_OR_NULL,
    "changes": {"type": "array", "items": _object({"field": TEXT, "before": ANYTHING, "after": ANYTHING})},
}
OPTIONAL_OF_STEP = {"address": TEXT, "follows": TEXTS, "duplicate_of": TEXT, "previewed_later": {"const": True}}
RESULT = {
    "resource": TEXT,
    "action": _enum(Action),
    "status": _enum(Status),
    "seconds": NUMBER,
    "error": TEXT_OR_NULL,
    "because_of": TEXT_OR_NULL,
}
INTERFACE = _record(model.Interface, addresses=TEXTS)
TOPOLOGY = {
    "networks": "topology_network",
    "routers": "topology_router",
    "servers": "topology_server",
    "virtual_addresses": "virtual_address",
    "floating_ips": "topology_floating_ip",
    "clusters": "topology_cluster",
}
CHECK = {
    "install_config": TEXT,
    "release": TEXT,
    "cloud": TEXT,
    **dict.fromkeys(("errors", "warnings", "unknown"), INTEGER),
    "findings": _list("diagnostic"),
}
PARTS_OF_DOCUMENTS = {
    "diagnostic": _record(Diagnostic, status=_enum(DiagnosticStatus)),
    "step": _object(STEP, OPTIONAL_OF_STEP),
    "undeclared": _object({**STEP, "reason": TEXT}, OPTIONAL_OF_STEP),
    "result": _object(RESULT, {"before": {"type": "object"}, **EXISTS}),
    "existing": _object(EXISTS),
    "chain": _object({"name": TEXT, "target": TEXT, "links": _list("diagnostic")}),
    "exposure": _object(
        {"name": TEXT, "cluster": TEXT, "address": TEXT_OR_NULL, "mac_address": TEXT_OR_NULL}
        | {"public_address": TEXT_OR_NULL, "names": TEXTS, "target": TEXT, "ports": TEXTS, "how": _enum(get_args(Way))}
        | {"hops": _list("diagnostic")}
    ),
    "checklist_step": _record(ChecklistStep, commands=TEXTS),
    "kept_service": _record(Kept, **dict.fromkeys(("old", "new", "by", "remaining"), TEXTS)),
    "left_service": _record(Left, addresses=TEXTS),
    "convert_step": _record(ConvertStep, commands=TEXTS),
    "conversion_key": _record(Entry, becomes=TEXT_OR_NULL),
    "checked": _object(CHECK),
    "drift": _record(Drift, code=_enum(Code)),
    "passage": _record(
        Passage,
        protocol=_enum(get_args(Protocol)),
        port={"type": ["integer", "null"]},
        target=_enum(get_args(Place)),
        address=TEXT_OR_NULL,
    ),
    "topology_network": _record(
        model.Network,
        external=BOOLEAN,
        foreign=BOOLEAN,
        exists=BOOLEAN,
        subnets={"type": "array", "items": _record(model.Subnet, exists=BOOLEAN)},
    ),
    "topology_router": _record(
        model.Router,
        gateway={"anyOf": [INTERFACE, {"type": "null"}]},
        interfaces={"type": "array", "items": INTERFACE},
        exists=BOOLEAN,
    ),
    "topology_server": _record(
        model.Server,
        ports={
            "type": "array",
            "items": _record(model.Port, addresses=TEXTS, pairs=TEXTS, floating_ips=TEXTS),
        },
    ),
    "virtual_address": _record(model.VirtualAddress, addresses=TEXTS, floating_ips=TEXTS, pool=BOOLEAN, exists=BOOLEAN),
    "topology_floating_ip": _record(model.FloatingIP, exists=BOOLEAN),
    "topology_cluster": _record(model.Cluster, networks=TEXTS, pairs=TEXTS),
    "tool": _record(fetching.Tool, status=_enum(get_args(fetching.Status)), signed_by=TEXT_OR_NULL),
}
REPORT = {"seconds": NUMBER, "steps": _list("result")}
VALIDATION = {
    "valid": BOOLEAN,
    "errors": _list("diagnostic"),
    "warnings": TEXTS,
    "exit_code": _enum((0, 2)),
}
DOCUMENTS = {
    "error": _document(
        "every command that ends without a result",
        {"errors": {**_list("diagnostic"), "minItems": 1}, "exit_code": INTEGER},
    ),
    "plan": _document(
        "plan, cleanup --plan, address-pairs sync --dry-run",
        {
            "spec": TEXT,
            "purpose": _enum(("apply", "destroy")),
            "changes_pending": BOOLEAN,
            "steps": _list("step"),
            "undeclared": _list("undeclared"),
            "refusals": _list("diagnostic"),
            "warnings": TEXTS,
        },
        {"left_out": INTEGER, "infra_id": TEXT, "cluster": TEXT},
    ),
    "report": _document(
        "apply, destroy, post-ipi, cleanup, credential rotate, address-pairs sync, rke render",
        REPORT,
        {"undeclared": _list("undeclared"), "left_out": INTEGER},
    ),
    "preparation": _document("pre-ipi", {**REPORT, "findings": _list("diagnostic")}),
    "resources": _mapping(
        "show: by KIND/NAME; null: does not exist", "/", {"anyOf": [_ref("existing"), {"type": "null"}]}
    ),
    "output": _document("show --reveal: RESOURCE.OUTPUT", {"output": TEXT, "value": TEXT}),
    "validation": _document("validate", {"spec": TEXT_OR_NULL, "resources": TEXTS, **VALIDATION}),
    "validated_files": _document("rke check, validate of several specs", {"files": TEXTS, **VALIDATION}),
    "checklist": _document("kubernetes checklist", {"spec": TEXT, "steps": _list("checklist_step")}),
    "conversion": _document(
        "kubernetes convert; becomes: null when a key does not carry over; files: by name, with secrets as asterisks",
        {"kubernetes_version": TEXT, "keys": _list("conversion_key"), "empty": TEXTS, "files": BY_NAME, "steps": TEXTS},
    ),
    "exposures": _document(
        "exposures show; hops: from outside to inside",
        {"ok": BOOLEAN, "exposures": _list("exposure")},
    ),
    "exposures_conversion": _document(
        "exposures convert; services: addresses before and afterwards; files: by name",
        {"to": TEXT, "release": TEXT, "services": _list("kept_service"), "left": _list("left_service"), "notes": TEXTS}
        | {"files": BY_NAME, "steps": _list("convert_step")},
    ),
    "audit": _document("audit", {"spec": TEXT, "drift": _list("drift")}),
    "topology": _document(
        "topology; key: the id of what exists, KIND/NAME of what is only declared",
        {"subject": TEXT, "unread": TEXTS} | {each: _list(kind) for each, kind in TOPOLOGY.items()},
    ),
    "fleet_targets": _document(
        "fleet validate; specs: names by target",
        {
            "fleet": TEXT,
            "waves": {"type": "array", "items": _object({"title": TEXT, "targets": TEXTS})},
            "specs": BY_NAME,
            "warnings": TEXTS,
        },
    ),
    "fleet_target": _document(
        "fleet plan, apply, destroy, audit, export: a line per target; result: as of the command for a single spec",
        {"target": TEXT, "status": _enum(TargetStatus), "cloud": TEXT, "summary": TEXT, "counts": NUMBERS}
        | {"errors": _list("diagnostic"), "warnings": TEXTS, "seconds": NUMBER},
        {"result": {"type": "object"}},
    ),
    "fleet": _document(
        "fleet plan, apply, destroy, audit, export: the last line; targets: how many by status",
        {"fleet": TEXT, "targets": NUMBERS, "done_before": TEXTS, "seconds": NUMBER, "exit_code": INTEGER},
    ),
    "export": _document(
        "export; spec: as openstack-prep schema describes it", {"spec": {"type": "object"}, "left_out": TEXTS}
    ),
    "check": _document("check", CHECK),
    "checks": _document(
        "check --offline of several files; errors: of those that cannot be read",
        {"files": _list("checked"), "errors": _list("diagnostic")},
    ),
    "verification": _document("verify", {"infra_id": TEXT, "ok": BOOLEAN, "chains": _list("chain")}),
    "mesh": _document(
        "rke mesh",
        {"clusters": TEXTS, "ok": BOOLEAN, "required": _list("passage"), "findings": _list("diagnostic")},
    ),
    "support_bundle": _document("support-bundle", {"path": TEXT}),
    "lease": _document("unlock; holder: whose lease it ended", {"spec": TEXT, "holder": TEXT_OR_NULL}),
    "port": _document("wait-for", {"id": TEXT, "name": TEXT, "addresses": TEXTS}),
    "tools": _document("tools", {"tools": _list("tool")}),
    "names": _document(
        "names; text: without --write and --remove",
        {"domain": TEXT},
        {"api": TEXT, "ingress": TEXT, "api_int": TEXT_OR_NULL, "text": TEXT, "path": TEXT, "changed": BOOLEAN},
    ),
    "files": _document("rke render --stack, without --output: by name", {"files": BY_NAME}),
    "code": _document("explain CODE", {"code": TEXT, **dict.fromkeys(PARTS, TEXT)}),
    "codes": _mapping("explain: by code", r"\.", _object(dict.fromkeys(PARTS, TEXT))) | {"minProperties": 2},
}


def output_schema() -> Values:
    """Return the JSON Schema (2020-12): each document is exactly one of its definitions."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Output of openstack-prep with --format json or yaml",
        "oneOf": [_ref(name) for name in DOCUMENTS],
        "$defs": {**DOCUMENTS, **PARTS_OF_DOCUMENTS},
    }
