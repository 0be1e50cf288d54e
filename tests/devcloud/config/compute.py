"""Nova and Placement."""

from __future__ import annotations

from tests.devcloud.config.ini import Config, account, database_section, project
from tests.devcloud.layout import HOST, REGION, Layout


def placement(layout: Layout) -> Config:
    return project(
        layout,
        "placement",
        {
            "api": {"auth_strategy": "keystone"},
            "placement_database": database_section(layout, "placement"),
            "keystone_authtoken": account(layout, "placement"),
        },
    )


def nova(layout: Layout) -> Config:
    return project(
        layout,
        "nova",
        {
            "DEFAULT": {
                "my_ip": HOST,
                # the plain FakeDriver makes up a node id a process, and so fails at a second start
                "compute_driver": "fake.FakeDriverWithoutFakeNodes",
                "initial_cpu_allocation_ratio": 4.0,
                "allow_resize_to_same_host": True,
                # no agent will ever report that a port has been plugged
                "vif_plugging_is_fatal": False,
                "vif_plugging_timeout": 0,
                "sync_power_state_interval": -1,
            },
            "api_database": database_section(layout, "nova_api"),
            "api": {"auth_strategy": "keystone", "response_validation": "ignore"},  # Nova's tests judge its answers
            "glance": {"valid_interfaces": "public", "region_name": REGION},
            "vnc": {"enabled": False},
            "key_manager": {"fixed_key": "0" * 64},
            "compute": {"resource_provider_association_refresh": 3600},
            "keystone_authtoken": account(layout, "nova"),
            "placement": account(layout, "placement"),
            "neutron": account(layout, "neutron"),
            "cinder": {**account(layout, "nova"), "os_region_name": REGION},
            "service_user": {**account(layout, "nova"), "send_service_user_token": True},
        },
    )
