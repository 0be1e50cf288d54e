"""Documents that are made from the code say what the code says today."""

from __future__ import annotations

import importlib.util
import re
from importlib import resources
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["spec", "codes"])
def test_a_generated_page_is_up_to_date(name: str) -> None:
    found = importlib.util.spec_from_file_location(f"make_{name}_md", ROOT / "docs" / f"make_{name}_md.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    assert (ROOT / "docs" / f"{name}.md").read_text() == module.page(), f"run: python docs/make_{name}_md.py"


def test_the_readme_shows_the_shipped_spec() -> None:
    (shown,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    shipped = resources.files("openstack_prep.install_configs") / "openshift-lab.yaml"
    assert yaml.safe_load(shown) == yaml.safe_load(shipped.read_text())


def test_ci_runs_the_test_command_of_the_readme() -> None:
    assert "README.md" in (ROOT / ".ci" / "run").read_text()
    assert (ROOT / "README.md").read_text().count("<!-- test command -->\n```sh\n") == 1
