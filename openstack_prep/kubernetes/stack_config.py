"""The configuration of RKE2 in the parameters of a stack: what really reaches the nodes.

Sources: heat_templates/rke2-cluster.yaml, whose parameters server_config and agent_config override what the template
writes into config.yaml; rancher/wharfie pkg/registries (registries.go) for registries.yaml.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake
from openstack_prep.base.raw import Raw
from openstack_prep.base.suggestion import suggest
from openstack_prep.core.model import Context

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
REGISTRY_KEYS = ("mirrors", "configs", "auths")


def list_mistakes(context: Context) -> Iterator[Mistake]:
    """Yield what is wrong with the configuration in the parameters of each stack with nodes of RKE2."""
    for each in context.resources:
        if each.kind == "stack" and getattr(each, "template", None) == TEMPLATE:
            (stack, *_) = each.resolve(context)
            has_cluster = any(getattr(other, "stack_key", None) == stack.key for other in context.resources)
            yield from _of_stack(stack, has_cluster=has_cluster)  # type: ignore[arg-type]


def _of_stack(stack: Stack, *, has_cluster: bool) -> Iterator[Mistake]:
    """Yield the mistakes of one stack; those of its networks are reported by its cluster if it has one."""
    from openstack_prep.kubernetes.keys.schema import dotted, load_schema  # few specs have such a stack
    from openstack_prep.kubernetes.rke2_rules import document_faults
    from openstack_prep.resources.heat.heat_package import Package

    if not isinstance(stack.package, Package):
        return
    declared = {name: each.get("default") for name, each in stack.package.parameters.items()} | stack.given
    for parameter, form in (("server_config", "server"), ("agent_config", "agent")):
        config = declared.get(parameter)
        if not isinstance(config, Mapping):  # another type, which the stack reports, or JSON as text
            continue
        values = {name: declared[_parameter(name)] or None for name in SAME} if form == "server" else {}
        taken = dict(_taken(config, values))
        for name, (what, fix) in taken.items():
            yield _mistake(stack, parameter, f"{parameter}.{name}: {what}", fix, Code.CLUSTER_STACK)
        faults = document_faults({**values, **config}, load_schema("server" if form == "server" else "agent"))
        for fault in faults:
            name = str(fault.steps[0])
            if name in values and name not in config:  # the template's own, which its constraints and the cluster judge
                if fault.code == Code.CLUSTER_NETWORKS and not has_cluster:
                    what = f"{_parameter(name)}: {fault.what}"
                    yield _mistake(stack, _parameter(name), what, fault.fix, fault.code)
            elif name not in taken:
                what = f"{parameter}.{dotted(fault.steps)}: {fault.what}"
                yield _mistake(stack, parameter, what, fault.fix, fault.code)
    yield from _registries(stack, declared.get("registries"))


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


def _registries(stack: Stack, given: object) -> Iterator[Mistake]:
    for name in given if isinstance(given, Mapping) else ():
        if name not in REGISTRY_KEYS:
            fix = suggest(str(name), REGISTRY_KEYS) or f"write one of {', '.join(REGISTRY_KEYS)}"
            yield _mistake(stack, "registries", f"registries.{name}: unknown key", fix, Code.SPEC_UNKNOWN_KEY)


def _mistake(stack: Stack, parameter: str, what: str, fix: str, code: str) -> Mistake:
    return Mistake.about(stack.key, f"parameters: {what}", fix, parameter=parameter, code=code)
