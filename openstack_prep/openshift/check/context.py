"""What is checked: the cluster to install, and the project to install it in."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from openstack_prep.base import shell
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.model import OwnershipTag
from openstack_prep.openshift.install_config import FileContents, InstallConfigFields
from openstack_prep.openshift.install_config.fields import FIELDS
from openstack_prep.openshift.install_config.releases import minor

T = TypeVar("T")

READER = OwnershipTag("check")
"""A check creates nothing, so nothing ever carries this ownership tag."""


@dataclass(frozen=True, kw_only=True)
class CheckContext:
    """An install-config, the cloud as its cluster will see it, and what was read of both.

    Several checks need the same list: ``read_once`` reads it for all of them.
    """

    run: CloudRun
    """The cloud by the entry of clouds.yaml that the installer will use, and what was read of it."""
    cluster: InstallConfigFields
    """What install-config.yaml says, in the names of the newest release."""
    contents: FileContents
    """Its pull secret, SSH key and CA bundle."""
    path: Path
    """The install-config.yaml; the installer will be run with its folder as --dir."""
    hosts: Path = Path("/etc/hosts")
    """The hosts file of the machine that the installer will run on."""
    token_expires: datetime | None = None
    """When the token of the entry ends; None of an entry without one."""
    installer: Path | None = None
    """An openshift-install that tells which image belongs to it."""
    seconds: float = 10.0
    """Seconds for one request to a mirror of images."""

    @property
    def cloud(self) -> Cloud:
        return self.run.admin

    @property
    def release(self) -> int:
        """The minor number: 18 for OpenShift 4.18."""
        return minor(self.cluster.release)

    def read_once(self, name: Hashable, read: Callable[[], T]) -> T:
        """Return what ``read`` returns; it is called once, whichever check comes first."""
        return self.run.read_once(name, read)

    def place(self, of: str) -> str:
        """Return the path in install-config.yaml that this release uses for one of our fields."""
        field = next(each for each in FIELDS if each.of == of)
        return (field.spelling(self.release) or field.spellings[0]).path.replace("[]", "")

    def openstack(self, *words: str) -> str:
        """Return a line for the shell: the client's command, with the installer's own entry of clouds.yaml."""
        return shell.join(["openstack", "--os-cloud", self.cloud.name, *words])

    def leave_name(self, kind: str, others: Mapping[str, str], kept_id: str, *, own: bool) -> str:
        """Return the commands that rename networks or images (``kind``), so that one of them alone has its name.

        ``others`` are their names by id; ``own`` is whether all of these belong to the project.
        """
        lines = []
        for other_id, name in others.items():
            words = (kind, "set", "--name", f"{name}-{other_id[:8]}", other_id)
            lines.append(self.openstack(*words) if own else shell.join(["openstack", *words]))
        who = "" if own else "as an administrator; "
        asked = "ask first who uses it by its name; "
        return f"{' && '.join(lines)}  # {who}{asked}leaves the name to {kept_id}"
