"""``mcp``: serve the tools below a folder on standard input and output, until the client closes them."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from openstack_prep.base.errors import ConfigError
from openstack_prep.base.extras import install
from openstack_prep.mcp.commands import Commands
from openstack_prep.verbs import approval


def run(options: argparse.Namespace) -> int:
    try:
        from openstack_prep.mcp.tools import build_server  # needs a package that not every user installs
    except ModuleNotFoundError:
        raise ConfigError(f"mcp: needs a package that is not installed; {install('mcp')}") from None
    folder = Path(os.path.realpath(Path.cwd()))
    if Path(os.path.realpath(approval.folder())).is_relative_to(folder):
        what = f"mcp: {folder} contains the approvals of this user, which no assistant may write"
        raise ConfigError(f"{what}; start it in the folder of your specs, such as by -C")
    build_server(Commands(folder, allow_programs=options.allow_programs)).run()
    return 0
