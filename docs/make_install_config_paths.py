"""Write openstack_prep/openshift/install_config/paths.yaml: the paths of an install-config that each release knows.

Run it by hand when a release comes: python docs/make_install_config_paths.py 4.21=FILE 5.0=FILE ...  Each FILE is the
definition of the resource InstallConfig at the release branch (data/data/install.openshift.io_installconfigs.yaml in
openshift/installer).  Releases that are not given stay as they are.  Only paths, and the releases that have them, are
written; those of other platforms are left out.  What 4.22 and 5.x added was entered by hand, from the installer's
types (pkg/types of 2026-05 and 2026-08), because their definitions were not at hand.  The paths of 4.12, 4.16, 4.20 to
4.22 and 5.0 were compared with the fields of the Go types: they are the same.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from openstack_prep.openshift.install_config import releases

TARGET = Path(__file__).parents[1] / "openstack_prep" / "openshift" / "install_config" / "paths.yaml"
HEAD = "# Written by docs/make_install_config_paths.py: the minor numbers of the releases that know each path.\n"
OURS = "openstack"


def paths(schema: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Yield the paths below a schema; lists count as their elements."""
    schema = schema.get("items", schema)
    for name, inner in schema.get("properties", {}).items():
        path = f"{above}.{name}".lstrip(".")
        yield path
        if not above.endswith("platform") or name == OURS:
            yield from paths(inner, path)


def of_definition(path: Path) -> set[str]:
    definition = yaml.safe_load(path.read_text())
    (version,) = definition["spec"]["versions"][:1]
    found = set(paths(version["schema"]["openAPIV3Schema"]))
    return {each for each in found if not each.startswith("metadata.")}


def spans(known: Mapping[str, set[int]], numbers: list[int]) -> dict[str, str]:
    """Return per path the releases that know it, such as 18- or 12-14."""
    found = {}
    for path, there in sorted(known.items()):
        first, last = min(there), max(there)
        missing = [each for each in numbers if first <= each <= last and each not in there]
        if missing:
            print(f"{path}: not in {', '.join(map(releases.name, missing))}", file=sys.stderr)
        found[path] = f"{first}-" + ("" if last == numbers[-1] else str(last))
    return found


def main(words: list[str]) -> None:
    files = {releases.minor(name): Path(path) for name, _, path in (word.partition("=") for word in words)}
    old: dict[str, str] = yaml.safe_load(TARGET.read_text())["paths"] if TARGET.exists() else {}
    numbers = sorted({*files, *(yaml.safe_load(TARGET.read_text())["releases"] if TARGET.exists() else ())})
    known: dict[str, set[int]] = {}
    for path, span in old.items():
        first, _, last = span.partition("-")
        known[path] = {each for each in numbers if int(first) <= each <= int(last or numbers[-1])} - files.keys()
    for number, file in files.items():
        for path in of_definition(file):
            known.setdefault(path, set()).add(number)
    table = {"releases": numbers, "paths": spans({path: there for path, there in known.items() if there}, numbers)}
    TARGET.write_text(HEAD + yaml.safe_dump(table, sort_keys=False, width=1000))


if __name__ == "__main__":
    main(sys.argv[1:])
