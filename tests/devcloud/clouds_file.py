"""clouds.yaml files for the devcloud's users."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tests.devcloud.layout import PASSWORD, REGION, Layout

ADMIN = "devcloud-admin"


@dataclass(frozen=True)
class Entry:
    """One cloud of a clouds.yaml: a user, by password, in a project of the default domain."""

    cloud: str
    auth_url: str
    username: str
    password: str
    project: str
    region: str = REGION

    def __str__(self) -> str:
        return f"""\
  {self.cloud}:
    region_name: {self.region}
    identity_api_version: 3
    interface: public
    auth:
      auth_url: {self.auth_url}
      username: {self.username}
      password: {self.password}
      project_name: {self.project}
      user_domain_name: Default
      project_domain_name: Default
"""


def admin(layout: Layout) -> Entry:
    return Entry(ADMIN, layout.auth_url, "admin", PASSWORD, "admin")


def write(path: Path, *entries: Entry) -> None:
    """Write a clouds.yaml that nobody else can read, not even while it is being written."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write("clouds:\n" + "".join(map(str, entries)))
    new.replace(path)
