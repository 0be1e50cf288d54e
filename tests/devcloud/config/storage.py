"""Glance and Cinder."""

from __future__ import annotations

from tests.devcloud.config.ini import Config, account, project
from tests.devcloud.layout import HOST, Layout


def glance(layout: Layout) -> Config:
    files = layout.data / "glance"
    return project(
        layout,
        "glance",
        {
            "DEFAULT": {
                "enabled_backends": "file:file",
                "enabled_import_methods": "[glance-direct,web-download,copy-image]",
                "worker_self_reference_url": layout.url("glance"),
            },
            "glance_store": {"default_backend": "file"},
            "file": {"filesystem_store_datadir": files / "images"},
            "os_glance_staging_store": {"filesystem_store_datadir": files / "staging"},
            "os_glance_tasks_store": {"filesystem_store_datadir": files / "tasks"},
            # web-download may fetch from where tests serve images: loopback, which it refuses otherwise, and any port
            "import_filtering_opts": {"allowed_hosts": f"[{HOST}]", "allowed_ports": "[]"},
            "paste_deploy": {
                "flavor": "keystone",
                "config_file": layout.venv / "etc/glance/glance-api-paste.ini",
            },
            "keystone_authtoken": account(layout, "glance"),
        },
    )


def cinder(layout: Layout) -> Config:
    backend = "devcloud"
    return project(
        layout,
        "cinder",
        {
            "DEFAULT": {
                "my_ip": HOST,
                "auth_strategy": "keystone",
                "api_paste_config": layout.venv / "etc/cinder/api-paste.ini",
                "resource_query_filters_file": layout.venv / "etc/cinder/resource_filters.json",
                "enabled_backends": backend,
                "default_volume_type": "__DEFAULT__",
                "glance_api_servers": layout.url("glance"),
                "periodic_fuzzy_delay": 0,
            },
            backend: {
                "volume_backend_name": backend,
                "volume_driver": "tests.devcloud.server.volume_driver.VolumeDriver",
            },
            "coordination": {"backend_url": f"file://{layout.data / 'cinder'}"},
            "key_manager": {"fixed_key": "0" * 64},
            "keystone_authtoken": account(layout, "cinder"),
            "nova": account(layout, "nova"),
            "service_user": {**account(layout, "cinder"), "send_service_user_token": True},
        },
    )
