"""``rke render``: write the files of clusters from their existing stacks, by a spec or for one stack."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import yaml

from openstack_prep.base.errors import ConfigError
from openstack_prep.base.formats.foreign_text import parse_yaml
from openstack_prep.base.raw import Values
from openstack_prep.base.style import visible
from openstack_prep.cli.output import print_result, reading, style_of
from openstack_prep.cli.running import open_spec, run_plan
from openstack_prep.cli.spec import no_garbage
from openstack_prep.cloud.connection import Cloud, connect
from openstack_prep.kubernetes import clusters
from openstack_prep.spec import Spec, spec_of
from openstack_prep.verbs import api


def run(options: argparse.Namespace) -> int:
    if (options.spec is None) == (options.stack is None):
        raise ConfigError("rke render: exactly one of SPEC and --stack is required; pass SPEC or --stack NAME")
    if options.stack is None:
        cloud, spec = open_spec(options, options.spec)
        spec = spec.limited_to("rke_cluster", options.cluster)
    else:
        cloud, spec = _of_stack(options)
        if options.output is None:
            files = clusters.render_clusters(cloud, spec, jobs=options.jobs)[options.stack]
            print_result(options, _shown(files), {"files": files})
            return 0
    with reading(options):
        plan = api.plan(cloud, spec, allow_replace=options.allow_replace, jobs=options.jobs)
    plan.raise_for_refusals()
    if plan and options.format == "text":
        print(visible(plan.render(style_of(options, sys.stdout))))
    return run_plan(options, cloud, plan)


def _of_stack(options: argparse.Namespace) -> tuple[Cloud, Spec]:
    with no_garbage():
        cluster = {"name": options.stack, "stack": options.stack, "distribution": options.distribution}
        cluster |= {"directory": str(options.output or options.stack)}
        for each in options.set:
            _put(cluster, each)
        place = f"rke render --stack {options.stack}"
        name = f"render-{options.stack}"  # no spec's, so that its files are not taken for those of a spec
        spec = spec_of({"name": name, "rke_clusters": [cluster]}, place, Path.cwd())
        if spec.has_plain_secrets:  # the values of --set are the only ones
            what = "a value is a secret, and other users of this machine see arguments"
            raise ConfigError(f"--set: {what}; write it into a file, and {{file: PATH}} in its place")
        return connect(options.os_cloud), spec.limited_to("rke_cluster")


def _put(cluster: Values, given: str) -> None:
    """Set the value of KEY=VALUE, read as YAML, at a dotted key."""
    path, equals, text = given.partition("=")
    *parents, last = path.split(".")
    inner: object = cluster
    for name in parents:
        inner = inner.setdefault(name, {}) if isinstance(inner, dict) else None
    if not equals or not all((*parents, last)) or not isinstance(inner, dict):
        raise ConfigError(f"--set {given}: is not KEY=VALUE; write for example network_plugin=calico")
    try:
        inner[last] = parse_yaml(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"--set {path}: the value is not YAML: {' '.join(str(error).split())}") from None


def _shown(files: dict[str, str]) -> str:
    """Return the text of a single file, or of several files with a line for each name."""
    if len(files) == 1:
        return next(iter(files.values())).rstrip("\n")
    return "\n".join(f"# --- {name}\n{text}" for name, text in files.items()).rstrip("\n")
