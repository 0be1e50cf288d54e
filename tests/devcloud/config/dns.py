"""Designate."""

from __future__ import annotations

from tests.devcloud.config.ini import Config, account, database_section, project
from tests.devcloud.layout import HOST, Layout


def designate(layout: Layout) -> Config:
    return project(
        layout,
        "designate",
        {
            "DEFAULT": {"network_api": "fake", "quota_zones": 100},
            "heartbeat_emitter": {"emitter_type": "noop"},
            "storage:sqlalchemy": database_section(layout, "designate"),
            "service:api": {
                "auth_strategy": "keystone",
                "api_base_uri": layout.url("designate"),
                "enable_host_header": True,
            },
            "service:mdns": {"listen": f"{HOST}:{layout.mdns_port}"},
            # changes reach the name server within a second or two, not ten
            "service:worker": {"poll_delay": 0, "poll_retry_interval": 1, "poll_max_retries": 5, "threads": 8},
            "service:producer": {"enabled_tasks": "increment_serial,delayed_notify,worker_periodic_recovery"},
            "producer_task:increment_serial": {"interval": 1},
            "producer_task:delayed_notify": {"interval": 1},
            "producer_task:worker_periodic_recovery": {"interval": 5},
            "keystone_authtoken": account(layout, "designate"),
        },
    )
