"""Octavia, with OVN as its only provider: no amphorae, and so no broker, no image and no health manager."""

from __future__ import annotations

from tests.devcloud.config.ini import Config, account, project
from tests.devcloud.layout import Layout


def octavia(layout: Layout) -> Config:
    return project(
        layout,
        "octavia",
        {
            "api_settings": {
                "auth_strategy": "keystone",
                "api_base_uri": layout.url("octavia"),
                "enabled_provider_drivers": "ovn: OVN",
                "default_provider_driver": "ovn",
            },
            "driver_agent": {
                "enabled_provider_agents": "ovn",
                **{f"{name}_socket_path": layout.run / f"octavia-{name}.sock" for name in ("status", "stats", "get")},
            },
            "ovn": {
                "ovn_nb_connection": f"unix:{layout.ovn / 'nb.sock'}",
                "ovn_sb_connection": f"unix:{layout.ovn / 'sb.sock'}",
            },
            "keystone_authtoken": account(layout, "octavia"),
            "service_auth": account(layout, "octavia"),
            "neutron": account(layout, "octavia"),
        },
    )
