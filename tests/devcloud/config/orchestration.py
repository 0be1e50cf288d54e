"""Heat."""

from __future__ import annotations

from tests.devcloud.config.ini import Config, account, project
from tests.devcloud.layout import PASSWORD, REGION, Layout


def heat(layout: Layout) -> Config:
    return project(
        layout,
        "heat",
        {
            "DEFAULT": {
                "deferred_auth_method": "trusts",
                "trusts_delegated_roles": "",  # all of the user's roles
                "stack_user_domain_name": "heat",
                "stack_domain_admin": "heat_domain_admin",
                "stack_domain_admin_password": PASSWORD,
                "heat_metadata_server_url": layout.url("heat"),
                "region_name_for_services": REGION,
                "max_resources_per_stack": -1,
                "num_engine_workers": 1,
            },
            "paste_deploy": {"api_paste_config": layout.venv / "etc/heat/api-paste.ini"},
            "clients_keystone": {"auth_uri": layout.auth_url},
            "keystone_authtoken": account(layout, "heat"),
            "trustee": account(layout, "heat"),
        },
    )
