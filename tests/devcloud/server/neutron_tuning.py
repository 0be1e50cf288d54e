"""Spares Neutron work for others who are not there: agents to push objects to, and segments that have hosts.

After each write of a port, network, subnet or group, ML2 reads the object again in full and sends it to the agents, and
after each write of a port the plugin of segments looks for inventories of routed networks in Placement
(plugins/ml2/ovo_rpc.py and services/segments/plugin.py). Before each list of security groups, Neutron looks whether the
project has its default group; it reads that with all its rules, of which the id is enough (neutron 29.0.0,
db/securitygroups_db.py, _ensure_default_security_group). No client can see the difference.
"""

from neutron.db.securitygroups_db import SecurityGroupDbMixin
from neutron.objects.securitygroup import DefaultSecurityGroup
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
    assert hasattr(SecurityGroupDbMixin, "_get_default_sg_id")
    SecurityGroupDbMixin._get_default_sg_id = _default_group_id


def _default_group_id(self, context, project_id):
    ids = DefaultSecurityGroup.get_values(context.elevated(), "security_group_id", project_id=project_id)
    return ids[0] if ids else None
