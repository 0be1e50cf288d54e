"""The schemas of both forms of reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import xmlschema

DATA = Path(__file__).parent / "data"


def read_sarif(text: str) -> dict[str, Any]:
    """Return the only run of a SARIF document that its schema accepts."""
    document = json.loads(text)
    schema = json.loads((DATA / "sarif-2.1.0-rtm.5.json").read_text())
    validator = jsonschema.Draft4Validator(schema, format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER)
    validator.validate(document)
    (run,) = document["runs"]
    return dict(run)


def read_junit(text: str) -> ElementTree.Element:
    """Return the only suite of a JUnit document that its schema accepts."""
    xmlschema.XMLSchema(DATA / "junit-10.xsd").validate(text)
    (suite,) = ElementTree.fromstring(text.encode())
    return suite
