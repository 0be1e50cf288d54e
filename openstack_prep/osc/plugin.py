"""What python-openstackclient reads of a plugin; each `openstack` command imports it, so it imports nothing itself.

Source: python-openstackclient 10.5.0, doc/source/contributor/plugins.rst; common/clientmanager.py, get_plugin_modules.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud

API_NAME = "prep"
API_VERSION_OPTION = "os_prep_api_version"
API_VERSIONS = ("1",)
DEFAULT_API_VERSION = "1"
"""Of the commands' entry points, openstack.prep.v1; there is no API."""


def make_client(manager: Any) -> Cloud:
    """Return the client's connection, for plugins of others: ``app.client_manager.prep``."""
    from openstack_prep.cloud.connection import connect  # that client imports all its plugins for any command

    return connect(connection=manager.sdk_connection)


def build_option_parser(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Return the client's parser without options of our own."""
    return parser
