"""Neutron without agents: what an agent would report once it had done its work is true at once."""

from neutron.services.trunk.drivers import base as trunk
from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.callbacks import events, registry, resources
from neutron_lib.plugins import constants as plugins
from neutron_lib.plugins import directory
from neutron_lib.plugins.ml2 import api

ROUTER_PORTS = (constants.DEVICE_OWNER_ROUTER_INTF, constants.DEVICE_OWNER_ROUTER_GW)
VIF_DETAILS = {
    portbindings.CAP_PORT_FILTER: True,
    portbindings.VIF_DETAILS_CONNECTIVITY: portbindings.CONNECTIVITY_L2,
}


class MechanismDriver(api.MechanismDriver):
    """Binds any port, on any host, to its first segment, and calls it ACTIVE."""

    def initialize(self):
        TrunkDriver("devcloud", (portbindings.VIF_TYPE_OVS,), (constants.TYPE_VLAN,), can_trunk_bound_port=True)
        for event in (events.AFTER_CREATE, events.AFTER_UPDATE):
            registry.subscribe(floating_ip_changed, resources.FLOATING_IP, event)
            registry.subscribe(port_changed, resources.PORT, event)

    @property
    def connectivity(self):
        return portbindings.CONNECTIVITY_L2

    def bind_port(self, context):
        for segment in context.segments_to_bind[:1]:
            context.set_binding(
                segment[api.ID],
                portbindings.VIF_TYPE_OVS,
                VIF_DETAILS,
                status=constants.PORT_STATUS_ACTIVE,
            )


class TrunkDriver(trunk.DriverBase):
    """Lets the trunk plugin load; there is no bridge to tell about trunks."""

    is_loaded = True


def floating_ip_changed(resource, event, trigger, payload):
    """An associated floating IP is up."""
    floating_ip = payload.latest_state
    up, idle = constants.FLOATINGIP_STATUS_ACTIVE, constants.FLOATINGIP_STATUS_DOWN
    status = up if floating_ip["port_id"] else idle
    if floating_ip["status"] != status:
        l3 = directory.get_plugin(plugins.L3)
        l3.update_floatingip_status(payload.context.elevated(), floating_ip["id"], status)
        floating_ip["status"] = status  # the dictionary that the API will answer with


def port_changed(resource, event, trigger, payload):
    """A router's port is up: no host is chosen for it, so it is never bound."""
    port = payload.latest_state
    if port["device_owner"] in ROUTER_PORTS and port["status"] != constants.PORT_STATUS_ACTIVE:
        core = directory.get_plugin()
        core.update_port_status(payload.context.elevated(), port["id"], constants.PORT_STATUS_ACTIVE)
