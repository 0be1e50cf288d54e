"""The keys of config.yaml (RKE2) and cluster.yml (RKE) as JSON Schemas, and what is wrong with data by them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake
from openstack_prep.base.formats.foreign_text import shipped_yaml
from openstack_prep.base.raw import Raw, Steps, Values, dotted, rewrite, value_at
from openstack_prep.base.secret import HIDDEN, Secret
from openstack_prep.base.suggestion import suggest

# --- hidden -----------------------------------------------------------------------------------


WORDS = r"passw(or)?d|passphrase|secret|token|credentials?|authorization|[-_]key|(api|access|private|client|secret)key"
NAME = re.compile(rf".*({WORDS}|key[-_]data)", re.IGNORECASE)
"""Keys whose value is a secret; secretName and tokenFile are not."""
VARIABLE = re.compile(
    r"[^=]*(pass|secret|token|credential|private|key|auth(?!or)|pwd|(?<![a-z])(pat|pw)(?![a-z]))", re.IGNORECASE
)
"""Environment variables whose value is a secret by their name."""
URL_USER = re.compile(r"(?<=://)[^/\s]+(?=@)")
URL_QUERY = re.compile(r"(?<=\?)\S+")
TEXT = re.compile(
    r"^LS0tLS1CRUdJTi"  # PEM in base64
    rf"|({WORDS})[\"']?\s*[:=]\s*[\"']?(?!/)\S"  # password: x, --client-secret=x, but not a path
    r"|(authorization|x-[\w-]*(key|token|secret))[\"']?\s+[\"']?\S"  # a header in nginx's configuration
    r"|\b(bearer|basic)\s+[\w+/=.~-]{8,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|://[^/\s@]+@"
    r"|\?[^\s=]*(token|sig|key|pass|secret|credential|auth|code)[^\s=&]*=",
    re.IGNORECASE,
)
"""Texts that contain a secret, in whatever form."""


KEY_PAIRS = frozenset({"admin", "ca", "client", "external", "ipsec", "remote", "server"})
"""Names within Cilium's values whose ``key`` is a private key (Cilium 1.19, install/kubernetes/cilium/values.yaml)."""


def hide(value: object, name: str = "") -> object:
    """Return data with each text that is or contains a secret as ``Secret``; ``name`` is the key of the value."""
    if isinstance(value, Mapping):
        variable = "value" in value and VARIABLE.match(str(value.get("name", "")))
        in_value = "value" if variable else "key" if name in KEY_PAIRS else None
        names = {each: f"{each}_secret" if each == in_value else str(each) for each in value}
        return {each: hide(inner, names[each]) for each, inner in value.items()}
    if isinstance(value, list | tuple):
        return [hide(each, name) for each in value]
    if isinstance(value, str) and value and (NAME.fullmatch(name) or TEXT.search(value)):
        return Secret(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and NAME.fullmatch(name):
        return Secret(str(value))
    return value


def hide_variable(text: str) -> str | Secret:
    """Return a variable as NAME=VALUE, as ``Secret`` if its value is one by its name or form."""
    name, equals, _ = text.partition("=")
    return Secret(text) if equals and (VARIABLE.match(name) or TEXT.search(text)) else text


def hide_in_url(text: str) -> str:
    """Return a URL with asterisks for its login and its query, which may contain a token."""
    return URL_QUERY.sub(HIDDEN, URL_USER.sub(HIDDEN, text)) if "://" in text else text


# --- schema -----------------------------------------------------------------------------------


LARGE, INT32 = 2**63, "int32"
"""Go's integers are smaller."""
SECRET = "writeOnly"
"""The keyword of a schema whose value is a secret."""


def is_variable(schema: Raw) -> bool:
    """Whether a value is a variable as NAME=VALUE, which is a secret by its name or form."""
    return schema.get("format") == "variable"


@dataclass(frozen=True)
class Fault:
    """One thing wrong in data, and the steps that lead to it."""

    steps: Steps
    what: str
    fix: str
    code: str = Code.SPEC_INVALID_VALUE

    def mistake(self, where: str) -> Mistake:
        return Mistake(where, self.what, self.fix, code=self.code)


@cache
def load_schema(name: Literal["server", "agent", "registries", "cluster.yml", "node", "json"]) -> Raw:
    """Return the schema of a file, of one node in cluster.yml, or of the parts of it that RKE reads as JSON."""
    definitions = _definitions()
    if name == "node":
        node: Raw = definitions["cluster.yml"]["properties"]["nodes"]["items"]
        return node
    own: Raw = definitions[name]
    return union(own, load_schema("agent")) if name == "server" else own


@cache
def _definitions() -> Raw:
    found: Raw = shipped_yaml(__package__, "schema.yaml")["$defs"]
    return found


def union(first: Raw, second: Raw) -> Raw:
    """Return a schema with the keys of both, those of the first before the others."""
    return {**first, "properties": {**first["properties"], **second["properties"]}}


# --- what is wrong ------------------------------------------------------------------------


def find_faults(data: object, schema: Raw, steps: Steps = ()) -> Iterator[Fault]:
    """Yield unknown keys and values of a wrong type; null counts as absent.  ``steps`` lead to the data."""
    if data is None or data == {}:
        return  # most specs have no ``config``, and need not import jsonschema
    for error in validator_class()(schema).iter_errors(data):
        path = (*steps, *error.absolute_path)
        if error.validator == "type":
            yield _wrong_type(error.instance, path, error.schema)
        else:
            known = error.schema["properties"]
            for name in (str(each) for each in error.instance if each not in known):
                free = [each for each in known if each not in error.instance]  # no fix makes a duplicate
                fix = suggest(name, free) or _move(tuple(error.absolute_path), name, data, schema) or "remove it"
                yield Fault((*path, name), "unknown key", fix, Code.SPEC_UNKNOWN_KEY)


@cache
def validator_class() -> Any:
    """Return a validator that accepts null everywhere and the types that Python reads YAML into."""
    from jsonschema import Draft202012Validator, ValidationError, validators  # takes long to load

    extend: Any = validators.extend  # which has no types

    def check_type(validator: Any, types: Any, value: object, schema: Raw) -> Iterator[Exception]:
        if value is not None:
            yield from Draft202012Validator.VALIDATORS["type"](validator, types, value, schema)
        if schema.get("format") == INT32 and isinstance(value, int) and not -(2**31) <= value < 2**31:
            yield ValidationError("")

    checks: dict[str, Callable[[object, object], bool]] = {
        "string": lambda _, value: isinstance(value, str | Secret),
        "integer": lambda _, value: isinstance(value, int) and not isinstance(value, bool) and -LARGE <= value < LARGE,
        "array": lambda _, value: isinstance(value, list | tuple),
        "object": lambda _, value: isinstance(value, Mapping),
    }
    types = Draft202012Validator.TYPE_CHECKER.redefine_many(checks)
    return extend(Draft202012Validator, {"type": check_type}, type_checker=types)


def _wrong_type(value: object, steps: Steps, schema: Raw) -> Fault:
    """Return the fault, without the value when it is long or may be or contain a secret."""
    hidden = _holds_secret(schema) or isinstance(hide(value, str(steps[-1]) if steps else ""), Secret)
    shown = "the value" if hidden else repr(value)
    bits = 32 if schema.get("format") == INT32 else 64
    if isinstance(value, int) and not isinstance(value, bool) and schema.get("type") == "integer":
        return Fault(steps, f"{shown} needs more than {bits} bits", "write a smaller number")
    if isinstance(value, Mapping | list | tuple):
        shown = "a mapping" if isinstance(value, Mapping) else "a list"
    return Fault(steps, f"{shown} is not {schema['title']}", f"write {schema['title']}")


def _holds_secret(schema: Raw) -> bool:
    """Whether a value, or a part of it, is a secret: somebody may write a login in the place of a list of logins."""
    inner = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return SECRET in schema or any(_holds_secret(each) for each in inner if isinstance(each, Mapping))


def _move(steps: Steps, name: str, data: object, schema: Raw) -> str:
    """Return the fix for a key that belongs into a mapping next to its own; empty if there is no such mapping.

    Somebody has indented it wrongly.  That a key of the same name exists elsewhere says nothing: the place has to be
    the parent, a child or a sibling, to accept the value, and to have none yet.  A text fits in too many places, so
    the mapping has to be there, too.
    """
    value = value_at(data, (*steps, name))
    near = {place for place in _places(name, schema) if place and _distance(steps, place) <= 2}
    if not isinstance(value, Mapping):
        near = {each for each in near if isinstance(value_at(data, each), Mapping)}
    fitting = [
        each
        for each in near
        if value_at(data, (*each, name)) is None and not any(find_faults({name: value}, _schema_at(schema, each)))
    ]
    return f"move it to {dotted(fitting[0])}" if len(near) == len(fitting) == 1 else ""


def _distance(one: Steps, other: Steps) -> int:
    """Return how many mappings up and down lead from a place to another."""
    shared = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return len(one) + len(other) - 2 * shared


def _schema_at(schema: Raw, steps: Steps) -> Raw:
    for step in steps:
        schema = schema["items"] if isinstance(step, int) else schema["properties"][step]
    return schema


def _places(name: str, schema: Raw, steps: Steps = ()) -> Iterator[Steps]:
    """Yield the paths of all mappings that have such a key."""
    for key, inner in schema.get("properties", {}).items():
        if key == name:
            yield steps
        yield from _places(name, inner, (*steps, key))
    if "items" in schema:
        yield from _places(name, schema["items"], (*steps, 0))


# --- data by its schema -------------------------------------------------------------------


def map_values(data: object, schema: Raw, change: Callable[[object, Raw, Steps], object], steps: Steps = ()) -> object:
    """Return data with each value changed that the schema does not divide further; unknown keys stay."""
    if isinstance(data, Mapping) and "additionalProperties" in schema:
        return {
            name: map_values(each, _inner(schema, name), change, (*steps, str(name))) for name, each in data.items()
        }
    if isinstance(data, list | tuple) and "items" in schema:
        return [map_values(each, schema["items"], change, (*steps, index)) for index, each in enumerate(data)]
    return change(data, schema, steps)


def _inner(schema: Raw, name: object) -> Raw:
    """Return the schema of the value of a key; an empty one for an unknown key."""
    found: Raw = schema.get("properties", {}).get(name) or schema["additionalProperties"] or {}
    return found


def hide_secrets(data: object, schema: Raw) -> object:
    """Return data with all secret strings and numbers as ``Secret``."""

    def change(value: object, of: Raw, _: Steps) -> object:
        if is_variable(of):
            return hide_variable(value) if isinstance(value, str) else value
        return _hide(value) if SECRET in of else value

    return map_values(data, schema, change)


def _hide(data: object) -> object:
    def hidden(part: object) -> object:
        return Secret(str(part)) if isinstance(part, str | int | float) and not isinstance(part, bool) else part

    return rewrite(data, hidden)


def sort_keys(data: Any, schema: Raw) -> Any:
    """Return data with its keys in the schema's order, followed by those that the schema does not name."""
    if isinstance(data, Mapping) and "additionalProperties" in schema:
        known = [name for name in schema.get("properties", ()) if name in data]
        return {name: sort_keys(data[name], _inner(schema, name)) for name in dict.fromkeys([*known, *data])}
    if isinstance(data, list | tuple) and "items" in schema:
        return [sort_keys(each, schema["items"]) for each in data]
    return data


def merge(first: Raw, second: Raw) -> Values:
    """Return both as one; where both have a mapping, those are merged, else the value of the first stays."""
    merged = {**first, **{name: each for name, each in second.items() if name not in first}}
    for name in first.keys() & second.keys():
        if isinstance(first[name], Mapping) and isinstance(second[name], Mapping):
            merged[name] = merge(first[name], second[name])
    return merged


# --- rke2 -------------------------------------------------------------------------------------


SAME_ON_SERVERS = (
    "agent-token",
    "cluster-cidr",
    "service-cidr",
    "cluster-dns",
    "cluster-domain",
    "disable-cloud-controller",
    "disable-kube-proxy",
    "egress-selector-mode",
)
"""Keys with the same value on all servers."""

ON_SERVERS = (
    *("audit-policy-file", "pod-security-admission-config-file"),
    *(
        f"{component}-{what}"
        for component in ("kube-apiserver", "kube-scheduler", "kube-controller-manager", "etcd")
        for what in ("image", "extra-mount", "extra-env")
    ),
    *(f"cloud-controller-manager-{what}" for what in ("image", "extra-mount", "extra-env")),
)
"""Keys that agents accept, of components that only servers run (rancher/rke2 1.36, pkg/cli/cmds/root.go)."""


def keys_of_config(role: Literal["server", "agent"]) -> frozenset[str]:
    """Return the keys of a cluster's config that its servers or agents get."""
    return frozenset(load_schema(role)["properties"]) - (frozenset() if role == "server" else {*ON_SERVERS})


K3S_KEYS = {
    "cluster-init": "remove it: the first server is the one without the key server",
    "flannel-backend": "write cni: flannel",
    "no-flannel": "write cni: none",
    "flannel-iface": "remove it, or set it in the HelmChartConfig of the plugin",
    "flannel-conf": "remove it, or set it in the HelmChartConfig of the plugin",
    "https-listen-port": "remove it: the API listens at port 6443",
    "advertise-port": "remove it: the API listens at port 6443",
    "docker": "remove it: RKE2 uses containerd",
    "disable-helm-controller": "remove it: RKE2 needs the Helm controller for its own components",
    "disable-network-policy": "choose a cni without network policies",
    "disable-selinux": "write selinux",
    "kube-controller-arg": "write kube-controller-manager-arg",
    "kube-cloud-controller-arg": "write kube-cloud-controller-manager-arg",
    "no-deploy": "write disable",
    "cluster-secret": "write token",
    "default-local-storage-path": "remove it: RKE2 has no local storage provider",
    "rootless": "remove it: RKE2 runs as root",
    "prefer-bundled-bin": "remove it: RKE2 contains its own programs",
    "disable-apiserver-lb": "remove it",
    "image-service-endpoint": "remove it",
    "vpn-auth": "remove it",
    "vpn-auth-file": "remove it",
}
"""Keys of K3s that RKE2 refuses or ignores, and the fix for each."""

_SINCE = {
    20: "airgap-extra-registry cloud-controller-manager-image cni disable-kube-proxy etcd-arg etcd-expose-metrics "
    "etcd-s3-insecure etcd-s3-timeout etcd-snapshot-compress image-credential-provider-bin-dir "
    "image-credential-provider-config kube-proxy-image lb-server-port service-node-port-range",
    21: "control-plane-resource-limits control-plane-resource-requests",
    22: "egress-selector-mode enable-pprof",
    23: "enable-servicelb servicelb-namespace",
    24: "control-plane-probe-configuration helm-job-image tls-san-security with-node-id",
    25: "kube-cloud-controller-manager-arg pod-security-admission-config-file",
    26: "default-runtime disable-default-registry-endpoint embedded-registry",
    27: "datastore-cafile datastore-certfile datastore-endpoint datastore-keyfile etcd-s3-config-secret etcd-s3-proxy "
    "supervisor-metrics write-kubeconfig-group",
    29: "etcd-s3-session-token etcd-snapshot-reconcile-interval node-external-dns node-internal-dns "
    "node-name-from-cloud-provider-metadata nonroot-devices",
    30: "etcd-s3-bucket-lookup-type secrets-encryption-provider",
    31: "etcd-s3-retention ingress-controller",
    32: "prime",
    33: "helm-controller-arg",
    36: "write-kubeconfig-name",  # rancher/rke2 482458938, which is after v1.36.4-rc1
}
_PODS = ("kube-apiserver", "kube-scheduler", "kube-controller-manager", "kube-proxy", "etcd")
SINCE = {name: minor for minor, names in _SINCE.items() for name in names.split()} | {
    f"{name}-extra-{what}": 21 for name in _PODS for what in ("mount", "env")
}
"""The first minor version of RKE2 that has a key of config.yaml (pkg/cli/cmds in the last tag of each)."""
