"""Swift: a proxy and one storage node of each kind, without memcache."""

from __future__ import annotations

import getpass

from tests.devcloud.config.ini import Config, Section, account
from tests.devcloud.layout import HOST, Layout

RINGS = ("account", "container", "object")

PIPELINE = (
    "devcloud catch_errors gatekeeper healthcheck proxy-logging listing_formats bulk tempurl authtoken "
    "keystoneauth copy container_quotas account_quotas slo dlo versioned_writes symlink proxy-logging"
)
STOCK_FILTERS = (
    "catch_errors",
    "gatekeeper",
    "healthcheck",
    "listing_formats",
    "bulk",
    "tempurl",
    "copy",
    "container_quotas",
    "account_quotas",
    "slo",
    "dlo",
    "symlink",  # versioned_writes needs it for allow_object_versioning
)


def shared() -> Config:
    """swift.conf, which every server reads from its swift_dir."""
    return {"swift-hash": {"swift_hash_path_prefix": "dev", "swift_hash_path_suffix": "cloud"}}


def _server(layout: Layout, service: str) -> Section:
    return {
        "swift_dir": layout.data / "rings",
        "devices": layout.data / "swift",
        "mount_check": False,
        "user": getpass.getuser(),
        "bind_ip": HOST,
        "bind_port": layout.port(service),
        "workers": 0,  # serve in the process that was started, which is the one that gets stopped
    }


def proxy(layout: Layout) -> Config:
    # service_roles must stay unset here: set, every request is answered 403
    return {
        "DEFAULT": _server(layout, "swift-proxy"),
        "pipeline:main": {"pipeline": f"{PIPELINE} proxy-server"},
        "app:proxy-server": {"use": "egg:swift#proxy", "account_autocreate": True},
        "filter:devcloud": {
            "paste.filter_factory": "tests.devcloud.server.middleware:filter_factory",
            "home": layout.home,
        },
        "filter:authtoken": {
            "paste.filter_factory": "keystonemiddleware.auth_token:filter_factory",
            "delay_auth_decision": True,
            **account(layout, "swift"),
        },
        "filter:keystoneauth": {
            "use": "egg:swift#keystoneauth",
            "operator_roles": "admin, swiftoperator",
            "reseller_admin_role": "ResellerAdmin",
        },
        "filter:versioned_writes": {"use": "egg:swift#versioned_writes", "allow_object_versioning": True},
        "filter:proxy-logging": {"use": "egg:swift#proxy_logging"},
        **{f"filter:{name}": {"use": f"egg:swift#{name}"} for name in STOCK_FILTERS},
    }


def storage_node(layout: Layout, kind: str) -> Config:
    return {
        "DEFAULT": _server(layout, f"swift-{kind}"),
        "pipeline:main": {"pipeline": f"healthcheck {kind}-server"},
        f"app:{kind}-server": {"use": f"egg:swift#{kind}"},
        "filter:healthcheck": {"use": "egg:swift#healthcheck"},
    }
