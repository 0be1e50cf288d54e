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
    json_object,
    list_of,
    record,
)
from openstack_prep.exposures.convert.conversion import ConversionStep
from openstack_prep.exposures.convert.objects import Left
from openstack_prep.exposures.convert.proof import ServiceAddresses
from openstack_prep.exposures.endpoint import Way

PARTS = {
    "exposure": json_object(
        {"name": TEXT, "cluster": TEXT, "address": TEXT_OR_NULL, "mac_address": TEXT_OR_NULL}
        | {
            "public_address": TEXT_OR_NULL,
            "names": TEXTS,
            "target": TEXT,
            "ports": TEXTS,
            "how": enumeration(get_args(Way)),
        }
        | {"hops": list_of("diagnostic")}
    ),
    "kept_service": record(ServiceAddresses, **dict.fromkeys(("old", "new", "by", "remaining"), TEXTS)),
    "left_service": record(Left, addresses=TEXTS),
    "convert_step": record(ConversionStep, commands=TEXTS),
}
DOCUMENTS = {
    "exposures": document(
        "exposures show; hops: from outside to inside",
        {"ok": BOOLEAN, "exposures": list_of("exposure")},
    ),
    "exposures_conversion": document(
        "exposures convert; services: addresses before and afterwards; files: by name",
        {
            "to": TEXT,
            "release": TEXT,
            "services": list_of("kept_service"),
            "left": list_of("left_service"),
            "notes": TEXTS,
        }
        | {"files": BY_NAME, "steps": list_of("convert_step")},
    ),
}
