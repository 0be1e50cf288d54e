"""Documents that are made from the code say what the code says today."""

from __future__ import annotations

import importlib.util
import re
from importlib import resources
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def test_docs_spec_md_is_up_to_date() -> None:
    found = importlib.util.spec_from_file_location("make_spec_md", ROOT / "docs" / "make_spec_md.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    assert (ROOT / "docs" / "spec.md").read_text() == module.page(), "run: python docs/make_spec_md.py"


def test_the_readme_shows_the_shipped_spec() -> None:
    (shown,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    shipped = resources.files("openstack_prep.install_configs") / "openshift-lab.yaml"
    assert yaml.safe_load(shown) == yaml.safe_load(shipped.read_text())


def test_ci_runs_the_test_command_of_the_readme() -> None:
    assert "README.md" in (ROOT / ".ci" / "run").read_text()
    assert (ROOT / "README.md").read_text().count("<!-- test command -->\n```sh\n") == 1
