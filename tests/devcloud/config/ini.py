"""Configuration as data, and what the projects' files have in common."""

from __future__ import annotations

from collections.abc import Mapping

from tests.devcloud.layout import PASSWORD, REGION, Layout

Section = Mapping[str, object]
Config = Mapping[str, Section]


def render(config: Config) -> str:
    """The text of an ini file.  Booleans are written in lower case."""
    lines: list[str] = []
    for section, options in config.items():
        lines.append(f"[{section}]")
        for name, value in options.items():
            lines.append(f"{name} = {str(value).lower() if isinstance(value, bool) else value}")
        lines.append("")
    return "\n".join(lines)


def database(layout: Layout, name: str) -> str:
    """URL of a database.  The timeout is how long SQLite itself waits for a lock, in seconds."""
    return f"sqlite:///{layout.db / name}.sqlite?timeout=30"


def database_section(layout: Layout, name: str) -> Section:
    return {"connection": database(layout, name), "sqlite_synchronous": False}


def project(layout: Layout, name: str, config: Config) -> Config:
    """A project's configuration: what all projects share, overlaid with its own."""
    shared: dict[str, Section] = {
        "DEFAULT": {
            "transport_url": "fake:///",
            "use_stderr": True,
            "host": "devcloud",
            "state_path": layout.data / name,
            "default_log_levels": ("sqlalchemy=WARNING,castellan=ERROR,keystonemiddleware=ERROR,stevedore=WARNING"),
        },
        "oslo_concurrency": {"lock_path": layout.data / name},
        "oslo_messaging_notifications": {"driver": "noop"},
        # a file that exists, since one that does not is searched for at each decision, in all directories
        "oslo_policy": {"enforce_scope": True, "policy_file": layout.etc / "policy.yaml"},
        "database": database_section(layout, name),
    }
    return {
        section: {**shared.get(section, {}), **config.get(section, {})} for section in dict.fromkeys((*shared, *config))
    }


def account(layout: Layout, user: str) -> Section:
    """How a service presents itself to Keystone, and checks the tokens of others."""
    return {
        "auth_type": "password",
        "auth_url": layout.auth_url,
        "www_authenticate_uri": layout.auth_url,
        "username": user,
        "password": PASSWORD,
        "project_name": "service",
        "user_domain_name": "Default",
        "project_domain_name": "Default",
        "region_name": REGION,
        "service_token_roles": "service",
        "service_token_roles_required": True,
    }
