"""``exposures convert``: Services with externalIPs as Services of a load balancer, with the same addresses."""

from __future__ import annotations

import argparse
from pathlib import Path

from openstack_prep.base.errors import ConfigError, Mistake, SpecError
from openstack_prep.base.given_file import STDIN, name_of, read_text, unreadable
from openstack_prep.cli.output import print_result, warn
from openstack_prep.cli.output_folder import output_folder, write_conversion
from openstack_prep.exposures.convert import convert, newer_than_known, read, wanted
from openstack_prep.kubernetes.commands.of_running_cluster import texts_of_cluster


def run(options: argparse.Namespace) -> int:
    if not options.files and not options.kubeconfig:
        raise ConfigError("exposures convert: nothing to convert; name files, or a cluster with --kubeconfig")
    folder = output_folder(options.output)
    chosen = wanted(
        options.to,
        release=options.release,
        announce=options.announce,
        interfaces=options.interface,
        my_asn=options.my_asn,
        peers=options.peer,
        class_name=options.load_balancer_class,
    )
    if warning := newer_than_known(options.to, options.release):
        warn(warning)
    conversion = convert(read(_texts(options.files) | texts_of_cluster(options)), chosen)
    if folder and conversion.files:
        shown = write_conversion(folder, conversion.tag, conversion.files)
    else:
        shown = "\n".join(f"# --- {name}\n{text}" for name, text in conversion.files.items() if name.endswith(".yaml"))
    print_result(options, f"{conversion}\n\n{shown}".rstrip("\n"), conversion.data())
    return 0


def _texts(names: list[str]) -> dict[str, str]:
    """Return the texts of the files; raises SpecError for all that cannot be read."""
    texts: dict[str, str] = {}
    mistakes = []
    for name in names:
        shown = name_of(name)
        if shown in texts:
            mistakes.append(Mistake(shown, "is given twice", "name each file once"))
            continue
        try:
            texts[shown] = read_text(Path(STDIN if name == "-" else name))
        except (OSError, UnicodeDecodeError) as error:
            texts[shown] = ""
            mistakes.append(Mistake(shown, unreadable(error), "name a readable file, or - for standard input"))
    if mistakes:
        raise SpecError(mistakes)
    return texts
