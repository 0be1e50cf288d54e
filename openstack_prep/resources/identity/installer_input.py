"""What an installer takes of the cloud, and other kinds of the same spec must know."""

from __future__ import annotations

from dataclasses import dataclass

from openstack_prep.resources.identity.in_project import InProject


@dataclass(frozen=True, kw_only=True)
class InstallerInput(InProject):
    """Base of kinds that are the input of an installer: of what it takes of the cloud.

    It moves floating IPs away from their current ports, and boots machines from an image.
    """

    @property
    def taken(self) -> frozenset[str]:
        """Names and addresses of the floating IPs that the installer will attach."""
        raise NotImplementedError(self.kind)

    @property
    def boots(self) -> tuple[str, str] | None:
        """The name of the machines' image and the stream of their operating system, if both are chosen."""
        raise NotImplementedError(self.kind)
