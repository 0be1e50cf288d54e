"""Turn what is declared into the install-config of its release.

Source: the OpenShift installer's types; which name a release knows is in the table of ``releases``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from openstack_prep.base.raw import Values
from openstack_prep.base.secret import Secret
from openstack_prep.openshift.install_config import releases
from openstack_prep.openshift.install_config.model import Cluster, Contents
from openstack_prep.openshift.install_config.releases import FIELDS

HOST_PREFIX_IPV6 = 64  # the installer takes no other


def document(cluster: Cluster, contents: Contents) -> dict[str, object]:
    """Return the install-config as far as the release can say it, whether right or not.

    The pull secret stays a Secret in it.  Raises ValueError for a release that we do not know.
    """
    release = releases.minor(cluster.release)
    said = values(cluster, contents)
    written: dict[str, object] = {}
    for field in FIELDS:
        spelling = field.spelling(release)
        if field.of in said and spelling is not None:
            _put(written, spelling.path, spelling.shaped(said[field.of]))
    return written


def values(cluster: Cluster, contents: Contents) -> dict[str, object]:
    """Return all that is said, by our name for it, with what every install-config says."""
    said = dict(_flat("", cluster)) | dict(_flat("", contents))
    said["api_version"] = "v1"
    said["control_plane.name"], said["compute.name"] = "master", "worker"
    for pool in ("control_plane", "compute"):  # the installer's CRD wants it there, though its program does not
        if cluster.machines.flavor is not None:
            said.setdefault(f"{pool}.flavor", cluster.machines.flavor)
    said["network_type"] = cluster.network_type or default_network_type(cluster.release)
    said["cluster_networks"] = [
        {"cidr": each, "hostPrefix": HOST_PREFIX_IPV6 if ":" in each else cluster.host_prefix}
        for each in cluster.cluster_networks
    ]
    if contents.pull_secret is not None:
        said["pull_secret"] = compact(contents.pull_secret)
    return said


def default_network_type(release: str) -> str:
    return "OVNKubernetes" if releases.minor(release) >= releases.OVN_SINCE else "OpenShiftSDN"


def _flat(prefix: str, part: Any) -> Iterator[tuple[str, Any]]:
    """Yield every field that says something, by its dotted name."""
    for field in fields(part):
        value, name = getattr(part, field.name), prefix + field.name
        if is_dataclass(value) and name != "machines_network":  # that one is a value
            yield from _flat(f"{name}.", value)
        elif value not in (None, (), {}):
            yield name, dict(value) if isinstance(value, Mapping) else value


def compact(secret: Secret) -> Secret:
    """Return a pull secret on one line; one that is not JSON stays as it is."""
    try:
        return Secret(json.dumps(json.loads(secret.reveal()), separators=(",", ":")))
    except (ValueError, RecursionError):
        return secret


def nested(leaves: Mapping[str, object]) -> Values:
    """Return the document that has values at these dotted paths, stars in place of what nobody may see."""
    document: Values = {}
    for path, value in leaves.items():
        _put(document, path, str(value) if isinstance(value, Secret) else value)
    return document


def _put(document: Values, path: str, value: object) -> None:
    *parents, last = path.split(".")
    for name in parents:
        if name.endswith("[]"):
            document = document.setdefault(name.removesuffix("[]"), [{}])[0]
        else:
            document = document.setdefault(name, {})
    document[last] = value
