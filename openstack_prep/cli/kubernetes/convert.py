"""``kubernetes convert``: RKE's cluster.yml as files of RKE2."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from openstack_prep.base.errors import ConfigError, SpecError
from openstack_prep.cli import AddCommand
from openstack_prep.cli.running import print_result


def add(command: AddCommand) -> None:
    """Add it to the parser."""
    parser = command("kubernetes convert", _run, cloud=False, data=True)
    parser.add_argument("file", type=Path, metavar="FILE", help="cluster.yml of RKE")
    parser.add_argument(
        "--kubernetes-version",
        metavar="VERSION",
        help="release of RKE2, such as v1.35.7+rke2r1 (default: the newest of the same minor version)",
    )
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="folder for the files (default: print them)")


def _run(options: argparse.Namespace) -> int:
    from openstack_prep.kubernetes import reading, rke2
    from openstack_prep.kubernetes.convert import convert
    from openstack_prep.resources.files.marked_files import MarkedFiles

    chosen = options.kubernetes_version
    if chosen and not rke2.VERSION.fullmatch(chosen):
        raise ConfigError(f"--kubernetes-version {chosen}: is not a version of RKE2; write one such as v1.35.7+rke2r1")
    data, mistakes = reading.read(options.file)
    for warning in reading.warnings(data):
        print(f"openstack-prep: warning: {options.file}: {warning}", file=sys.stderr)
    if mistakes:
        raise SpecError(mistakes)
    conversion = convert(data, version=chosen)
    if options.output:
        name = " ".join(str(data.get("cluster_name") or "local").split())
        MarkedFiles(options.output, f"# [openstack-prep:convert/{name}]").write(conversion.texts(openly=True))
        shown = "\n".join(f"{options.output / name}" for name in conversion.files)
    else:
        shown = "\n".join(f"# --- {name}\n{text}" for name, text in conversion.texts(openly=False).items())
    print_result(options, f"{conversion}\n\n{shown}".rstrip("\n"), conversion.data())
    return 0
