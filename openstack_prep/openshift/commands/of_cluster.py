"""Which cluster a command is about, and where it is: metadata.json or the infraID."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from openstack_prep.base.errors import ConfigError
from openstack_prep.cli.output import say
from openstack_prep.cli.running import connect_chosen
from openstack_prep.openshift.cluster import Metadata, cluster, find_metadata
from openstack_prep.openshift.installer import METADATA

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud


def metadata_file(options: argparse.Namespace) -> Path | None:
    """Return the metadata.json that is meant, saying so of a copy; None beside --infra-id.  Raises ConfigError."""
    if options.infra_id is not None:
        return None
    found = find_metadata(options.metadata or Path())
    if options.metadata is None and not found.exists():
        raise ConfigError("this folder has no metadata.json; give --metadata PATH or --infra-id ID")
    if found.name != METADATA and found != options.metadata:
        say(f"{found.with_suffix('')} does not exist; using its copy {found}")
    return found


def chosen_cluster(options: argparse.Namespace) -> Metadata:
    """Return the cluster that the options name; raises ConfigError, SpecError."""
    return cluster(metadata_file(options), options.infra_id)


def cloud_of(options: argparse.Namespace, metadata: Metadata) -> Cloud:
    """Return the cluster's cloud: that of --os-cloud, of metadata.json, of OS_CLOUD.  Raises ConfigError."""
    if options.os_cloud or metadata.cloud is None:
        return connect_chosen(options, None)
    try:
        return connect_chosen(options, metadata.cloud)
    except ConfigError as error:
        raise ConfigError(f"{error}; the name comes from metadata.json, and --os-cloud overrides it") from error
