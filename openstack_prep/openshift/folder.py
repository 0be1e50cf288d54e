"""The installer's directory (--dir): its content, and copies of the files that the installer deletes.

Source: the OpenShift installer's docs: it consumes install-config.yaml, and ``destroy cluster`` removes
metadata.json; credentials come from clouds.yaml alone, its place from OS_CLIENT_CONFIG_FILE, the working
directory, ~/.config/openstack or /etc/openstack.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from openstack_prep.base import shell
from openstack_prep.base.errors import ConfigError, SpecError
from openstack_prep.base.formats.foreign_text import parse_json
from openstack_prep.base.given_file import read_text, unreadable
from openstack_prep.base.private_file import write_private
from openstack_prep.openshift import installer
from openstack_prep.openshift.clientconfig import places
from openstack_prep.openshift.cluster import Metadata, read_metadata
from openstack_prep.openshift.install_config import InstallConfigValues, dump
from openstack_prep.openshift.install_config.cluster_of import CLOUD
from openstack_prep.openshift.installer import CONFIG, KEPT, LOGINS, METADATA, STATE, copy_of, find_file, infra_id_in

UNREADABLE = "unreadable"
"""Placeholder of an infraID that is unknown."""
FOLDERS = ("auth", "tls", "cluster-api")
"""Folders that the installer makes, and that may contain files of others."""


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
    def logins(self) -> tuple[Path, ...]:
        """The files to log in to the cluster, which may be missing."""
        return tuple(self.path / name for name in LOGINS)

    @property
    def used(self) -> bool:
        """Whether the installer has been at work in the directory, and continues from its state."""
        return not self.config.exists() and bool(self.traces)

    @property
    def continued(self) -> str | None:
        """InfraID of the cluster that the installer would create again from its state; None: it takes a new one.

        Source: openshift/installer, pkg/asset/store: an asset on disk that equals the state changes nothing.
        """
        kept = copy_of(self.config)
        changed = self.config.exists() and not (kept.exists() and _read(kept) == _read(self.config))
        return None if changed else installer.infra_id_in_state(self.path)

    @property
    def installed(self) -> str | None:
        """InfraID of the cluster that was installed from the directory, or is being installed; None without one."""
        text = self.metadata_text()
        return (infra_id_in(text) or UNREADABLE) if text else None

    @property
    def unfinished(self) -> bool:
        """Whether the installer has used install-config.yaml, but begun no cluster: after ``create manifests``."""
        return self.used and not self.metadata.exists()

    @property
    def restart_commands(self) -> str:
        """The commands for people that remove a cluster, and install from the directory again."""
        cleanup = shell.join(["openstack-prep", "cleanup", "--metadata", str(self.path)])
        return f"{installer.to_destroy(self.path)} (or {cleanup}), then {installer.to_create_again(self.path)}"

    @property
    def traces(self) -> tuple[Path, ...]:
        """Files of an installation that another one would continue from or fail on."""
        return tuple(each for name in (METADATA, STATE) if (each := self.path / name).exists())

    @property
    def readable(self) -> Path | None:
        """The install-config.yaml, or its copy if the installer has deleted it."""
        return next((each for each in (self.config, copy_of(self.config)) if each.exists()), None)

    def cloud(self) -> str:
        """Return the entry of clouds.yaml that the installer uses, in its own order of files."""
        if self.config.exists():
            entry = InstallConfigValues(self.config).value("platform.openstack.cloud")
        elif self.metadata_text() is not None:
            entry = read_metadata(self.metadata).cloud
        elif (config := installer.config_in_state(self.path)) is not None:
            entry = config.get("platform", {}).get("openstack", {}).get("cloud")
        else:
            entry = InstallConfigValues(self.readable).value("platform.openstack.cloud") if self.readable else None
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

    def recover_config(self) -> None:
        """Copy the install-config from the installer's state file, if install-config.yaml was deleted uncopied.

        Raises ConfigError if the copy is that of a different cluster.
        """
        config, kept = installer.config_in_state(self.path), copy_of(self.config)
        if self.config.exists() or config is None:
            return
        if not kept.exists():
            write_private(kept, dump(config))
        used = (config.get("metadata", {}).get("name"), config.get("baseDomain"))
        if used != tuple(InstallConfigValues(kept).value(each) for each in ("metadata.name", "baseDomain")):
            raise ConfigError(f"{kept} is a copy of a different install-config than {self.path / STATE}; move it away")

    def keep_metadata(self) -> None:
        """Copy metadata.json; the copy of an earlier cluster's is kept under that cluster's infraID."""
        if not self.metadata.exists():
            return
        text, kept = _read(self.metadata), copy_of(self.metadata)
        old = _read(kept) if kept.exists() else text
        if old != text:
            write_private(self.path / f"{METADATA}.{infra_id_in(old) or UNREADABLE}{KEPT}", old)
        write_private(kept, text)

    # --- another installation -------------------------------------------------------------

    @property
    def clusters(self) -> dict[str, str | None]:
        """The clouds of the clusters that the installer's files name, by infraID; None: unknown, the directory's own.

        Raises SpecError if metadata.json is wrong, and no other file names a cluster.
        """
        named: dict[str, str | None] = dict.fromkeys(installer.infra_ids_in(self.path))
        metadata = find_file(self.path, METADATA)
        if metadata.exists() and installer.written(self.path):
            try:
                found = read_metadata(metadata)
                named[found.infra_id] = found.cloud
            except SpecError:
                if not named:
                    raise
        return named

    def refuse_others(self, clusters: Collection[str]) -> None:
        """Raise ConfigError for files with names that Terraform itself gives, unless they name one of the clusters."""
        for each in (self.path / name for name in installer.OF_TERRAFORM):
            if each.exists() and not any(infra_id in _read(each) for infra_id in clusters):
                what = f"{each} names no cluster that was installed from {self.path}, so somebody may use it"
                raise ConfigError(f"{what} with Terraform; move it away")

    def clear(self) -> None:
        """Delete what the installer wrote for one cluster, and have install-config.yaml again, from its copy.

        metadata.json is copied before, folders with manifests are renamed, and so are, to the infraID, the files to log
        in to the cluster: if its entry of clouds.yaml leads to another project by now, the cluster may live. A copy of
        an install-config that was changed since is kept under the infraID.  Raises ConfigError before anything is
        changed.
        """
        text = self.metadata_text()
        infra_id = (infra_id_in(text) if text else None) or next(iter(self.clusters), UNREADABLE)
        logins = [login for login in self.logins if login.exists()]
        renamed = {manifest: copy_of(manifest) for manifest in installer.manifests(self.path)}
        renamed |= {login: login.with_name(f"{login.name}.{infra_id}{KEPT}") for login in logins}
        for target in renamed.values():
            if os.path.lexists(target):
                raise ConfigError(f"{target} already exists; move it away")
        self.keep_metadata()
        self.recover_config()
        kept = copy_of(self.config)
        if kept.exists() and not self.config.exists():
            kept.rename(self.config)
        elif kept.exists():
            if _read(kept) == _read(self.config):
                kept.unlink()
            else:
                kept.rename(self.path / f"{CONFIG}.{infra_id}{KEPT}")
        for each, target in renamed.items():
            each.rename(target)
        for each in installer.written(self.path):
            _remove(each)

    @contextlib.contextmanager
    def locked(self) -> Iterator[int | None]:
        """Let no other run of openstack-prep create or destroy from the directory; yields the lock's descriptor.

        A program that inherits it holds the lock, too, also after the end of this process.  Yields None if the
        directory does not exist, or its file system has no locks.  Raises ConfigError if another run holds the lock.
        """
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            yield None
            return
        try:
            yield descriptor if _lock(descriptor, self.path) else None
        finally:
            os.close(descriptor)

    # --- metadata of the cluster that is being created -----------------------------------

    def metadata_text(self) -> str | None:
        """Return the content of metadata.json; None while it is missing, incomplete, or not readable."""
        try:
            text = read_text(self.metadata)
            parse_json(text)
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
    found = next((path for path in looked_at if path.is_file()), None)
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


def _lock(descriptor: int, path: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        what = f"{path}: another openstack-prep ipi, or the installer that it started, is at work in this directory"
        raise ConfigError(f"{what}; wait for its end, or use another directory") from error
    except OSError:
        return False
    return True


def _remove(path: Path) -> None:
    """Delete a file, a link or a tree, and its folder if that is empty then."""
    try:
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be deleted: {error.strerror}; delete it, and run the command again"
        ) from error
    if path.parent.name in FOLDERS:
        with contextlib.suppress(OSError):  # it contains other files
            path.parent.rmdir()


def _read(path: Path) -> str:
    try:
        return read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} {unreadable(error)}; correct it, or move it away") from error
