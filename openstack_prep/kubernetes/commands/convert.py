"""``kubernetes convert``: RKE's cluster.yml as files of RKE2."""

from __future__ import annotations

import argparse
import hashlib

from openstack_prep.base.errors import SpecError
from openstack_prep.cli.output import print_result, warn
from openstack_prep.cli.output_folder import output_folder, write_conversion
from openstack_prep.kubernetes import reading
from openstack_prep.kubernetes.convert import convert
from openstack_prep.kubernetes.convert.new_spec import FILE
from openstack_prep.kubernetes.versions import version_warnings


def run(options: argparse.Namespace) -> int:
    folder = output_folder(options.output)
    warnings = version_warnings(options.kubernetes_version)
    content = reading.read(options.file)
    data, mistakes = content.data, content.mistakes
    if content.of_rancher and not data.get("nodes"):
        mistakes = [*mistakes, reading.missing_nodes(options.file)]
    for warning in [*warnings, *(f"{options.file}: {each}" for each in reading.warnings(data))]:
        warn(warning)
    if mistakes:
        raise SpecError(mistakes)
    conversion = convert(data, version=options.kubernetes_version)
    if folder:
        path = hashlib.sha256(str(options.file.resolve()).encode()).hexdigest()[:12]  # most have no cluster_name
        name = " ".join(str(data.get("cluster_name") or f"local-{path}").split())
        shown = write_conversion(folder, name, conversion.texts(openly=True), edited=(FILE,))
    else:
        shown = "\n".join(f"# --- {name}\n{text}" for name, text in conversion.texts(openly=False).items())
    print_result(options, f"{conversion}\n\n{shown}".rstrip("\n"), conversion.data())
    return 0
