"""Checks of a config.yaml: what RKE2 refuses at its start, or silently ignores.

Sources: RKE2 v1.35.7+rke2r1 (pkg/cli/cmds/server.go, pkg/cli/cmds/profile_linux.go, pkg/rke2/rke2_linux.go).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from openstack_prep.base.codes import Code
from openstack_prep.base.raw import Raw
from openstack_prep.kubernetes.keys.rke2_keys import K3S_KEYS
from openstack_prep.kubernetes.keys.schema import Fault, Steps, find_faults, load_schema, map_values, suggest, union

PLUGINS = ("canal", "calico", "cilium", "flannel", "none")


def _as_flag(value: object, schema: Raw, steps: Steps) -> object:
    """Return the boolean or number that RKE2 reads from a string."""
    if schema.get("type") == "boolean" and value in ("true", "false"):
        return value == "true"
    return int(value) if schema.get("type") == "integer" and isinstance(value, str) and value.isdecimal() else value


def document_faults(data: object, schema: Raw) -> Iterator[Fault]:
    """Yield what is wrong with a config.yaml, with fixes for keys of K3s and for keys of servers on agents.

    RKE2 turns all keys into flags, so "true" and "5" are valid; KEY+ in a drop-in file appends to a list.
    """
    lists = {f"{name}+": each for name, each in schema["properties"].items() if "items" in each}
    adding = union({**schema, "properties": lists}, schema)
    for fault in find_faults(map_values(data, schema, _as_flag), adding):
        name = str(fault.steps[0]) if fault.steps else ""
        if fault.code != Code.SPEC_UNKNOWN_KEY:
            yield fault
        elif name in K3S_KEYS:
            yield Fault(fault.steps, f"RKE2 does not support {name}", K3S_KEYS[name])
        elif name in load_schema("server")["properties"]:
            yield Fault(fault.steps, "is a key of servers, and these nodes are agents", "remove it")
        else:
            yield fault
    of = data if isinstance(data, Mapping) else {}
    yield from _misread(of)
    if of.get("etcd-s3") is True and not (of.get("etcd-s3-bucket") or of.get("etcd-s3-config-secret")):
        yield Fault(("etcd-s3-bucket",), "is missing, and etcd-s3 requires it", "add it", Code.SPEC_MISSING_KEY)


def _misread(of: Mapping[str, object]) -> Iterator[Fault]:
    """Yield values that RKE2 does not support, or that YAML reads as something else."""
    cni = of.get("cni")
    plugins = cni.split(",") if isinstance(cni, str) else cni
    for each in plugins if isinstance(plugins, list | tuple) else ():
        if str(each).strip() not in ("multus", *PLUGINS):
            fix = suggest(str(each), PLUGINS) or f"write one of {', '.join(PLUGINS)}"
            yield Fault(("cni",), f"RKE2 does not support {str(each).strip()!r}", fix)
    server = of.get("server")
    if server and not re.fullmatch(r"https://[^/]+", str(server)):
        yield Fault(("server",), f"{server!r} is not the URL of a server", "write one such as https://10.0.0.5:9345")
    mode = of.get("write-kubeconfig-mode")
    if mode in (0o600, 0o640, 0o644, 0o660, 0o664, 0o666):  # YAML reads 0644 as 420
        yield Fault(("write-kubeconfig-mode",), f"is the number {mode} in YAML", f'write "{mode:04o}" in quotes')
