"""Spares Neutron work for others who are not there: agents to push objects to, and segments that have hosts.

After each write of a port, network, subnet or group, ML2 reads the object again in full and sends it to the agents, and
after each write of a port the plugin of segments looks for inventories of routed networks in Placement
(plugins/ml2/ovo_rpc.py and services/segments/plugin.py). No client can see the difference.
"""

from neutron.plugins.ml2 import ovo_rpc
from neutron.services.segments.plugin import NovaSegmentNotifier


def tune():
    """Call before the plugins start."""

    def nobody(*arguments, **options):
        pass

    ovo_rpc._ObjectChangeHandler.handle_event = nobody
    for name in ("_notify_port_created_or_deleted", "_notify_port_updated"):
        assert hasattr(NovaSegmentNotifier, name), name
        setattr(NovaSegmentNotifier, name, nobody)
