"""Long runs in one process, on a devcloud of their own: ``python -m tests.long sync library watch --turns 400``.

``watch`` needs kube-apiserver and etcd below OPENSTACK_PREP_EXTERNAL_PROGRAMS (CONTRIBUTING.md).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.devcloud import cloud, ports, tenant
from tests.devcloud.clouds_file import ADMIN
from tests.devcloud.layout import Layout
from tests.devcloud.progress import say
from tests.external.conftest import Programs
from tests.long.trials import Place, Trial, in_process, watching

PORT_BASE = 24000
TRIALS = ("sync", "library", "watch")


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0, or 1 when something grew or did not end as it should."""
    parser = argparse.ArgumentParser(prog="python -m tests.long", description=__doc__)
    parser.add_argument("what", nargs="*", metavar="TRIAL", help=f"of {', '.join(TRIALS)} (default: all)")
    parser.add_argument("--turns", type=int, default=400, help="turns of each (400)")
    parser.add_argument("--every", type=int, default=20, help="turns between two outages (20)")
    parser.add_argument("--port-base", type=int, metavar="N", help=f"default: {PORT_BASE}, or another that is free")
    parser.add_argument("--keep", action="store_true", help="leave the devcloud running")
    options = parser.parse_args(arguments)
    if unknown := set(options.what) - set(TRIALS):
        parser.error(f"{', '.join(unknown)}: choose from {', '.join(TRIALS)}")
    with ports.choose(options.port_base, PORT_BASE, "long") as layout:
        cloud.up(layout)
        try:
            done = [trial(layout, name, options) for name in options.what or TRIALS]
        finally:
            if not options.keep:
                cloud.down(layout)
    print("\n".join(map(str, done)))
    return 1 if any(each.wrong for each in done) else 0


def trial(layout: Layout, name: str, options: argparse.Namespace) -> Trial:
    """Run one trial in a project of its own."""
    with tempfile.TemporaryDirectory(prefix="long-") as scratch:
        admin = tenant.connect(layout.clouds_file, ADMIN)
        made = tenant.create(layout, admin, f"long-{name}", Path(scratch))
        place = Place(layout, made, Path(scratch))
        place.fill()
        try:
            if name == "watch":
                programs = Programs(Path(os.environ.get("OPENSTACK_PREP_EXTERNAL_PROGRAMS", "/")).resolve())
                done = watching(place, programs, options.turns, options.every)
            else:  # a library that raises when Neutron is down is for its user to call again
                done = in_process(place, name, options.turns, options.every if name == "sync" else 0)
        finally:
            tenant.delete(admin, made)
    say(str(done))
    return done


if __name__ == "__main__":
    sys.exit(main())
