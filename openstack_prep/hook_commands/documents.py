"""What the commands of this extension print with ``--format json`` or ``yaml``."""

from __future__ import annotations

from openstack_prep.base.raw import Values
from openstack_prep.cli.shapes import NUMBER, TEXT, TEXTS, document, list_of

PARTS: dict[str, Values] = {}
DOCUMENTS = {
    "preparation": document(
        "pre-ipi", {"seconds": NUMBER, "steps": list_of("result"), "findings": list_of("diagnostic")}
    ),
    "port": document("wait-for", {"id": TEXT, "name": TEXT, "addresses": TEXTS}),
}
