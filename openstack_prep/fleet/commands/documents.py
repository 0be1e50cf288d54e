"""What the commands of this extension print with ``--format json`` or ``yaml``."""

from __future__ import annotations

from openstack_prep.base.raw import Values
from openstack_prep.cli.shapes import (
    BY_NAME,
    INTEGER,
    NUMBER,
    NUMBERS,
    TEXT,
    TEXTS,
    document,
    enumeration,
    json_object,
    list_of,
)
from openstack_prep.fleet.order import TargetStatus

PARTS: dict[str, Values] = {}
DOCUMENTS = {
    "fleet_targets": document(
        "fleet validate; specs: names by target",
        {
            "fleet": TEXT,
            "waves": {"type": "array", "items": json_object({"title": TEXT, "targets": TEXTS})},
            "specs": BY_NAME,
            "warnings": TEXTS,
        },
    ),
    "fleet_target": document(
        "fleet plan, apply, destroy, audit, export: a line per target; result: as of the command for a single spec",
        {"target": TEXT, "status": enumeration(TargetStatus), "cloud": TEXT, "summary": TEXT, "counts": NUMBERS}
        | {"errors": list_of("diagnostic"), "warnings": TEXTS, "seconds": NUMBER},
        {"result": {"type": "object"}},
    ),
    "fleet": document(
        "fleet plan, apply, destroy, audit, export: the last line; targets: how many by status",
        {"fleet": TEXT, "targets": NUMBERS, "done_before": TEXTS, "seconds": NUMBER, "exit_code": INTEGER},
    ),
}
