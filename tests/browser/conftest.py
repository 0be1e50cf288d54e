from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from openstack_prep.cloud.no_cloud import NoCloud
from openstack_prep.core.model import Action, Step
from openstack_prep.core.plan import Plan
from openstack_prep.pictures.topology import sources
from openstack_prep.reports import files, html, html_content
from openstack_prep.spec.resolution import resolve_spec
from openstack_prep.spec.spec import load_spec
from tests.browser import program, started

SCRIPT = "</script><script>window.ran = 1</script>"
HOSTILE = (
    SCRIPT,
    "a\nb",
    "x\u202egnp.exe",
    '" onload="window.ran = 2',
    "<img src=//h/>",
)
SPECS = Path(__file__).parents[2] / "install_configs"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    try:
        program()
    except LookupError as error:
        pytest.fail(str(error))
    with started() as found:
        yield found


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a plan for two meshed clusters with hostile names in places, written as a command does."""
    folder = tmp_path_factory.mktemp("report")
    key = folder / "key.pub"
    key.write_text("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB lab\n")
    text = (SPECS / "rke2-mesh.yaml").read_text().replace("~/.ssh/id_ed25519.pub", str(key))
    path = folder / "mesh.yaml"
    path.write_text(text)
    spec = load_spec(path)
    resources = resolve_spec(spec, NoCloud.as_cloud(), for_apply=False).resources
    actions = [*Action]
    steps = (Step(resource=each, action=actions[index % len(actions)]) for index, each in enumerate(resources))
    plan = Plan(spec=spec.name, purpose="apply", steps=tuple(steps), warnings=HOSTILE)
    page = html.Page(
        title=HOSTILE[0],
        verdict=HOSTILE[1],
        good=True,
        facts=[(each, each) for each in HOSTILE],
        sections=list(html_content.plan_sections(plan.document())),
        pictures=[*html_content.of_plan(plan), html_content.of_topology(lambda: sources.of_declared(spec))],
    )
    files.write("html", folder / "report.html", page.html())
    return folder / "report.html"
