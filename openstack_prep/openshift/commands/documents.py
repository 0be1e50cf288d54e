"""What the commands of this extension print with ``--format json`` or ``yaml``."""

from __future__ import annotations

from typing import get_args

from openstack_prep.cli.shapes import (
    BOOLEAN,
    INTEGER,
    TEXT,
    TEXT_OR_NULL,
    TEXTS,
    document,
    enumeration,
    json_object,
    list_of,
    record,
)
from openstack_prep.openshift.tools import fetching

CHECK = {
    "install_config": TEXT,
    "release": TEXT,
    "cloud": TEXT_OR_NULL,
    **dict.fromkeys(("errors", "warnings", "unknown"), INTEGER),
    "findings": list_of("diagnostic"),
}
PARTS = {
    "tool": record(fetching.Tool, status=enumeration(get_args(fetching.Status)), signed_by=TEXT_OR_NULL),
    "checked": json_object(CHECK),
}
DOCUMENTS = {
    "check": document("check", CHECK),
    "checks": document(
        "check --offline of several files; errors: of those that cannot be read",
        {"files": list_of("checked"), "errors": list_of("diagnostic")},
    ),
    "import": document(
        "import; spec: the sections of the spec, files: those that it refers to, or that --output wrote",
        {
            "spec": {"type": "object"},
            "files": TEXTS,
            "left_out": TEXTS,
            "refused": list_of("diagnostic"),
        },
    ),
    "verification": document("verify", {"infra_id": TEXT, "ok": BOOLEAN, "chains": list_of("chain")}),
    "tools": document("tools", {"tools": list_of("tool")}),
    "names": document(
        "names; text: without --write and --remove",
        {"domain": TEXT},
        {"api": TEXT, "ingress": TEXT, "api_int": TEXT_OR_NULL, "text": TEXT, "path": TEXT, "changed": BOOLEAN},
    ),
}
