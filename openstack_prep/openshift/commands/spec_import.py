"""``import``: the spec for an existing install-config.yaml."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from openstack_prep.base.errors import FolderRefused, PrepError
from openstack_prep.base.private_file import write_private
from openstack_prep.cli.output import print_result
from openstack_prep.cli.output_folder import output_folder
from openstack_prep.openshift.commands.of_cluster import ask_release, find_installer
from openstack_prep.openshift.commands.options import CONFIG
from openstack_prep.openshift.install_config.given import InstallConfigValues
from openstack_prep.openshift.installer import find_file
from openstack_prep.openshift.spec_import import SPEC, VARIABLES, SpecImport, import_install_config


def run(options: argparse.Namespace) -> int:
    folder = output_folder(options.output)
    path = find_file(options.path, CONFIG.name)
    if not options.release:
        InstallConfigValues(path)  # raises SpecError for a file of another form, before the installer is asked
    release = options.release or ask_release(options.installer or find_installer(path))
    found = import_install_config(path, release)
    if found.differences:
        raise PrepError(
            f"{path}: the spec renders other values of {', '.join(found.differences)}; report this as a fault"
        )
    files = {SPEC: str(found), **found.files}
    if folder:
        _write(folder, files)
    data = {
        "spec": dict(found.sections),
        "files": [str((folder or Path()) / name) for name in files] if folder else [*found.files],
        "left_out": [str(mistake) for mistake in found.left_out],
        "refused": [diagnostic.data() for diagnostic in found.refused],
    }
    print_result(options, _text(found, folder, files), data)
    return 1 if found.refused else 0


def _text(found: SpecImport, folder: Path | None, files: dict[str, str]) -> str:
    """Return the spec, or where it was written; what it refers to; and what came of the comparison."""
    if folder is None:
        needed = [f"# create {name} beside this file, with what install-config.yaml has of it" for name in found.files]
        return "\n".join([str(found).rstrip(), *needed])
    paths = [str(folder / name) for name in files]
    notes = [line.removeprefix("# ") for line in str(found).splitlines() if line.startswith("# ")]
    proven = "rendered again, all that a spec expresses is the same"
    variables = (
        f"give --vars-file {folder / VARIABLES}, which has URLs with logins or queries, with each command"
        if VARIABLES in files
        else ""
    )
    return "\n".join(filter(None, [*paths, *notes, variables, proven]))


def _write(folder: Path, files: dict[str, str]) -> None:
    """Write all files, or none; raises FolderRefused where one of them exists with another content."""
    for name, text in files.items():
        path = folder / name
        if os.path.lexists(path) and (not path.is_file() or path.read_text(errors="replace") != text):
            raise FolderRefused(f"--output {folder}: {path} exists and has another content; name another folder")
    for name, text in files.items():
        write_private(folder / name, text)
