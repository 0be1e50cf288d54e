"""Neutron."""

from __future__ import annotations

from tests.devcloud.config.ini import Config, account, project
from tests.devcloud.layout import HOST, Layout, ovn_root


def neutron(layout: Layout) -> Config:
    return project(
        layout,
        "neutron",
        {
            "DEFAULT": {
                "core_plugin": "ml2",
                # neutron looks plugins up by these names: «router», not the class it stands for
                "service_plugins": f"{'ovn-' if ovn_root() else ''}router,trunk,qos,segments,port_forwarding",
                "api_paste_config": layout.venv / "etc/neutron/api-paste.ini",
                "auth_strategy": "keystone",
                "bind_host": HOST,
                # there are no agents to notify of routers, or of anything else
                "dhcp_agent_notification": False,
                "rpc_workers": 0,
                "notify_nova_on_port_status_changes": True,
                "notify_nova_on_port_data_changes": True,
            },
            "ml2": {
                "mechanism_drivers": "ovn" if ovn_root() else "devcloud",
                "type_drivers": "flat,vlan,vxlan,geneve",
                "tenant_network_types": "geneve",
                "extension_drivers": "port_security,qos",
            },
            "ovn": {
                "ovn_nb_connection": f"unix:{layout.ovn / 'nb.sock'}",
                "ovn_sb_connection": f"unix:{layout.ovn / 'sb.sock'}",
                "ovn_metadata_enabled": True,  # as deployments have it; each network then has a port of OVN
            },
            "ml2_type_flat": {"flat_networks": "*"},
            "ml2_type_vlan": {"network_vlan_ranges": "physnet1:100:999"},
            "ml2_type_vxlan": {"vni_ranges": "1:9999"},
            "ml2_type_geneve": {"vni_ranges": "10000:19999", "max_header_size": 38},
            "keystone_authtoken": account(layout, "neutron"),
            "nova": account(layout, "nova"),
            "placement": account(layout, "placement"),
        },
    )
