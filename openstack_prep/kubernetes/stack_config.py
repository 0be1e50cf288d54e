"""The configuration of RKE2 in the parameters of a stack: what really reaches the nodes.

Sources: heat_templates/rke2-cluster.yaml, whose parameters server_config and agent_config override what the template
writes into config.yaml; rancher/wharfie pkg/registries (registries.go) for registries.yaml.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, PrepError
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.raw import Raw, Values, dotted, walk
from openstack_prep.base.secret import Secret
from openstack_prep.base.secret_forms import has_url_secrets
from openstack_prep.core.model import Context, Key
from openstack_prep.core.resource import resolve
from openstack_prep.kubernetes import rke2_rules
from openstack_prep.kubernetes.agent_pools import AgentPool, pools_in
from openstack_prep.kubernetes.codes import ClusterCode
from openstack_prep.kubernetes.keys.schema import hide_secrets, load_schema
from openstack_prep.kubernetes.nodes import taint_warning
from openstack_prep.kubernetes.registries import registry_faults
from openstack_prep.kubernetes.rke2 import NO_PODS
from openstack_prep.kubernetes.rke2_rules import document_faults, revealed
from openstack_prep.kubernetes.versions import VERSION, check_version
from openstack_prep.resources.addresses.node_addresses import DeclaredAddresses
from openstack_prep.resources.addresses.stack_addresses import extra_findings
from openstack_prep.resources.heat.flow import TRUTH, Conditions
from openstack_prep.resources.heat.parameters import mapping_of

if TYPE_CHECKING:
    from openstack_prep.resources.orchestration.stack import Stack

TEMPLATE = "shipped:rke2-cluster.yaml"
OF_TEMPLATE = {
    "server": "the template: the address of the API",
    "token": "secret_parameters.token",
    "agent-token": "secret_parameters.agent_token",
}
"""Keys that the template sets, because a node joins by them."""
SAME = ("cluster-cidr", "service-cidr", "cni", "ingress-controller", "profile")
"""Keys that have a parameter as well, by which the template also decides about rules, kernel settings and charts."""
RKE2_VERSION = "rke2_version"
PARAMETERS = frozenset({RKE2_VERSION, "server_config", "agent_config"})
"""Parameters by which a template with nodes of RKE2 is known; copies of the shipped one have them as well."""
FUNCTIONS = frozenset(
    (
        *("and", "contains", "digest", "equals", "filter", "get_attr", "get_file", "get_param", "get_resource", "if"),
        *("list_concat", "list_concat_unique", "list_join", "make_url", "map_merge", "map_replace", "not", "or"),
        *("repeat", "resource_facade", "str_replace", "str_replace_strict", "str_replace_vstrict", "str_split", "yaql"),
    )
)
"""Functions of Heat (Heat 27.0.0, heat/engine/hot/template.py)."""
EXTRA = "extra_addresses"
"""The parameter with further addresses of all nodes."""
TAINTING = ("node-taint", "kubelet-arg")
"""Keys with taints."""
TOKENS = {
    "token": "Heat makes one, and shows it to every reader of the project",
    "agent_token": "agents join with the token of the servers, and so may read all that etcd has",
}
"""Secrets that a cluster of RKE2 does without, and what happens then."""
Role = Literal["server", "agent"]
NETWORKS = {"cluster_cidr", "service_cidr", "cluster_dns"}
"""Parameters that are judged together, with RKE2's defaults for those that are missing."""


class Configuration(NamedTuple):
    """A template with nodes of RKE2, and the values that its parameters have."""

    template: Raw
    declared: Raw
    given: Raw
    """Those that are no defaults."""
    resource: str = ""
    """The resource of the stack that has this template; empty for the stack's own."""

    @property
    def pools(self) -> list[AgentPool]:
        return pools_in(self.declared, self.template.get("parameters") or {})


class StackFault(NamedTuple):
    """What is wrong in one of the parameters, or in the template itself."""

    parameter: str
    what: str
    fix: str
    code: str


def list_mistakes(context: Context) -> Iterator[Mistake]:
    """Yield what is wrong with the configuration in the inputs of each stack with nodes of RKE2."""
    for resource in context.resources:
        if resource.kind == "stack" and resource.given.get(EXTRA):  # type: ignore[attr-defined]
            yield from _of_addresses(resource, context)  # type: ignore[arg-type]
        if resource.kind == "stack" and _has_rke2(resource):  # type: ignore[arg-type]
            (stack, *_) = resolve(resource, context)
            has_cluster = any(getattr(other, "stack_key", None) == stack.key for other in context.resources)
            for found in _of_stack(stack, has_cluster=has_cluster):  # type: ignore[arg-type]
                place = {"parameter": found.parameter} if found.parameter else {"field": "template"}
                what = f"{'parameters' if found.parameter else 'template'}: {found.what}"
                yield Mistake.about(stack.key, what, found.fix, code=found.code, **place)


def list_warnings(context: Context) -> Iterator[tuple[Key, str]]:
    """Yield what is valid for nodes of RKE2 in the inputs of each stack, but insecure, or without room for a cluster.

    Tokens are also those of a template that has not all ``PARAMETERS``.
    """
    for resource in context.resources:
        if resource.kind == "stack" and RKE2_VERSION in getattr(resource.package, "parameters", ()):  # type: ignore[attr-defined]
            (stack, *_) = resolve(resource, context)
            yield from ((resource.key, text) for text in _unset_tokens(stack))  # type: ignore[arg-type]
        if resource.kind == "stack" and _has_rke2(resource):  # type: ignore[arg-type]
            (stack, *_) = resolve(resource, context)
            for configuration in _configurations_of(stack):  # type: ignore[arg-type]
                place = f"resources.{configuration.resource}.properties." if configuration.resource else ""
                yield from ((resource.key, f"{place}{text}") for text in _warnings(configuration))


def _unset_tokens(stack: Stack) -> Iterator[str]:
    """Yield the tokens of a template that the spec does not set."""
    assert not isinstance(stack.package, PrepError)
    for name in (token for token in TOKENS if token in stack.package.parameters and token not in stack.secrets):
        file = f"{stack.name}/{name.replace('_', '-')}"
        yield (
            f"secret_parameters.{name} is not set: {TOKENS[name]}; for a new cluster, set {name}: "
            f"{{generate: {file}}}; for one that exists, see docs/kubernetes.md"
        )


def _warnings(configuration: Configuration) -> Iterator[str]:
    declared, pools = configuration.declared, configuration.pools
    for parameter, _ in _config_parameters(pools):
        config = mapping_of(declared.get(parameter)) or {}
        # the taints of servers are judged with those of agents
        yield from (f"{parameter}: {text}" for text in rke2_rules.warnings(config, is_server=False))
    if ROOM < (size := _size(mapping_of(declared.get("extra_files")) or {})) <= USER_DATA:
        what = f"they take {size} bytes of the {USER_DATA} that user data may have, beside the files of the template"
        yield f"extra_files: {what}; Nova may refuse new nodes: put large files into their image"
    taints = _taints_of_nodes(configuration)
    yield from taint_warning(taints)
    without_agents = str(declared.get("agent_count")) == "0" and all(pool.is_empty for pool in pools)
    if without_agents and not any(taints) and TRUTH.get(str(configuration.given.get("server_taint")).lower()) is True:
        what = "server_taint: true has no effect while agent_count is 0"
        yield f"{what}; if agents of another stack join, write node-taint: [{NO_PODS}] into server_config"


def _taints_of_nodes(configuration: Configuration) -> list[list[str]]:
    """Return the taints of each distinct kind of nodes; none if the template decides them by functions of Heat."""
    found: list[list[str]] = []
    of_agents: Values = {}
    for role, parameter in (("server", "server_config"), ("agent", "agent_config")):
        number = str(configuration.declared.get(f"{role}_count", ""))
        base = _merged(configuration, parameter)
        if base is None or not number.isdecimal():
            return []
        of_agents = base
        own = mapping_of(configuration.declared.get(f"{role}_node_configs")) or {}
        nodes = [{**base, **each} for each in own.values() if isinstance(each, Mapping)]
        found += [rke2_rules.taints_of(each) for each in [*nodes, *[base] * (int(number) > len(nodes))][: int(number)]]
    for pool in configuration.pools:
        if not pool.number.isdecimal():
            return []
        found += [rke2_rules.taints_of({**of_agents, **pool.config})] * (not pool.is_empty)
    return found


def _merged(configuration: Configuration, parameter: str) -> Values | None:
    """Return the keys of config.yaml that decide about taints, as a template merges them; None if it is not known."""
    conditions = Conditions(configuration.template, configuration.declared)
    found: Values = {}
    for part in _merged_parts(configuration.template, parameter):
        choice = part.get("if")
        branches = conditions.branches(choice) if isinstance(choice, list) else [part]
        if part == {"get_param": parameter}:
            branches = [mapping_of(configuration.declared.get(parameter)) or {}]
        taints = [branch.get("node-taint") for branch in branches if isinstance(branch, Mapping)]
        if any(taints) and (len(branches) > 1 or _has_functions(taints)):
            return None
        for branch in branches:
            found |= {name: value for name, value in branch.items() if name in TAINTING} if len(branches) == 1 else {}
    return found


def _of_addresses(stack: Stack, context: Context) -> Iterator[Mistake]:
    """Yield the further addresses of the nodes that are not free in their subnet."""
    declared = DeclaredAddresses.of(context.resources, stack)
    for what, fix in extra_findings(stack, declared, for_plan=context.for_plan):
        where = f"parameters: {EXTRA}: {what}"
        yield Mistake.about(stack.key, where, fix, code=Code.SPEC_CONTRADICTION, parameter=EXTRA)


def _has_rke2(stack: Stack) -> bool:
    package = stack.package
    return not isinstance(package, PrepError) and any(_configurations(package.template, {}, package.files))


def _of_stack(stack: Stack, *, has_cluster: bool) -> Iterator[StackFault]:
    """Yield the mistakes of one stack; those of its networks are reported by its cluster if it has one."""
    for configuration in _configurations_of(stack):
        for found in _of_configuration(configuration, has_cluster=has_cluster):
            if configuration.resource:  # its parameters are properties in the template
                found = found._replace(parameter="", what=f"resources.{configuration.resource}.properties.{found.what}")
            yield found


def _configurations_of(stack: Stack) -> Iterator[Configuration]:
    """Yield the templates with nodes of RKE2 in a stack, with the values that the spec gives their parameters."""
    assert not isinstance(stack.package, PrepError)
    given = {**stack.given, **(stack.secret_parameters or {})}
    return _configurations(stack.package.template, given, stack.package.files)


def _configurations(template: Raw, given: Raw, files: Mapping[str, str | bytes]) -> Iterator[Configuration]:
    """Yield the templates with nodes of RKE2 in a stack: a copy of the shipped one is known by its parameters."""
    parameters = (template.get("parameters") or {}).items()
    declared = {name: each.get("default") for name, each in parameters if isinstance(each, Mapping)} | dict(given)
    if declared.keys() >= PARAMETERS:
        yield Configuration(template, declared, given)
    for name, (kind, properties) in _resources(template):
        inner = _parsed(files.get(kind, ""))
        parameters = inner.get("parameters")
        if not isinstance(parameters, Mapping) or not parameters.keys() >= PARAMETERS:
            continue
        known = {key: value for key, value in _resolved(properties, declared).items() if not _has_functions(value)}
        unknown = {str(key) for key in properties} - known.keys()  # their defaults do not count either
        if unknown & NETWORKS:
            unknown |= NETWORKS
        for found in _configurations(inner, known, {}):
            left = {key: value for key, value in found.declared.items() if key not in unknown}
            yield found._replace(resource=name, declared=left)


def _resources(template: Raw) -> Iterator[tuple[str, tuple[str, Raw]]]:
    """Yield type and properties of each resource, also of those that a group repeats."""
    resources = template.get("resources")
    for name, each in resources.items() if isinstance(resources, Mapping) else ():
        properties = each.get("properties") if isinstance(each, Mapping) else None
        if isinstance(properties, Mapping):
            yield str(name), (str(each.get("type")), properties)
            repeated = properties.get("resource_def")
            if isinstance(repeated, Mapping) and isinstance(repeated.get("properties"), Mapping):
                yield f"{name}.properties.resource_def", (str(repeated.get("type")), repeated["properties"])


def _parsed(file: str | bytes) -> Raw:
    """Return a nested template, which heatclient has made JSON; empty for any other file."""
    try:
        found = json.loads(file)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, Mapping) else {}


def _resolved(properties: Raw, declared: Raw) -> Values:
    """Return properties with the values of parameters that they take as they are."""
    found = {}
    for name, value in properties.items():
        found[str(name)] = value
        parameter = value["get_param"] if isinstance(value, Mapping) and value.keys() == {"get_param"} else None
        if isinstance(parameter, str) and declared.get(parameter) is not None:
            found[str(name)] = declared[parameter]
    return found


def _has_functions(value: object) -> bool:
    """Whether a value has a function of Heat, which only Heat evaluates."""
    return any(isinstance(part, Mapping) and part.keys() & FUNCTIONS for part in walk(value))


def _of_configuration(configuration: Configuration, *, has_cluster: bool) -> Iterator[StackFault]:
    declared = configuration.declared
    minor = _minor(declared)
    for parameter, form in _config_parameters(configuration.pools):
        schema = load_schema(form)
        written = dict(_written(configuration.template, parameter))
        for fault in document_faults(written, schema, minor):
            yield StackFault("", f"{dotted(fault.steps)} beside {parameter}: {fault.what}", fault.fix, fault.code)
        config = declared.get(parameter)
        if isinstance(config, Sequence) and not isinstance(config, str):  # valid JSON for Heat, and no config.yaml
            yield StackFault(
                parameter, f"{parameter} is a list", "write a mapping with the keys of config.yaml", ClusterCode.STACK
            )
        if not isinstance(config, Mapping):  # another type, which the stack reports, or JSON as text
            continue
        names = [name for name in SAME if _parameter(name) in declared]
        values = {name: declared[_parameter(name)] or None for name in names} if form == "server" else {}
        taken = dict(_taken(config, values))
        for name, (what, fix) in taken.items():
            yield StackFault(parameter, f"{parameter}.{name}: {what}", fix, ClusterCode.STACK)
        yield from _shown_to_readers(declared, parameter, form)
        for fault in document_faults({**values, **config}, schema, minor):
            name = str(fault.steps[0])
            if name in values and name not in config:  # the template's own, which its constraints and the cluster judge
                if fault.code == ClusterCode.NETWORKS and not has_cluster:
                    yield StackFault(_parameter(name), f"{_parameter(name)}: {fault.what}", fault.fix, fault.code)
            elif name not in taken:
                yield StackFault(parameter, f"{parameter}.{dotted(fault.steps)}: {fault.what}", fault.fix, fault.code)
    yield from () if has_cluster else _version(declared.get("rke2_version"))
    yield from _pool_names(configuration.pools)
    yield from _registries(declared.get("registries"))
    yield from _extra_files(declared.get("extra_files"))


def _shown_to_readers(declared: Raw, parameter: str, form: Role) -> Iterator[StackFault]:
    """Yield the secrets among keys of config.yaml that Heat shows to every reader of the project."""
    hidden = f"{form}_secret_config"
    parts = {parameter: declared.get(parameter)}
    if parameter == f"{form}_config":
        nodes = mapping_of(declared.get(f"{form}_node_configs")) or {}
        parts |= {f"{form}_node_configs.{index}": config for index, config in nodes.items()}
    for place, config in parts.items() if hidden in declared else ():
        keys = hide_secrets(config, load_schema(form))
        for name, value in keys.items() if isinstance(keys, Mapping) else ():
            if any(isinstance(part, Secret) and not _is_plain_url(part.reveal()) for part in walk(value)):
                what = f"{place}.{name}: Heat would show this secret to every reader of the project"
                fix = f"write it into {hidden}, under secret_parameters"
                yield StackFault(place.partition(".")[0], what, fix, ClusterCode.STACK)


def _is_plain_url(text: str) -> bool:
    """Whether the value of a key for secrets is a URL without a login, such as that of a proxy."""
    return "://" in text and not has_url_secrets(text)


def _config_parameters(pools: Iterable[AgentPool]) -> Iterator[tuple[str, Role]]:
    """Yield the parameters with keys of config.yaml, and whose they are."""
    yield from (("server_config", "server"), ("agent_config", "agent"))
    yield from ((pool.parameter("config"), "agent") for pool in pools)


def _version(version: object) -> Iterator[StackFault]:
    """Yield what is wrong with a version that matches the template's constraint."""
    try:
        list(check_version(version) if isinstance(version, str) and VERSION.fullmatch(version) else ())
    except InvalidValue as error:
        yield StackFault("rke2_version", f"rke2_version: {version} {error.what}", error.fix, ClusterCode.CONFIG)


def _pool_names(listed: Iterable[AgentPool]) -> Iterator[StackFault]:
    """Yield pools that share a name with another pool: their nodes would have the same names."""
    pools = [each for each in listed if not each.is_empty]
    for index, pool in enumerate(pools):
        for other in [each for each in pools[:index] if each.name == pool.name]:
            what = f"{pool.parameter('name')}: {pool.name} is also the name of {other.group}"
            yield StackFault(pool.parameter("name"), what, "give each pool its own name", Code.STACK_PARAMETER)


def _minor(declared: Raw) -> int | None:
    """Return N of the Kubernetes 1.N that nodes install, if the version or the channel names it."""
    found = re.match(r"v1\.(\d{1,3})(\.|$)", str(declared.get("rke2_version") or declared.get("rke2_channel")))
    return int(found[1]) if found else None


def _written(value: object, parameter: str) -> Iterator[tuple[str, object]]:
    """Yield the keys with plain values that a template merges with a parameter, such as profile: cis."""
    for part in _merged_parts(value, parameter):
        if not part.keys() & FUNCTIONS:
            yield from ((str(key), inner) for key, inner in part.items() if not _has_functions(inner))


def _merged_parts(value: object, parameter: str) -> Iterator[Raw]:
    """Yield what a template merges with a parameter, in the order of the merge."""
    for part in walk(value):
        merged = part.get("map_merge") if isinstance(part, Mapping) else None
        if isinstance(merged, list) and {"get_param": parameter} in merged:
            yield from (each for each in merged if isinstance(each, Mapping))


def _taken(config: Raw, values: Raw) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the keys that the template sets, if their values differ, with what is wrong and the fix."""
    for name, of in OF_TEMPLATE.items():
        if name in config:
            yield name, (f"is set by {of}", "remove it")
    for name, value in values.items():
        if name in config and _items(config[name]) != _items(value):
            shown = ",".join(_items(value)) or "empty"
            fix = f"set parameter {_parameter(name)} instead"
            yield name, (f"differs from parameter {_parameter(name)}, which is {shown}", fix)


def _items(value: object) -> list[str]:
    """Return the items of a list, or of a text with commas, as Heat and RKE2 read them."""
    texts = value if isinstance(value, list | tuple) else [] if value is None else [value]
    return [item.strip() for text in texts for item in str(text).split(",") if item.strip()]


def _parameter(key: str) -> str:
    return key.replace("-", "_")


def _registries(given: object) -> Iterator[StackFault]:
    """Yield what is wrong with registries.yaml in a parameter; a hidden one is a text, which Heat reads as JSON."""
    content = revealed(given)
    if isinstance(content, str):
        try:
            content = json.loads(content or "{}")
        except (ValueError, RecursionError):
            return  # the stack reports it
    for fault in registry_faults(content):
        place = ".".join(filter(None, ("registries", dotted(fault.steps))))
        yield StackFault("registries", f"{place}: {fault.what}", fault.fix, fault.code)


OWN_FOLDERS = ("/var/lib/rke2-node/", "/etc/rancher/rke2/config.yaml.d/")
OWN_FILES = (
    "/etc/rancher/rke2/config.yaml",
    "/etc/rancher/rke2/registries.yaml",
    "/etc/systemd/system/rke2-node-ready.service",
)
"""What the template itself writes on the nodes."""
OWN_MANIFESTS = tuple(
    f"/var/lib/rancher/rke2/server/manifests/{name}.yaml" for name in ("kube-vip", "cloud-config", "openstack")
)
"""Manifests that the template itself writes on servers; RKE2 applies each file of this folder, whatever its name."""
INDEX = "%index%"
"""A ResourceGroup replaces this in all strings that its members get."""
USER_DATA = 65535 // 4 * 3
"""Bytes of user data before base64 (Nova 34.0.0, api/openstack/compute/schemas/servers.py)."""
ROOM = USER_DATA * 2 // 3
"""Bytes that are certainly left for further files beside the template's own, which take at most a third."""


def _extra_files(given: object) -> Iterator[StackFault]:
    """Yield what is wrong with files by path; cloud-init takes the path and the content as texts."""
    files = mapping_of(given) or {}
    for path, content in files.items():
        what = fix = ""
        # cloud-init writes the files in their order, and the last one of a path stays
        written = "/" + posixpath.normpath(str(path)).lstrip("/")
        if not str(path).startswith("/") or str(path).endswith("/"):
            what, fix = f"{path!r} is not the path of a file on a node", "write an absolute path"
        elif written in OWN_FILES or f"{written}/".startswith(OWN_FOLDERS):
            what, fix = f"{path} is a file of the template", "use server_config, agent_config or registries"
        elif written in OWN_MANIFESTS:
            what, fix = f"{path} is a file of the template", "give the manifest another name"
        elif not isinstance(content, str):
            what, fix = f"the content of {path} is not a text", "write it as a text, such as a block after |"
        elif INDEX in path or INDEX in content:  # Heat 27.0.1, resource_group.py, _handle_repl_val
            what = f"Heat replaces {INDEX} in {path} by the number of the node"
            fix = "put the file into the image of the nodes, or write it differently"
        if what:
            yield StackFault("extra_files", f"extra_files: {what}", fix, Code.STACK_PARAMETER)
    if (size := _size(files)) > USER_DATA:
        what = f"extra_files: they take {size} bytes of user data, of which Nova takes {USER_DATA}"
        yield StackFault("extra_files", what, "put large files into the image of the nodes", Code.STACK_PARAMETER)


def _size(files: Raw) -> int:
    """Return the bytes that files take as JSON, which the template writes into user data."""
    texts = {str(path): each for path, each in files.items() if isinstance(each, str)}
    return len(json.dumps([{"path": path, "permissions": "0600", "content": text} for path, text in texts.items()]))
