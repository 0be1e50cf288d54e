"""One ``create cluster``: the checks before it, the work in parallel to it and the repairs after it."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from openstack_prep.base import shell
from openstack_prep.base.diagnostic import errors
from openstack_prep.base.errors import ConfigError, PrepError, WaitTimeout, text_of
from openstack_prep.base.raw import Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud, connect
from openstack_prep.cloud.lease import LOCK_TIMEOUT
from openstack_prep.core import interrupts
from openstack_prep.core.plan import Report
from openstack_prep.hooks import child_process
from openstack_prep.hooks.cleanup import remaining
from openstack_prep.hooks.post_ipi import spec_of, wait_for_ports
from openstack_prep.hooks.pre_ipi import NotReady, warnings
from openstack_prep.hooks.reinstallation import advice, forbid_twins
from openstack_prep.openshift.check import CheckContext
from openstack_prep.openshift.check.context import READER
from openstack_prep.openshift.check.network.topology import virtual_addresses
from openstack_prep.openshift.check.preflight import HOSTS, preflight
from openstack_prep.openshift.cluster import ClusterAddresses, Metadata
from openstack_prep.openshift.folder import Folder, environment, for_installer
from openstack_prep.openshift.install_config import InstallConfigFields, InstallConfigValues, read
from openstack_prep.openshift.install_config.rules.networks import user_creates_vip_ports
from openstack_prep.openshift.installer import guard_of, to_create_again
from openstack_prep.verbs import api

PAUSE = 0.5  # seconds between two checks for metadata.json
AGAIN = 10.0  # seconds before attaching is retried, while the installer runs
FOREVER = 10 * 24 * 3600.0  # seconds; the installer ends before

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class InstallOptions(ClusterAddresses):
    """The addresses for ``ipi`` to attach and allow, and how it runs.

    A floating IP that is not given is read from install-config.yaml; the cluster's virtual addresses are always
    allowed.
    """

    wait: float | None = None
    """Seconds to wait for the virtual ports; None: while the installer runs."""
    check: bool = True
    """Whether to check first, and not to start if the installation would fail."""
    hosts: Path = HOSTS
    """The hosts file that the checks read."""
    lock_timeout: float = LOCK_TIMEOUT
    """Seconds to wait for another run for the same cluster, per request for its lease."""


Wishes = InstallOptions  # the former name


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How the installer ended, and what was repaired after it."""

    code: int
    """The installer's exit code, or 128 plus the number of the signal that ended it."""
    metadata: Metadata | None = None
    """The cluster; None if the installer created none."""
    report: Report | None = None
    """What was done after it; None if there was nothing to do, or no cluster."""
    problem: str = ""
    """Why our own part failed."""

    @property
    def exit_code(self) -> int:
        """The installer's code; if that is 0, then 1 if our own part failed, 128+n if signal n stopped it."""
        if self.code == 0 and self.report is not None and self.report.interrupt is not None:
            return interrupts.exit_code(self.report.interrupt)
        return self.code or (1 if self.problem else 0)

    def raise_for_problems(self) -> None:
        """Raise PrepError with the reason if the installer or our own part failed."""
        problems = [f"the installer exited with code {self.code}"] if self.code else []
        if problems or self.problem:
            raise PrepError("; ".join(filter(None, [*problems, self.problem])))


class Installation:
    """One run; ``prepare`` checks everything first, so that errors are reported before the installer starts."""

    cloud: Cloud
    context: CheckContext | None = None

    def __init__(
        self, place: Folder, release: str, program: Path | None, options: InstallOptions, tell: Callable[[str], None]
    ) -> None:
        self.place, self.release, self.program, self.options, self.tell = place, release, program, options, tell
        self._ended = threading.Event()
        # an earlier cluster's; if the run continues an installation, it is this cluster's
        self._stale = None if place.used else place.metadata_text()

    # --- before ---------------------------------------------------------------------------

    def prepare(self, clouds_file: Path, *, look: bool, jobs: int) -> None:
        """Read, connect, check if requested, and copy install-config.yaml; raises PrepError."""
        self._look_at_folder()
        path = self.place.readable
        self.cloud = connect(self.place.cloud(), clouds_file=clouds_file).authenticate()
        self._environment = environment(self.cloud.name, clouds_file)
        if path is not None:
            cluster, contents = read(path, self.release)
            self.context = CheckContext(run=CloudRun(self.cloud, READER), cluster=cluster, contents=contents, path=path)
            if _holds_ports(cluster):
                self._read_addresses(path)
        if look and path is not None and (self.place.unfinished or not self.place.used):
            with for_installer(self.cloud.name, clouds_file):
                self._check(path, jobs)
        forbid_twins(self.place, self.cloud, jobs=jobs)
        self.place.keep_config()
        self.place.keep_metadata()  # the installer overwrites it

    def _look_at_folder(self) -> None:
        """Raise ConfigError if there is nothing to install from, or the installer would refuse."""
        if not self.place.config.exists() and not self.place.used:
            path = self.place.readable
            fix = f"copy {path} to it" if path else "create one, or pass the spec that declares it"
            fix += "" if self.place.path != Path() else "; if it is in another directory, pass --dir"
            raise ConfigError(f"neither {self.place.config} nor the state of an earlier run exists; {fix}")
        if guard := guard_of(self.place.path):
            what = "is of an earlier installation, so the installer would delete install-config.yaml, overwrite"
            fix = f"if that cluster is gone, {to_create_again(self.place.path)}; else use another --dir"
            raise ConfigError(f"{guard} {what} metadata.json, and then fail; {fix}")
        self.place.recover_config()

    def _read_addresses(self, path: Path) -> None:
        """Take the floating IPs of install-config.yaml, also one that the release does not know; raises ConfigError."""
        for field in ("ingress_floating_ip", "api_floating_ip"):
            (name, written), option = InstallConfigValues(path).field(field), getattr(self.options, field)
            if written and option and "." in option and written != option:
                raise ConfigError(f"{name} in {path} is {written}, not {option}; name one of them")
            changed: Values = {field: option or written}
            self.options = replace(self.options, **changed)

    def _check(self, path: Path, jobs: int) -> None:
        verdict = preflight(path, self.release, installer=self.program, hosts=self.options.hosts, jobs=jobs)
        placed = verdict.placed
        for warning in warnings(placed, self.options.ingress_floating_ip):
            self.tell(str(warning))
        if verdict.errors:
            raise NotReady(errors(verdict.findings), shown=errors(placed))

    # --- the run ----------------------------------------------------------------------------

    def run(self, command: Sequence[str], lock: int | None = None) -> Outcome:
        """Run the installer, attach floating IPs that it does not attach itself, and repair what is left."""
        pool = ThreadPoolExecutor(1, thread_name_prefix="beside")
        beside = pool.submit(self._attach_in_parallel)
        try:
            code = child_process.run(command, self._environment, lock)
        finally:
            self._ended.set()
        with contextlib.suppress(KeyboardInterrupt):  # a second signal: do not wait for a request that hangs
            pool.shutdown()
        outcome = self._repair(code)
        bug = beside.exception() if beside.done() else None
        return outcome if bug is None else replace(outcome, problem=_problem(bug))

    def _attach_in_parallel(self) -> None:
        """Copy metadata.json as soon as it exists, then attach; retried until the installer has ended."""
        while (text := self.place.metadata_text()) is None or text == self._stale:
            if self._ended.wait(PAUSE):
                return
        last_error = ""
        while not self._ended.is_set():
            try:
                self.place.keep_metadata()
                if self._not_by_installer.all:
                    self._attach()
                return
            except PrepError as error:
                if not self._ended.is_set() and last_error != str(error):
                    last_error = str(error)
                    self.tell(f"not attached yet: {last_error}")
                if isinstance(error, WaitTimeout):
                    return
            self._ended.wait(AGAIN)

    @property
    def _not_by_installer(self) -> ClusterAddresses:
        """The floating IPs to attach while the installer runs: those that it does not attach itself."""
        cluster, options = self.context.cluster if self.context else None, self.options
        ingress, api = (cluster.ingress_floating_ip, cluster.api_floating_ip) if cluster else (None, None)
        return ClusterAddresses(
            ingress_floating_ip=None if options.ingress_floating_ip == ingress else options.ingress_floating_ip,
            api_floating_ip=None if options.api_floating_ip == api else options.api_floating_ip,
        )

    def _attach(self) -> None:
        spec = spec_of(self._metadata(), self._not_by_installer)
        seconds = FOREVER if self.options.wait is None else self.options.wait
        wait_for_ports(self.cloud, spec, seconds, self._ended)
        report = api.apply(self.cloud, spec, lock_timeout=self.options.lock_timeout)
        report.raise_for_failures()
        for result in report.changed:
            address = result.observed.outputs["address"] if result.observed else ""
            self.tell(f"{address} attached to {result.step.resource.name}")

    def _metadata(self) -> Metadata:
        return self.place.metadata_of(self.context.cluster.cluster_name if self.context else None)

    # --- after ----------------------------------------------------------------------------

    def _repair(self, code: int) -> Outcome:
        """Repair what is left, if there is a cluster; never raises for a failure."""
        text = self.place.metadata_text()
        if text is None or text == self._stale:
            problem = "" if code else f"the installer wrote no metadata.json of a new cluster to {self.place.path}"
            return Outcome(code=code, problem=problem)
        report, metadata, problem = None, None, ""
        try:
            self.place.keep_metadata()
            metadata = self._metadata()
            if code:
                self._advise(metadata, code)
            elif self._addresses.all:
                spec = spec_of(metadata, self._addresses)
                report = api.apply(self.cloud, spec, lock_timeout=self.options.lock_timeout)
                for line in str(report).splitlines():
                    self.tell(line)
                report.raise_for_failures()
        except Exception as error:  # noqa: BLE001 - no bug here may hide the installer's exit code
            problem = _problem(error)
        return Outcome(code=code, metadata=metadata, report=report, problem=problem)

    def _advise(self, metadata: Metadata, code: int) -> None:
        """Print what to do after a failure, by what exists of the cluster."""
        ended, by_hand = f"the installer exited with code {code}", f"once the cluster exists, run: {self._by_hand()}"
        try:
            left = remaining(self.cloud, metadata.infra_id)
        except (PrepError, KeyboardInterrupt) as error:  # a second signal: do not wait for a request that hangs
            self.tell(f"{ended}; {by_hand}")
            self.tell(f"what exists of {metadata.infra_id} is unknown: {str(error) or 'interrupted'}")
            self.tell(f"to start over: {self.place.restart_commands}")
            return
        self.tell(f"{ended}; {by_hand}" if left else ended)
        masters = self.context.cluster.control_plane.replicas if self.context else 1
        for line in advice(self.place, metadata.infra_id, left, code=code, masters=masters):
            self.tell(line)

    @property
    def _addresses(self) -> ClusterAddresses:
        return replace(self.options, vips=tuple(dict.fromkeys([*self._vips(), *self.options.vips])))

    def _vips(self) -> Iterator[str]:
        """Yield the cluster's virtual addresses, if its own machines use them."""
        if self.context is not None and self.context.cluster.load_balancer != "UserManaged":
            for addresses in virtual_addresses(self.context).values():
                yield from map(str, addresses)

    def _by_hand(self) -> str:
        """Return the command that does the rest."""
        words = ["openstack-prep", "post-ipi", "--metadata", str(self.place.metadata)]
        addresses = self._addresses
        given = [("--ingress-ip", addresses.ingress_floating_ip), ("--api-ip", addresses.api_floating_ip)]
        given += [("--vip", vip) for vip in addresses.vips]
        return shell.join([*words, *(word for option, value in given if value for word in (option, value))])


def _problem(error: BaseException) -> str:
    """Return the text for an error of our own part."""
    if isinstance(error, PrepError):
        return str(error)
    _log.debug("", exc_info=error)
    return f"internal error while running the installer: {text_of(error)}; please report it"


def _holds_ports(cluster: InstallConfigFields) -> bool:
    """Whether the installer creates the virtual ports; with IPv6 users do, with their own names."""
    return cluster.load_balancer != "UserManaged" and not user_creates_vip_ports(cluster)
