"""Writes docs/spec.md from the JSON Schema of the spec and the shipped specs: ``python docs/make_spec_md.py``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from openstack_prep.spec.schema import filled_schema

INTRODUCTION = """\
# The spec: every section and field

A spec is one YAML file per cluster. This page is generated from the JSON Schema and the shipped specs by
`python docs/make_spec_md.py`.

For completion and checks in your editor, run `openstack-prep schema > spec.schema.json` beside the spec. The first line
of each shipped spec, `# yaml-language-server: $schema=./spec.schema.json`, tells editors that use the YAML language
server where the schema is.

- Use the names of resources, never their ids.
- Omitted fields are not managed.
- A size is a number in the unit named here, or text with a unit: `ram: 16384` and `ram: 16GiB` are the same.
- A secret is `{env: NAME}`, `{file: PATH}` (its first line), `{content: PATH}` (the whole file), `{command: [...]}`,
  `{vault: PATH#KEY}`, `{keyring: SERVICE/USER}` ([more](variables.md#sources-of-secrets)), `{prompt: true}` or
  `{generate: PATH}` (created at random in that file, mode 0600, when the file does not exist). Plain text works, with a
  warning.
- Paths are relative to the folder of the spec, or of the included file that they stand in.
- `${name}` in a value is a variable, and `for_each` repeats an item of a list ([variables.md](variables.md)).
- Project-scoped resources belong to the project of the section [`project`](#project), unless they name another one
  with `project:`.
- Each section begins with an example. Add the line `name: my-cluster`, and it is a valid spec.
"""
SOURCES = ("openshift-current", "rke2", "openshift-lab", "openshift-byo-network", "rke-mesh", "openshift-dual-stack")
"""The shipped specs that examples come from; the first one that has the section is used."""
EXAMPLES = {
    "clouds": "clouds: {admin: admin, tenant: ocp4}\n",
    "variables": """\
variables:
  environment: {description: dev or prod, default: dev}
  cores: {type: integer, default: 40}
  password: {secret: true, default: {generate: password}}

project: {name: "lab-${environment}"}
quota: {cores: "${cores}"}
users:
  - {name: "lab-${environment}", password: "${password}"}
""",
    "include": """\
include: [shared/flavors.yaml, shared/rules.yaml]
""",
    "server_groups": "server_groups:\n  - {name: masters, policy: anti-affinity}\n",
    "pool_files": """\
pool_files:
  - name: libvirt
    path: pools/libvirt.yaml
    cidr: 192.168.122.0/24
    gateway: 192.168.122.1
    addresses: [192.168.122.100-192.168.122.149]
    exclude: [192.168.122.110]
""",
    "exposures": """\
exposures:
  - name: shop
    cluster: okd
    target: {service: shop/frontend}
    ports: [{port: 443}]
    how: service-host
    pool: libvirt
    names: [shop.example.com]

pool_files:
  - {name: libvirt, path: pools/libvirt.yaml, cidr: 192.168.122.0/24, addresses: [192.168.122.100-192.168.122.149]}
""",
    "exposed_clusters": """\
exposed_clusters:
  - name: shop
    directory: shop # for Services, names and whatever else the cluster needs
    nodes: {stack: shop} # address pairs for the exposures
    open_in: shop # a security group for their ports

exposures:
  - name: web
    cluster: shop
    target: {service: shop/web}
    ports: [{port: 443}]
    how: metallb
    pool: shop
    names: [shop.example.com]

address_pools:
  - {name: shop, subnet: nodes, addresses: [10.0.0.208-10.0.0.215]}
""",
    "recordsets": """\
recordsets:
  - {name: shop.example.com, zone: example.com, type: A, records: [192.0.2.10], ttl: 300}
  - {name: "*.apps.example.com", zone: example.com, type: CNAME, records: [shop.example.com]}
  - {name: example.com, zone: example.com, type: TXT, records: [v=spf1 -all]}
  - {name: web.example.com, zone: example.com, type: A, floating_ips: [web]} # its address, once it is known

floating_ips:
  - {name: web, external_network: external}
""",
    "floating_ip_attachments": """\
floating_ips:
  - {name: web, external_network: external}

floating_ip_attachments:
  - {floating_ip: web, port: web-server-port}
""",
}
"""Examples of sections that no shipped spec has."""


def page() -> str:
    """Return the whole page."""
    whole = filled_schema()
    sections = whole["properties"]
    anchors = {name: name.lower() for name in whole["$defs"]}
    anchors |= {name: section for section, part in sections.items() for name in references(part)}
    parts = [INTRODUCTION, "## Sections\n" + table(whole, anchors)]
    shown: set[str] = set()
    for section, part in sections.items():
        if part.get("type") == "array" and not [*references(part)]:
            parts.append(f"## {section}\n```yaml\n{example(section)}```\n{meaning(part)}\n")
        for name in references(part):
            parts += describe(whole, name, anchors, shown, section)
    return "\n".join(parts)


def describe(
    whole: Mapping[str, Any], name: str, anchors: Mapping[str, str], shown: set[str], section: str | None = None
) -> Iterator[str]:
    """Yield the text of one object of the schema, which may be that of a section, and of the objects within it."""
    if name in shown:
        return
    shown.add(name)
    part = whole["$defs"][name]
    heading = f"## {section}\n```yaml\n{example(section)}```\n" if section else f"### {name}"
    yield f"{heading}\n{part.get('description', '')}\n\n{table(part, anchors)}"
    for inner in references(part.get("properties", {})):
        yield from describe(whole, inner, anchors, shown)


def example(section: str) -> str:
    """Return an example of a section; raises KeyError when the section has none."""
    for source in SOURCES:
        text = (resources.files("openstack_prep.install_configs") / f"{source}.yaml").read_text()
        if found := re.search(rf"^{section}:.*\n(?: .*\n)*", text, re.MULTILINE):
            return found[0]
    return EXAMPLES[section]


def table(part: Mapping[str, Any], anchors: Mapping[str, str]) -> str:
    """Return the fields of an object; types are links to their headings."""
    required = part.get("required", ())
    rows = [
        f"| `{name}`{' (required)' if name in required else ''} | {kind(each, anchors)} | {meaning(each)} |"
        for name, each in part["properties"].items()
    ]
    return "\n".join(["| field | type | meaning |", "|---|---|---|", *rows, ""])


def meaning(part: Mapping[str, Any]) -> str:
    return " ".join(part.get("description", "").split())


def kind(part: Mapping[str, Any], anchors: Mapping[str, str]) -> str:
    """Return a type in a few words."""
    if "$ref" in part:
        name = part["$ref"].rpartition("/")[2]
        return f"[{name}](#{anchors[name]})"
    if "const" in part:
        return f"`{json.dumps(part['const']) if isinstance(part['const'], bool) else part['const']}`"
    if "enum" in part:
        return ", ".join(f"`{each}`" for each in part["enum"])
    if "anyOf" in part:
        options = [option for option in part["anyOf"] if option.get("type") != "null"]
        if any("env" in option.get("properties", ()) for option in options):
            return "secret"
        if any(str(option.get("description", "")).startswith("a number of ") for option in options):
            unit = next(option["description"] for option in options if "description" in option)
            return f"size, {unit.removeprefix('a number of ')}"
        return " or ".join(dict.fromkeys(kind(option, anchors) for option in options))
    if part.get("type") == "array":
        return f"list of {kind(part['items'], anchors)}" if isinstance(part.get("items"), dict) else "list"
    if part.get("type") == "object":
        inner = part.get("additionalProperties")
        return f"mapping to {kind(inner, anchors)}" if isinstance(inner, dict) else "mapping"
    words = {"string": "text", "integer": "number", "number": "number", "boolean": "true or false"}
    types = part.get("type", "any")
    return " or ".join(dict.fromkeys(words.get(each, each) for each in ([types] if isinstance(types, str) else types)))


def references(part: Any) -> Iterator[str]:
    """Yield the names of the objects that a part of the schema refers to."""
    if isinstance(part, dict):
        if "$ref" in part:
            yield part["$ref"].rpartition("/")[2]
        for each in part.values():
            yield from references(each)
    elif isinstance(part, list):
        for each in part:
            yield from references(each)


if __name__ == "__main__":
    Path(__file__).with_name("spec.md").write_text(page())
