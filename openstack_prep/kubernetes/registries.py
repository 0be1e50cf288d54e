"""Checks of a registries.yaml: what RKE2 ignores, or does not start with.

Sources: rancher/wharfie v0.7.1 (pkg/registries/types.go, which yaml.v2 decodes without a word about unknown keys, and
registries.go, which ignores endpoints without a host, and auths, whose keys are URLs); containerd's names of
registries, HOST[:PORT] or * for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from openstack_prep.base.codes import Code
from openstack_prep.base.raw import Steps, value_at
from openstack_prep.kubernetes.keys.schema import Fault, find_faults, hide_in_url, load_schema
from openstack_prep.kubernetes.rke2_rules import is_endpoint, placeholders

PAIR = ("cert_file", "key_file")


def registry_faults(data: object) -> Iterator[Fault]:
    """Yield what is wrong with the content of a registries.yaml."""
    schema = load_schema("registries")
    for fault in find_faults(data, schema):
        section = _section(fault.steps) if fault.code == Code.SPEC_UNKNOWN_KEY else ""
        yield replace(fault, fix=f"move it to {section}") if section else fault
    if not isinstance(data, Mapping):
        return
    yield from placeholders(data)
    if _mapping(data.get("auths")):
        fix = "move each login to configs: HOST or HOST:PORT of its registry, and below it auth"
        yield Fault(("auths",), "RKE2 ignores it, and pulls without these logins", fix)
    for section in ("mirrors", "configs"):
        for name in _mapping(data.get(section)):
            yield from _name(section, str(name))
    for name, mirror in _mapping(data.get("mirrors")).items():
        endpoints = mirror.get("endpoint") if isinstance(mirror, Mapping) else None
        for index, text in enumerate(endpoints if isinstance(endpoints, list | tuple) else ()):
            if not _is_url(str(text)):
                steps: Steps = ("mirrors", str(name), "endpoint", index)
                yield Fault(
                    steps,
                    f"{hide_in_url(str(text))!r} is not a URL of a registry",
                    "write one such as https://mirror.example.com",
                )
    for name, config in _mapping(data.get("configs")).items():
        tls = _mapping(value_at(config, "tls"))
        for one, other in (PAIR, PAIR[::-1]):
            if tls.get(one) and not tls.get(other):
                place: Steps = ("configs", str(name), "tls", other)
                yield Fault(place, f"is missing, and {one} requires it", "add it", Code.SPEC_MISSING_KEY)


def _mapping(value: object) -> Mapping[object, object]:
    return value if isinstance(value, Mapping) else {}


def _section(steps: Steps) -> str:
    """Return the section of configs into which a key belongs that is beside the sections."""
    if len(steps) != 3 or steps[0] != "configs":
        return ""
    schema = load_schema("registries")["properties"]["configs"]["additionalProperties"]["properties"]
    return next((name for name, each in schema.items() if steps[2] in each["properties"]), "")


def _name(section: str, name: str) -> Iterator[Fault]:
    host = name.partition("://")[2] or name
    host = host.partition("/")[0]
    if name != "*" and not is_endpoint(name):
        fix = f"write {host}" if is_endpoint(host) else "write HOST or HOST:PORT, or * for all registries"
        yield Fault((section, name), "is not the name of a registry, so RKE2 never uses it", fix)


def _is_url(text: str) -> bool:
    """Whether wharfie takes a text for an endpoint: it adds the scheme if there is none."""
    try:
        parts = urlsplit(text if "://" in text else f"https://{text}")
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
