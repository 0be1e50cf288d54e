"""``schema``: the JSON Schemas of specs and of what commands print."""

from __future__ import annotations

import argparse
import json

from openstack_prep import extensions
from openstack_prep.base.diagnostic import Diagnostic
from openstack_prep.base.diagnostic import DiagnosticStatus as DiagnosticStatus
from openstack_prep.base.raw import Values
from openstack_prep.cli.reference.explain import PARTS
from openstack_prep.cli.shapes import (
    ANYTHING,
    BOOLEAN,
    BY_NAME,
    INTEGER,
    NUMBER,
    TEXT,
    TEXT_OR_NULL,
    TEXTS,
    document,
    enumeration,
    json_object,
    list_of,
    mapping,
    record,
    ref,
)
from openstack_prep.core.deletion_loss import LossEffect, Unchecked
from openstack_prep.core.model import Action, Status
from openstack_prep.pictures.topology import elements
from openstack_prep.spec import schema
from openstack_prep.verbs.audit import Drift, DriftCode

# The JSON Schema of the documents that commands print with ``--format json`` or ``yaml``.
#
# Enumerations and records come from the code that prints them; unit tests compare the rest with the output of every
# command.

EXISTS = {"id": TEXT, "ours": BOOLEAN, "outputs": BY_NAME}
STEP = {
    "resource": TEXT,
    "action": enumeration(Action),
    "id": TEXT_OR_NULL,
    "changes": {"type": "array", "items": json_object({"field": TEXT, "before": ANYTHING, "after": ANYTHING})},
}
EFFECTS = json_object(
    {
        "sizes": {
            "type": "object",
            "additionalProperties": json_object({"before": INTEGER, "after": INTEGER}),
        },
        **dict.fromkeys(("add", "update", "replace", "rebuild", "delete", "unknown"), TEXTS),
    }
)
"""What an update of a stack does to its resources, by place."""
OPTIONAL_OF_STEP = {
    "address": TEXT,
    "follows": TEXTS,
    "duplicate_of": TEXT,
    "previewed_later": {"const": True},
    "effects": EFFECTS,
    "losses": list_of("loss"),
    "not_checked": list_of("unchecked"),
}
RESULT = {
    "resource": TEXT,
    "action": enumeration(Action),
    "status": enumeration(Status),
    "seconds": NUMBER,
    "error": TEXT_OR_NULL,
    "because_of": TEXT_OR_NULL,
}
INTERFACE = record(elements.Interface, addresses=TEXTS)
TOPOLOGY = {
    "networks": "topology_network",
    "routers": "topology_router",
    "servers": "topology_server",
    "virtual_addresses": "virtual_address",
    "floating_ips": "topology_floating_ip",
    "clusters": "topology_cluster",
}
PARTS_OF_DOCUMENTS = {
    "diagnostic": record(Diagnostic, status=enumeration(DiagnosticStatus)),
    "step": json_object(STEP, OPTIONAL_OF_STEP),
    "undeclared": json_object({**STEP, "reason": TEXT}, OPTIONAL_OF_STEP),
    "result": json_object(RESULT, {"before": {"type": "object"}, "losses": list_of("loss"), **EXISTS}),
    "existing": json_object(EXISTS),
    "loss": json_object(
        {
            "effect": enumeration(LossEffect),
            **dict.fromkeys(("address", "kind", "id", "name", "detail"), TEXT),
            "allowed": BOOLEAN,
        },
        description="what a deletion takes from others; address: how --allow-loss names it",
    ),
    "unchecked": record(Unchecked),
    "chain": json_object({"name": TEXT, "target": TEXT, "links": list_of("diagnostic")}),
    "drift": record(Drift, code=enumeration(DriftCode)),
    "topology_network": record(
        elements.TopologyNetwork,
        external=BOOLEAN,
        foreign=BOOLEAN,
        exists=BOOLEAN,
        subnets={"type": "array", "items": record(elements.TopologySubnet, exists=BOOLEAN)},
    ),
    "topology_router": record(
        elements.TopologyRouter,
        gateway={"anyOf": [INTERFACE, {"type": "null"}]},
        interfaces={"type": "array", "items": INTERFACE},
        exists=BOOLEAN,
    ),
    "topology_server": record(
        elements.Server,
        ports={
            "type": "array",
            "items": record(elements.TopologyPort, addresses=TEXTS, pairs=TEXTS, floating_ips=TEXTS),
        },
    ),
    "virtual_address": record(
        elements.VirtualAddress, addresses=TEXTS, floating_ips=TEXTS, pool=BOOLEAN, exists=BOOLEAN
    ),
    "topology_floating_ip": record(elements.TopologyFloatingIP, exists=BOOLEAN),
    "topology_cluster": record(elements.Cluster, networks=TEXTS, pairs=TEXTS),
}
REPORT = {"seconds": NUMBER, "steps": list_of("result")}
VALIDATION = {
    "valid": BOOLEAN,
    "errors": list_of("diagnostic"),
    "warnings": TEXTS,
    "exit_code": enumeration((0, 2)),
}
DOCUMENTS = {
    "error": document(
        "every command that ends without a result",
        {"errors": {**list_of("diagnostic"), "minItems": 1}, "exit_code": INTEGER},
    ),
    "plan": document(
        "plan, cleanup --plan, address-pairs sync --dry-run",
        {
            "spec": TEXT,
            "purpose": enumeration(("apply", "destroy")),
            "changes_pending": BOOLEAN,
            "steps": list_of("step"),
            "undeclared": list_of("undeclared"),
            "refusals": list_of("diagnostic"),
            "warnings": TEXTS,
        },
        {"left_out": INTEGER, "not_checked": TEXTS, "infra_id": TEXT, "cluster": TEXT},
    ),
    "approval": document("approve; plan: its id", {"plan": TEXT, "expires": TEXT}),
    "report": document(
        "apply, destroy, post-ipi, cleanup, credential rotate, address-pairs sync, rke render",
        REPORT,
        {"undeclared": list_of("undeclared"), "left_out": INTEGER},
    ),
    "resources": mapping(
        "show: by KIND/NAME; null: does not exist", "/", {"anyOf": [ref("existing"), {"type": "null"}]}
    ),
    "output": document("show --reveal: RESOURCE.OUTPUT", {"output": TEXT, "value": TEXT}),
    "validation": document("validate", {"spec": TEXT_OR_NULL, "resources": TEXTS, **VALIDATION}),
    "validated_files": document("rke check, validate of several specs", {"files": TEXTS, **VALIDATION}),
    "audit": document("audit", {"spec": TEXT, "drift": list_of("drift"), "left_out": TEXTS}),
    "topology": document(
        "topology; key: the id of what exists, KIND/NAME of what is only declared",
        {"subject": TEXT, "unread": TEXTS} | {each: list_of(kind) for each, kind in TOPOLOGY.items()},
    ),
    "export": document(
        "export; spec: as openstack-prep schema describes it", {"spec": {"type": "object"}, "left_out": TEXTS}
    ),
    "support_bundle": document("support-bundle", {"path": TEXT}),
    "lease": document("unlock; holder: whose lease it ended", {"spec": TEXT, "holder": TEXT_OR_NULL}),
    "code": document("explain CODE", {"code": TEXT, **dict.fromkeys(PARTS, TEXT)}),
    "codes": mapping("explain: by code", r"\.", json_object(dict.fromkeys(PARTS, TEXT))) | {"minProperties": 2},
}


def documents() -> dict[str, Values]:
    """Return the schemas of all documents, by name, those of extensions last."""
    modules = (extensions.load(extension.documents) for extension in extensions.installed() if extension.documents)
    return DOCUMENTS | {name: shape for module in modules for name, shape in module.DOCUMENTS.items()}


def _parts() -> dict[str, Values]:
    modules = (extensions.load(extension.documents) for extension in extensions.installed() if extension.documents)
    return PARTS_OF_DOCUMENTS | {name: shape for module in modules for name, shape in module.PARTS.items()}


def output_schema() -> Values:
    """Return the JSON Schema (2020-12): each document is exactly one of its definitions."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Output of openstack-prep with --format json or yaml",
        "oneOf": [ref(name) for name in documents()],
        "$defs": {**documents(), **_parts()},
    }


def run_schema(options: argparse.Namespace) -> int:
    if options.output:
        found = output_schema()
    elif options.of:
        schemas = {
            name: function for extension in extensions.installed() for name, function in extension.schemas.items()
        }
        found = extensions.load(schemas[options.of])()
    else:
        found = schema(included=options.included)
    print(json.dumps(found, indent=2))
    return 0
