"""Convert a cluster into the install-config of its release.

Source: the OpenShift installer's types; the table in ``releases`` has the names of each release.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from openstack_prep.base.raw import Values
from openstack_prep.base.secret import Secret
from openstack_prep.base.secret_forms import has_url_secrets
from openstack_prep.openshift.install_config import releases
from openstack_prep.openshift.install_config.fields import FIELDS
from openstack_prep.openshift.install_config.model import FileContents, InstallConfigFields

HOST_PREFIX_IPV6 = 64  # the only value that the installer accepts


def document(cluster: InstallConfigFields, contents: FileContents) -> dict[str, object]:
    """Return the install-config, without fields that the release lacks, and without validation.

    The pull secret stays a Secret.  Raises InvalidValue for an unsupported release.
    """
    release, previews = releases.minor(cluster.release), has_previews(cluster)
    declared = values(cluster, contents)
    written: dict[str, object] = {}
    for field in FIELDS:
        spelling = field.spelling(release, previews=previews)
        if field.of in declared and spelling is not None:
            _put(written, spelling.path, spelling.shaped(declared[field.of]))
    return written


def values(cluster: InstallConfigFields, contents: FileContents) -> dict[str, object]:
    """Return all values by their names in a spec, with the constants of every install-config."""
    declared = dict(_flat("", cluster)) | dict(_flat("", contents))
    declared["api_version"] = "v1"
    declared["control_plane.name"], declared["compute.name"] = "master", "worker"
    for pool in ("control_plane", "compute"):  # required by the installer's CRD, though not by its program
        if cluster.machines.flavor is not None:
            declared.setdefault(f"{pool}.flavor", cluster.machines.flavor)
    declared["network_type"] = cluster.network_type or default_network_type(cluster.release)
    declared["cluster_networks"] = [
        {"cidr": cluster_network, "hostPrefix": HOST_PREFIX_IPV6 if ":" in cluster_network else cluster.host_prefix}
        for cluster_network in cluster.cluster_networks
    ]
    if contents.pull_secret is not None:
        declared["pull_secret"] = compact(contents.pull_secret)
    return declared


def has_previews(cluster: InstallConfigFields) -> bool:
    """Whether the feature set of a cluster, or a gate that it chose, opens the previews of its release."""
    return releases.opens_previews(releases.minor(cluster.release), cluster.feature_set, cluster.feature_gates)


def default_network_type(release: str) -> str:
    return "OVNKubernetes" if releases.minor(release) >= releases.OVN_SINCE else "OpenShiftSDN"


def _flat(prefix: str, part: Any) -> Iterator[tuple[str, Any]]:
    """Yield every field with a value, by its dotted name."""
    for field in fields(part):
        value, name = getattr(part, field.name), prefix + field.name
        if is_dataclass(value) and name != "machines_network":  # a value of its own
            yield from _flat(f"{name}.", value)
        elif value not in (None, (), {}):
            yield name, dict(value) if isinstance(value, Mapping) else value


def may_be_secret(url: str) -> bool:
    """Whether a URL has a login or a query, which may be a signature; a login without a scheme is no URL, but secret.

    The query with the checksum of an image is no secret: the installer verifies it (pkg/rhcos/cache).
    """
    return "@" in url or has_url_secrets(re.sub(r"\?sha256=[0-9a-fA-F]+$", "", url))


def compact(secret: Secret) -> Secret:
    """Return a pull secret on one line; invalid JSON is left as it is."""
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
