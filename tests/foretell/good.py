"""Specs of which a plan must refuse nothing: the shipped ones, as they are and changed, and those of the guides.

    python -m tests.foretell.good --port-base 13000

plans each as the administrator of a devcloud, in a folder with the files that it reads, and prints what is refused. The
specs of guides that expect what no devcloud has are named, and not counted. The good neighbours of the situations
(``python -m tests.foretell``) are applied as well.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import DownloadError, Mistake, Mistaken
from openstack_prep.cloud.connection import Cloud
from openstack_prep.spec import load_spec
from openstack_prep.verbs import api
from tests.devcloud import cloud, tenant
from tests.devcloud.layout import REPOSITORY, Layout, default_root
from tests.faults import shipped

BLOCK = re.compile(r"^```yaml\n(name: .*?)^```", re.DOTALL | re.MULTILINE)
ABSENT = {Code.SPEC_UNRESOLVED, Code.ENTRY_LOGIN, DownloadError.code}
"""Codes that say what a devcloud, or the folder of an example, does not have: the plan judges the rest in vain."""


@dataclass(frozen=True)
class Good:
    """A spec and what it is called."""

    name: str
    folder: Path


def shipped_specs(root: Path) -> Iterator[Good]:
    """Yield the shipped specs that ask a cloud, as they are, and changed in what an apply replaces or deletes."""
    for name in (*shipped.SPECS, shipped.KINDS):
        made = shipped.make(root / name, name, {})
        yield Good(name, made.path)
        changed = shipped.make(root / f"{name}-changed", name, {})
        pools = yaml.safe_load((made.path / "spec.yaml").read_text()).get("address_pools")
        shipped.change(changed)
        path = changed.path / "spec.yaml"
        spec = yaml.safe_load(path.read_text())
        if pools:  # other addresses do not suit the exposures of each spec
            path.write_text(yaml.safe_dump(spec | {"address_pools": pools}, sort_keys=False))
        yield Good(f"{name}, changed", changed.path)


def specs_of_guides(root: Path) -> Iterator[Good]:
    """Yield the whole specs in the pages of docs."""
    for page in sorted((REPOSITORY / "docs").glob("*.md")):
        for number, text in enumerate(BLOCK.findall(page.read_text()), 1):
            folder = root / f"{page.stem}-{number}"
            folder.mkdir()
            (folder / "spec.yaml").write_text(text)
            (folder / "pull-secret.json").write_text('{"auths": {"quay.io": {"auth": "Zm9vOmJhcg=="}}}')
            yield Good(f"{page.name}, example {number}", folder)


def refused(layout: Layout, good: Good) -> tuple[Mistake, ...]:
    """Return what a plan of a spec refuses."""
    admin = Cloud(tenant.connect(layout.clouds_file, "devcloud-admin"))
    try:
        with contextlib.chdir(good.folder):
            return api.plan(admin, load_spec(good.folder / "spec.yaml"), adopt=True).refusals
    except Mistaken as error:
        return tuple(error.mistakes)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.foretell.good", description=__doc__)
    parser.add_argument("--port-base", type=int, default=13000, help="which devcloud")
    options = parser.parse_args(arguments)
    layout = Layout(options.port_base, default_root())
    cloud.up(layout)
    judged, false = 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        os.environ |= {
            "HOME": scratch,
            "PREP_PASSWORD": "of-the-plan",
            "OS_CLIENT_CONFIG_FILE": str(layout.clouds_file),
        }
        (root / ".ssh").mkdir()
        (root / ".ssh/id_ed25519.pub").write_text(f"{shipped.KEY}\n")
        for good in (*shipped_specs(root), *specs_of_guides(root)):
            refusals = refused(layout, good)
            is_absent = any(each.code in ABSENT for each in refusals)
            judged, false = judged + (not is_absent), false + (bool(refusals) and not is_absent)
            print(f"{good.name}: {'expects more' if is_absent else 'refused' if refusals else 'right'}", flush=True)
            print(*(f"    {each}" for each in refusals), sep="\n", end="\n" if refusals else "", flush=True)
    print(f"{judged} good specs, {false} of them refused")
    return 1 if false else 0


if __name__ == "__main__":
    sys.exit(main())
