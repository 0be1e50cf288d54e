"""What the commands of this extension print with ``--format json`` or ``yaml``."""

from __future__ import annotations

from typing import get_args

from openstack_prep.cli.shapes import (
    BOOLEAN,
    BY_NAME,
    TEXT,
    TEXT_OR_NULL,
    TEXTS,
    document,
    enumeration,
    list_of,
    record,
)
from openstack_prep.kubernetes.cilium.connections import Passage, Place, Protocol
from openstack_prep.kubernetes.cluster.rke_checklist import ChecklistStep
from openstack_prep.kubernetes.convert.outcome import ConvertedKey

PARTS = {
    "checklist_step": record(ChecklistStep, commands=TEXTS),
    "conversion_key": record(ConvertedKey, becomes=TEXT_OR_NULL),
    "passage": record(
        Passage,
        protocol=enumeration(get_args(Protocol)),
        port={"type": ["integer", "null"]},
        target=enumeration(get_args(Place)),
        address=TEXT_OR_NULL,
    ),
}
DOCUMENTS = {
    "checklist": document("kubernetes checklist", {"spec": TEXT, "steps": list_of("checklist_step")}),
    "conversion": document(
        "kubernetes convert; becomes: null when a key does not carry over; files: by name, with secrets as asterisks",
        {
            "kubernetes_version": TEXT,
            "keys": list_of("conversion_key"),
            "empty": TEXTS,
            "files": BY_NAME,
            "steps": TEXTS,
        },
    ),
    "mesh": document(
        "rke mesh",
        {"clusters": TEXTS, "ok": BOOLEAN, "required": list_of("passage"), "findings": list_of("diagnostic")},
    ),
    "files": document("rke render --stack, without --output: by name", {"files": BY_NAME}),
}
