"""Which outputs of a stack are secrets: by what the template makes them of, by name, and by form.

A doubtful output counts as a secret, because a plan and a report are for many eyes, and somebody who needs the value
can ask for it. Source: Heat 27.0.0, engine/resources (attributes of the types below).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from openstack_prep.base.formats.foreign_text import parse_yaml
from openstack_prep.base.raw import Raw, walk
from openstack_prep.base.secret_forms import SECRET_WORDS, list_named_secrets, with_underscores
from openstack_prep.resources.heat.flow import Flow, ValueUse
from openstack_prep.resources.heat.package import Package, hidden_in

ALL: frozenset[str] = frozenset()
SECRET_ATTRIBUTES: Mapping[str, frozenset[str]] = {
    "AWS::CloudFormation::WaitConditionHandle": ALL,
    "AWS::IAM::AccessKey": frozenset({"SecretAccessKey"}),
    "OS::Barbican::CertificateContainer": ALL,
    "OS::Barbican::GenericContainer": ALL,
    "OS::Barbican::Order": ALL,
    "OS::Barbican::RSAContainer": ALL,
    "OS::Barbican::Secret": ALL,
    "OS::Heat::MultipartMime": ALL,
    "OS::Heat::RandomString": ALL,
    "OS::Heat::ResourceChain": ALL,
    "OS::Heat::SoftwareDeployment": ALL,
    "OS::Heat::SoftwareDeploymentGroup": ALL,
    "OS::Heat::Stack": ALL,
    "OS::Heat::StructuredDeployment": ALL,
    "OS::Heat::StructuredDeploymentGroup": ALL,
    "OS::Heat::SwiftSignal": ALL,
    "OS::Heat::SwiftSignalHandle": ALL,
    "OS::Heat::UpdateWaitConditionHandle": ALL,
    "OS::Heat::WaitCondition": ALL,
    "OS::Heat::WaitConditionHandle": ALL,
    "OS::Nova::KeyPair": frozenset({"private_key", "show"}),
    "OS::Nova::Server": frozenset({"console_urls", "os_collect_config", "show"}),
    "OS::Zaqar::SignedQueueURL": ALL,
}
"""Attributes that are secrets, or contain what servers have sent; ALL: each one, and the resource as a whole.

A chain and an inner stack may consist of such resources, and a MIME text contains others: nothing is looked for there.
"""
UNSEEN = {"OS::Nova::Server": ("admin_pass", "personality", "user_data")}
"""Properties that no other attribute of a resource is made of (Heat 27.0.0, nova/server.py, attributes_schema)."""
MEMBERS = {
    "OS::Heat::AutoScalingGroup": "resource",
    "OS::Heat::InstanceGroup": "resource",
    "OS::Heat::ResourceGroup": "resource_def",
}
"""The property of a group that defines its members."""
NAME = re.compile(
    rf"(.*[\W_])?({SECRET_WORDS}|credential|kube_?config|clouds_?yaml|rc_?file|(ssh|host|tls|account|join)_?key|key)s?",
    re.IGNORECASE,
)
"""Names of secrets, not those that only begin with such a word, such as kubeconfig_hint."""
PUBLIC = re.compile(r"(.*[\W_])?public_?keys?", re.IGNORECASE)
FORM = re.compile(
    r"PRIVATE KEY-----|client-key-data|client-key\b|\bx-auth-token\b|://[^/\s:@]+:[^/\s@]+@"
    r"|[\"']?\b(password|passwd|secret|token|[a-z_]+_secret)\b[\"']?\s*[:=]\s*[\"']?[^\s<\"'{][^\s\"']{5,}"
    r"|[?&](temp_url_sig|signature|x-amz-signature|token|sig)=",
    re.IGNORECASE,
)
"""Texts with a secret: keys, kubeconfigs, logins in URLs, settings."""
CODED = re.compile(r"[A-Za-z0-9+/_-]{40,}={0,2}")
MOST = 5
"""Nesting of templates and of base64 that is looked into."""


def secret_outputs(package: Package) -> frozenset[str]:
    """Return the outputs of a template that are made of secrets, or have the name of one."""
    registry = package.environment.get("resource_registry") or {}

    @cache  # each use of a nested template's attribute asks for it
    def nested(kind: str) -> Raw | None:
        text = package.files.get(kind)
        return None if text is None else parse_yaml(text.decode() if isinstance(text, bytes) else text) or {}

    return _outputs(_convert_to_hot(package.template), nested, registry, MOST)


def _convert_to_hot(template: Raw) -> Raw:
    """Return resources and outputs of a template in CloudFormation's form as those of Heat's own."""
    if not isinstance(template.get("Resources"), Mapping):
        return template
    resources, outputs = template["Resources"], template.get("Outputs") or {}
    return {
        "resources": {
            name: {"type": each.get("Type"), "properties": each.get("Properties")} for name, each in resources.items()
        },
        "outputs": {name: {"value": each.get("Value")} for name, each in outputs.items()},
    }


Nested = Callable[[str], Raw | None]
"""Returns the template of a type, if that is one of the package's files."""


def _outputs(template: Raw, nested: Nested, registry: Raw, depth: int) -> frozenset[str]:
    flow = _flow(template, nested, registry, depth)
    hidden = hidden_in(template)

    def is_secret(name: str) -> bool:
        if is_secret_name(name) or flow.into_output(name) & hidden:
            return True
        uses = flow.uses_of_output(name)
        return any(_is_source(use, flow.resources, nested, registry, depth) for use in uses)

    return frozenset(filter(is_secret, flow.outputs))


def _flow(template: Raw, nested: Nested, registry: Raw, depth: int) -> Flow:
    """Return the flow of a template, which knows of what attributes of servers and of nested templates are made."""

    def narrow(use: ValueUse, definition: Raw) -> object:
        member, attribute = _member(use, definition)
        kind, properties = str(member.get("type")), member.get("properties") or {}
        kind = str(registry.get(kind, kind))
        if kind in UNSEEN:
            return {name: each for name, each in properties.items() if name not in UNSEEN[kind]}
        inner = (nested(kind) if depth > 0 else None) or {}
        if attribute not in (inner.get("outputs") or {}):
            return definition
        names = _flow(inner, nested, registry, depth - 1).into_output(attribute)
        return {name: each for name, each in properties.items() if name in names}

    return Flow(template, narrow=narrow)


def _member(use: ValueUse, definition: Raw) -> tuple[Raw, str]:
    """Return a resource, or the definition of the members of a group, and the attribute that is taken from it."""
    inner, attribute = MEMBERS.get(str(definition.get("type"))), use.attribute
    if inner is None:
        return definition, attribute
    if attribute.startswith(("resource.", "attributes")):  # of one member, or a mapping of all
        attribute = attribute.partition(".")[2].partition(".")[2]
    return (definition.get("properties") or {}).get(inner) or {}, attribute


def _is_source(use: ValueUse, resources: Raw, nested: Nested, registry: Raw, depth: int) -> bool:
    """Whether what is taken from a resource is a secret."""
    definition, attribute = _member(use, resources.get(use.name) or {})
    if use.name in (registry.get("resources") or {}):  # of another type than its own, which may be a secret's
        return True
    kind = str(definition.get("type"))
    kind = str(registry.get(kind, kind))
    if kind in SECRET_ATTRIBUTES:
        attributes = SECRET_ATTRIBUTES[kind]
        return attributes is ALL or attribute in attributes
    inner = nested(kind)
    if inner is None or use.by not in ("get_attr", "Fn::GetAtt"):
        return False
    if depth == 0:
        return True
    secret = _outputs(inner, nested, registry, depth - 1)
    return attribute in secret or bool(secret and attribute not in (inner.get("outputs") or {}))


def is_secret_name(name: str) -> bool:
    """Whether a name is that of a secret."""
    name = with_underscores(name)
    return NAME.fullmatch(name) is not None and PUBLIC.fullmatch(name) is None


def holds_secret(value: object) -> bool:
    """Whether data contain a secret by its form, or by the name of its key."""
    texts = (part for part in walk(value) if isinstance(part, str))
    return any(map(looks_secret, texts)) or any(list_named_secrets(value))


def looks_secret(text: str, depth: int = MOST) -> bool:
    """Whether a text contains a secret by its form, also in base64."""
    if FORM.search(text):
        return True
    return depth > 0 and any(looks_secret(inner, depth - 1) for inner in _decoded(text))


def _decoded(text: str) -> Iterator[str]:
    for found in CODED.findall(text):
        coded = found.rstrip("=").translate(str.maketrans("-_", "+/"))
        try:
            yield base64.b64decode(coded + "=" * (-len(coded) % 4), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            continue
