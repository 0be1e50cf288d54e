"""The installer's directory (--dir): its content, and copies of the files that the installer deletes.

Source: the OpenShift installer's docs: it consumes install-config.yaml, and ``destroy cluster`` removes
metadata.json; credentials come from clouds.yaml alone, its place from OS_CLIENT_CONFIG_FILE, the working
directory, ~/.config/openstack or /etc/openstack.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from openstack_prep.base.errors import ConfigError
from openstack_prep.base.private_file import write_private
from openstack_prep.openshift.check.entry import places
from openstack_prep.openshift.cluster import METADATA, Metadata, read_metadata
from openstack_prep.openshift.install_config import Given
from openstack_prep.openshift.install_config.cluster_of import CLOUD
from openstack_prep.openshift.installer.traces import KEPT, copy_of, infra_id_in, to_destroy

CONFIG, STATE = "install-config.yaml", ".openshift_install_state.json"
UNREADABLE = "unreadable"
"""Placeholder of an infraID that is unknown."""


@dataclass(frozen=True)
class Folder:
    """A directory that the installer is run with."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / CONFIG

    @property
    def metadata(self) -> Path:
        return self.path / METADATA

    @property
    def used(self) -> bool:
        """Whether the installer has been at work in the directory, and continues from its state."""
        return not self.config.exists() and bool(self.traces)

    @property
    def installed(self) -> str | None:
        """InfraID of the cluster that was installed from the directory, or is being installed; None without one."""
        text = self.metadata_text()
        return (infra_id_in(text) or UNREADABLE) if text else None

    @property
    def to_go_on(self) -> str:
        """The command for people that waits for a cluster whose machines exist."""
        return shlex.join(["openshift-install", "wait-for", "install-complete", "--dir", str(self.path)])

    @property
    def to_begin_anew(self) -> str:
        """The commands for people that remove a cluster and its files in the directory."""
        cleanup = shlex.join(["openstack-prep", "cleanup", "--metadata", str(self.path)])
        return f"{to_destroy(self.path)} (or {cleanup}), then {self.to_clear}"

    @property
    def traces(self) -> tuple[Path, ...]:
        """Files of an installation that another one would continue from or fail on."""
        return tuple(each for name in (METADATA, STATE) if (each := self.path / name).exists())

    @property
    def to_clear(self) -> str:
        """The command that deletes the files of an installation."""
        return shlex.join(["rm", "-f", *(str(self.path / name) for name in (METADATA, STATE))])

    @property
    def readable(self) -> Path | None:
        """The install-config.yaml, or its copy if the installer has deleted it."""
        return next((each for each in (self.config, copy_of(self.config)) if each.exists()), None)

    def cloud(self) -> str:
        """Return the entry of clouds.yaml that the installer uses, in its own order of files."""
        if self.config.exists() or not self.metadata.exists():
            entry = Given(self.readable).value("platform.openstack.cloud") if self.readable else None
        else:
            entry = read_metadata(self.metadata).cloud
        return str(entry or os.environ.get("OS_CLOUD") or CLOUD)

    # --- copies ---------------------------------------------------------------------------

    def keep_config(self) -> None:
        """Copy install-config.yaml, which contains the pull secret; raises ConfigError if a different copy exists."""
        if not self.config.exists():
            return
        text, kept = _read(self.config), copy_of(self.config)
        if kept.exists() and _read(kept) != text:
            raise ConfigError(f"{kept} is a copy of a different install-config; move it away, or correct {self.config}")
        write_private(kept, text)

    def keep_metadata(self) -> None:
        """Copy metadata.json; the copy of an earlier cluster's is kept under that cluster's infraID."""
        if not self.metadata.exists():
            return
        text, kept = _read(self.metadata), copy_of(self.metadata)
        old = _read(kept) if kept.exists() else text
        if old != text:
            write_private(self.path / f"{METADATA}.{infra_id_in(old) or UNREADABLE}{KEPT}", old)
        write_private(kept, text)

    # --- metadata of the cluster that is being created -----------------------------------

    def metadata_text(self) -> str | None:
        """Return the content of metadata.json; None while it is missing, incomplete, or not readable."""
        try:
            text = self.metadata.read_text()
            json.loads(text)
        except (OSError, ValueError):
            return None
        return text

    def metadata_of(self, cluster_name: str | None) -> Metadata:
        """Return the metadata; raises SpecError, and ConfigError if it belongs to another cluster."""
        found = read_metadata(self.metadata)
        if cluster_name not in (None, found.cluster_name):
            what = f"{self.metadata} belongs to cluster {found.cluster_name}, not to {cluster_name}"
            raise ConfigError(f"{what}; destroy that cluster first, or use another --dir")
        return found


def clouds_file() -> Path:
    """Return the clouds.yaml that the installer will read; raises ConfigError if there is none."""
    looked_at = places("clouds.yaml")
    found = next((each for each in looked_at if each.is_file()), None)
    if found is None:
        looked = ", ".join(map(str, looked_at))
        raise ConfigError(
            f"no clouds.yaml found ({looked}), and the installer reads nothing else; set OS_CLIENT_CONFIG_FILE"
        )
    return found.absolute()


def environment(cloud: str, file: Path) -> dict[str, str]:
    """Return the environment for the installer: that of this process, and the clouds.yaml entry that was checked."""
    return os.environ | _choice(cloud, file)


@contextlib.contextmanager
def for_installer(cloud: str, file: Path) -> Iterator[None]:
    """Use the installer's environment during a block, so that the checks use what the installer will use."""
    old = {name: os.environ.get(name) for name in _choice(cloud, file)}
    os.environ.update(_choice(cloud, file))
    try:
        yield
    finally:
        for name, value in old.items():
            os.environ.pop(name)
            os.environ.update({} if value is None else {name: value})


def _choice(cloud: str, file: Path) -> dict[str, str]:
    return {"OS_CLOUD": cloud, "OS_CLIENT_CONFIG_FILE": str(file)}


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}; correct it, or move it away") from error
