"""The site of the documentation (``tox -e docs``): the Markdown files as they are, and docstrings of classes."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from pathlib import Path
from typing import Annotated, Any, get_origin

from docutils import nodes
from docutils.parsers.rst import Directive

import openstack_prep
from openstack_prep.base import fields
from openstack_prep.core.model import Resource
from openstack_prep.version import __version__

sys.path.insert(0, str(Path(__file__).parent))
import flowchart

RESOURCES = "docs/reference-resources"
FIELDS = {
    field.name
    for each in (getattr(openstack_prep, name) for name in openstack_prep.__all__)
    if inspect.isclass(each) and dataclasses.is_dataclass(each)
    for field in dataclasses.fields(each)
} - vars(Resource).keys()

project = "openstack_prep"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/*.md", "tests/*/README.md"]
html_theme = "furo"
html_title = f"openstack_prep {release}"
html_extra_path = ["index.html"]
html_search_scorer = str(Path(__file__).with_name("scorer.js"))
myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]
smartquotes = False  # --option stays --option
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "inherited-members": "Exception,StrEnum,str"}
autodoc_type_aliases = {name: name for name, each in vars(fields).items() if get_origin(each) is Annotated}


class Flowchart(Directive):
    """A flowchart for Mermaid as a picture, so that the site loads no script from the internet."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        try:
            picture = flowchart.draw(flowchart.read("\n".join(self.content)))
        except ValueError as error:
            raise self.error(f"flowchart: {error}") from None
        wide = (
            '<div class="flowchart" tabindex="0" style="overflow-x: auto; margin: 1rem 0">'  # it scrolls, by keys, too
        )
        return [nodes.raw("", f"{wide}{picture}</div>", format="html")]


def leave_out(app: Any, what: str, name: str, member: object, skipped: bool, options: object) -> bool | None:
    """Show only the fields of resources: their functions are for those who write a kind (core/resource.py)."""
    return True if app.env.docname == RESOURCES and name not in FIELDS else None


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.add_directive("mermaid", Flowchart)
    app.connect("autodoc-skip-member", leave_out)
