"""The script that puts the hypervisor's interface into a bridge, without losing the machine.

Sources: NetworkManager 1.42 (nmcli(1): ``save no`` and ``--temporary`` leave files unchanged until a later ``modify``);
systemd-run(1), systemd.service(5) (ExecStopPost runs however the process ended).
"""

from __future__ import annotations

import shlex
from importlib.resources import files

from openstack_prep.exposures.service_host.model import ExternalInterface

SCRIPT = "bridge.sh"


def script(external: ExternalInterface) -> str:
    """Return the script for one bridge."""
    values = {"BRIDGE": external.bridge, "NIC": external.nic, "WITHIN": str(external.confirm_within)}
    head = [
        "#!/bin/bash",
        "# Creates a bridge on an interface of this machine with NetworkManager, all changes in one go.",
        "# The address moves along. Without 'confirm', everything is undone. See: bash bridge.sh help",
        "set -euo pipefail",
        *(f"{name}={shlex.quote(value)}" for name, value in values.items()),
    ]
    body = files("openstack_prep.exposures.service_host").joinpath(SCRIPT).read_text("utf-8")
    return "\n".join(head) + "\n" + body
