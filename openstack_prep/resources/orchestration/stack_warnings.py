"""The secrets of a stack that Heat would show to every reader of its project, by rules that need no cloud.

Heat shows all properties of all resources, in their events, and metadata and outputs: see heat_flow.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from openstack_prep.resources.heat.heat_flow import NOT_EMPTY, Flow
from openstack_prep.resources.heat.heat_package import SECRETS_IMAGE, Package
from openstack_prep.resources.orchestration.stack_inputs import Inputs
from openstack_prep.resources.orchestration.stack_secrets import SecretsImage

RKE2 = "shipped:rke2-cluster.yaml"
TOKENS = {
    "token": "Heat makes one, and shows it to every reader of the project",
    "agent_token": "agents join with the token of the servers, and so may read all that etcd has",
}
"""Secrets that a cluster of RKE2 does without, and what happens then."""
MOST = 3
"""Number of places that a warning names."""


def list_shown(stack: Inputs, package: Package, images: Collection[SecretsImage]) -> Iterator[str]:
    """Yield a warning per secret that reaches what Heat shows, unless an image holds it."""
    named = {image.parameter for image in images}
    held = {name for image in images for name in image.secrets}
    flow = Flow(package.template, {**stack.given, **dict.fromkeys(stack.secrets, NOT_EMPTY)})
    disabled = [name for name in package.secret_images if name in stack.given.keys() - named]
    for name in sorted(stack.secrets.keys() - held):
        if name in package.parameters.keys() - package.hidden:
            yield f"parameter {name} is not hidden in the template, so Heat shows its value; add hidden: true to it"
        elif places := list(dict.fromkeys(flow.places(name))):
            more = f" and {len(places) - MOST} more places" if len(places) > MOST else ""
            fix = f"hand it to files of servers by a parameter with the tag {SECRETS_IMAGE} (docs/kubernetes.md)"
            if disabled:
                fix = f"omit {' and '.join(disabled)}"
            yield (
                f"parameter {name} reaches {', '.join(places[:MOST])}{more} of the template, "
                f"which Heat shows to every reader of the project; {fix}"
            )


def list_unset(stack: Inputs) -> Iterator[str]:
    """Yield a warning per token that a cluster of RKE2 should have."""
    if stack.template != RKE2:
        return
    for name, consequence in TOKENS.items():
        if name not in stack.secrets:
            file = f"{stack.name}/{name.replace('_', '-')}"
            yield (
                f"secret_parameters.{name} is not set: {consequence}; for a new cluster, set {name}: "
                f"{{generate: {file}}}; for one that exists, see docs/kubernetes.md"
            )
