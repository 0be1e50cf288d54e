"""Specs of which a plan must refuse nothing: the shipped ones, those of the guides, and variations of users.

    python -m tests.foretell.good --port-base 13000

plans each as the administrator of a devcloud, in a folder with the files that it reads, and prints what is refused: the
shipped specs as they are, and changed in what an apply replaces or deletes; the whole specs of the guides; the
variations of variations.yaml, as whom they say. The specs of guides that expect what no devcloud has are named, and not
counted. ``--apply`` also applies the variations and the shipped specs without stacks; a second plan then has nothing to
do. The good neighbours of the situations (``python -m tests.foretell``) are applied there.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import DownloadError, Mistake, Mistaken
from openstack_prep.cloud.connection import Cloud
from openstack_prep.spec import load_spec
from tests.devcloud import cloud, tenant
from tests.devcloud.layout import REPOSITORY, Layout, default_root
from tests.devcloud.qcow2 import qcow2
from tests.faults import shipped
from tests.foretell.trial import HERE, Ground, Situation, judge

BLOCK = re.compile(r"^```yaml\n(name: .*?)^```", re.DOTALL | re.MULTILINE)
ABSENT = {Code.SPEC_UNRESOLVED, Code.ENTRY_LOGIN, DownloadError.code}
"""Codes that say what a devcloud, or the folder of an example, does not have: the plan judges the rest in vain."""


class Absent(Exception):
    """The spec expects what no devcloud has."""


@dataclass(frozen=True)
class Good:
    """A spec, by its name."""

    name: str
    refused: Callable[[], tuple[str, ...]]
    """Returns what is refused of it; raises Absent."""


@dataclass(frozen=True)
class Judge:
    """A devcloud, a folder for specs, and whether specs are applied as well."""

    layout: Layout
    root: Path
    is_applied: bool

    def specs(self) -> Iterator[Good]:
        yield from self._shipped()
        yield from self._of_guides()
        yield from self._variations()

    def _shipped(self) -> Iterator[Good]:
        """Yield the shipped specs that ask a cloud, as they are, and changed in what an apply replaces or deletes."""
        for name in (*shipped.SPECS, shipped.KINDS):
            yield self._good(name, self._shipped_spec(name, name))
            changed = shipped.make(self.root / f"{name}-changed", name, {})
            pools = yaml.safe_load((changed.path / "spec.yaml").read_text()).get("address_pools")
            shipped.change(changed)
            if pools:  # other addresses do not suit the exposures of each spec
                _edit(changed.path, {"address_pools": pools})
            yield self._good(f"{name}, changed", changed.path)

    def _shipped_spec(self, name: str, folder: str) -> Path:
        return shipped.make(self.root / folder, name, {}).path

    def _of_guides(self) -> Iterator[Good]:
        """Yield the whole specs in the pages of docs."""
        for page in sorted((REPOSITORY / "docs").glob("*.md")):
            for number, text in enumerate(BLOCK.findall(page.read_text()), 1):
                folder = self.root / f"{page.stem}-{number}"
                folder.mkdir()
                (folder / "spec.yaml").write_text(text)
                (folder / "rhcos.qcow2").write_bytes(qcow2(1))
                (folder / "pull-secret.json").write_text('{"auths": {"quay.io": {"auth": "Zm9vOmJhcg=="}}}')
                yield self._good(f"{page.name}, example {number}", folder, may_apply=False)

    def _variations(self) -> Iterator[Good]:
        ground = Ground(self.layout, self.root)
        ground.prepare()
        rows = yaml.safe_load((HERE / "variations.yaml").read_text())["variations"]
        for number, row in enumerate(rows):
            if "of" in row:
                folder = self._shipped_spec(row["of"], f"variation-{number}")
                _edit(folder, row["set"])
                yield self._good(f"{row['of']}, {row['name']}", folder)
            else:
                yield self._in_project(ground, row)

    def _in_project(self, ground: Ground, row: Mapping[str, Any]) -> Good:
        rest = {key: row[key] for key in ("before", "actor") if key in row}
        situation = Situation(row["name"], bad={}, good=row["spec"], **rest)
        return Good(row["name"], lambda: ground.refused(situation, is_applied=self.is_applied))

    def _good(self, name: str, folder: Path, *, may_apply: bool = True) -> Good:
        return Good(name, lambda: self._refused(folder, may_apply=may_apply))

    def _refused(self, folder: Path, *, may_apply: bool) -> tuple[str, ...]:
        admin = Cloud(tenant.connect(self.layout.clouds_file, "devcloud-admin"))
        try:
            with contextlib.chdir(folder):
                text = (folder / "spec.yaml").read_text()
                is_applied = self.is_applied and may_apply and "stacks" not in yaml.safe_load(text)
                refused = judge(admin, load_spec(folder / "spec.yaml"), is_applied=is_applied)
        except Mistaken as error:
            refused = error.mistakes
        if any(isinstance(each, Mistake) and each.code in ABSENT for each in refused):
            raise Absent("; ".join(map(str, refused)))
        return tuple(map(str, refused))


def _edit(folder: Path, values: Mapping[str, Any]) -> None:
    """Set values of a spec, each at a place such as ``stacks.0.parameters.server_count``."""
    path = folder / "spec.yaml"
    spec = yaml.safe_load(path.read_text())
    for place, value in values.items():
        *parents, last = place.split(".")
        section: Any = spec
        for parent in parents:
            section = section[int(parent)] if isinstance(section, list) else section.setdefault(parent, {})
        section[last] = value
    path.write_text(yaml.safe_dump(spec, sort_keys=False))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.foretell.good", description=__doc__)
    parser.add_argument("--port-base", type=int, default=13000, help="which devcloud")
    parser.add_argument("--only", nargs="+", default=[""], help="texts in the names of specs")
    parser.add_argument("--apply", action="store_true", help="apply and destroy specs without stacks, and variations")
    options = parser.parse_args(arguments)
    layout = Layout(options.port_base, default_root())
    cloud.up(layout)
    judged, refused = 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        os.environ |= {
            "HOME": scratch,
            "PREP_PASSWORD": "of-the-plan",
            "OS_CLIENT_CONFIG_FILE": str(layout.clouds_file),
        }
        (root / ".ssh").mkdir()
        (root / ".ssh/id_ed25519.pub").write_text(f"{shipped.KEY}\n")
        for good in Judge(layout, root, options.apply).specs():
            if not any(text in good.name for text in options.only):
                continue
            try:
                refusals = good.refused()
            except Absent as error:
                print(f"{good.name}: expects more\n    {error}", flush=True)
                continue
            judged, refused = judged + 1, refused + bool(refusals)
            print(f"{good.name}: {'refused' if refusals else 'right'}", *refusals, sep="\n    ", flush=True)
    print(f"{judged} good specs, {refused} of them refused")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
