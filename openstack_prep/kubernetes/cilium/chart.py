"""The archive of a Helm chart: its name, its version and the schema of its values.

Source: Helm's documentation ("Charts", "Schema Files"). An archive is untrusted: nothing is unpacked, two members are
read, and all sizes are limited. Of the schema, only keywords without references and patterns are used.
"""

from __future__ import annotations

import gzip
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from openstack_prep.base.formats.foreign_text import parse_json, parse_yaml
from openstack_prep.base.given_file import refuse_special
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.raw import Raw

MEMBERS = {"Chart.yaml": 2**18, "values.schema.json": 2**22}
"""The members that are read, and their maximum sizes."""
MOST_BYTES = 2**26
"""Maximum size of the whole archive without compression."""
EXAMPLE = "name the archive of a chart, such as cilium-1.18.12.tgz"
BOUNDS = ("enum", "minimum", "maximum", "minItems", "maxItems")
CHOICES = ("anyOf", "oneOf")


@dataclass(frozen=True)
class Chart:
    """A chart: its name, its version and the schema of its values."""

    name: str
    version: str
    schema: Raw


class _Limited:
    """A stream that refuses to be read beyond a limit, because a small archive may contain terabytes."""

    def __init__(self, stream: gzip.GzipFile) -> None:
        self._stream, self._left = stream, MOST_BYTES

    def read(self, size: int) -> bytes:
        found = self._stream.read(min(size, self._left + 1))
        self._left -= len(found)
        if self._left < 0:
            raise InvalidValue(f"is larger than {MOST_BYTES // 2**20} MiB without compression", EXAMPLE)
        return found


def read_chart(path: str) -> Chart:
    """Return the chart in an archive; raises InvalidValue."""
    found: dict[str, bytes] = {}
    try:
        refuse_special(Path(path))
        with gzip.open(path) as stream, tarfile.open(fileobj=_Limited(stream), mode="r|") as archive:  # type: ignore[call-overload]
            for member in archive:
                folder, _, name = member.name.removeprefix("./").partition("/")
                if folder and name in MEMBERS and member.isfile() and name not in found:
                    found[name] = _member(archive, member, MEMBERS[name])
                if len(found) == len(MEMBERS):
                    break
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "it is not a .tgz archive"
        raise InvalidValue(f"{path} cannot be read: {why}", EXAMPLE) from None
    return _chart(path, found)


def _member(archive: tarfile.TarFile, member: tarfile.TarInfo, limit: int) -> bytes:
    if member.size > limit:
        raise InvalidValue(f"{member.name} has {member.size} bytes, at most {limit} are read", EXAMPLE)
    content = archive.extractfile(member)
    return content.read(limit) if content else b""


def _chart(path: str, found: Mapping[str, bytes]) -> Chart:
    if "Chart.yaml" not in found:
        raise InvalidValue(f"{path} has no Chart.yaml", EXAMPLE)
    about = _parsed("Chart.yaml", found["Chart.yaml"])
    name, version = str(about.get("name")), str(about.get("version"))
    if "values.schema.json" not in found:
        what = f"{path} ({name} {version}) has no values.schema.json; charts of Cilium have one since 1.16"
        raise InvalidValue(what, "remove chart")
    try:
        return Chart(name, version, _strict(_parsed("values.schema.json", found["values.schema.json"])))
    except RecursionError:
        raise InvalidValue(f"values.schema.json of {path} is nested too deeply", EXAMPLE) from None


def _parsed(name: str, content: bytes) -> Raw:
    try:
        text = content.decode()
        data = parse_json(text) if name.endswith(".json") else parse_yaml(text)
    except (ValueError, yaml.YAMLError):
        raise InvalidValue(f"{name} of the chart cannot be parsed", EXAMPLE) from None
    if not isinstance(data, dict):
        raise InvalidValue(f"{name} of the chart is not a mapping", EXAMPLE)
    return data


def _strict(schema: Any) -> dict[str, Any]:
    """Return the schema with the known keywords, that refuses unknown names wherever it knows some.

    Helm itself passes unknown names over in silence.
    """
    if not isinstance(schema, dict):
        return {}
    strict: dict[str, Any] = {name: schema[name] for name in BOUNDS if name in schema}
    if isinstance(schema.get("type"), str | list):
        strict["type"] = schema["type"]
    if isinstance(schema.get("items"), dict):
        strict["items"] = _strict(schema["items"])
    for name in CHOICES:
        if isinstance(schema.get(name), list):
            strict[name] = [_strict(each) for each in schema[name]]
    properties = schema.get("properties")
    if isinstance(properties, dict) and properties:
        strict["properties"] = {name: _strict(each) for name, each in properties.items()}
        strict["additionalProperties"] = False
    return strict
