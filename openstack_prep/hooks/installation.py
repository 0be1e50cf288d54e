"""One ``create cluster``: what is looked at before it, done beside it and put right after it."""

from __future__ import annotations

import contextlib
import logging
import shlex
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from openstack_prep.base.diagnostic import errors
from openstack_prep.base.errors import ConfigError, PrepError, WaitTimeout
from openstack_prep.base.raw import Values
from openstack_prep.cloud.connection import Cloud, connect
from openstack_prep.cloud.lease import LOCK_TIMEOUT
from openstack_prep.cloud.site import Site
from openstack_prep.core import interrupts
from openstack_prep.core.plan import Report
from openstack_prep.hooks import child
from openstack_prep.hooks.folder import Folder, environment, for_installer
from openstack_prep.hooks.post_ipi import spec_of, wait_for_ports
from openstack_prep.hooks.pre_ipi import NotReady, warnings
from openstack_prep.openshift.check import Scene
from openstack_prep.openshift.check.network.topology import virtual_addresses
from openstack_prep.openshift.check.preflight import HOSTS, preflight
from openstack_prep.openshift.check.scene import READER
from openstack_prep.openshift.cluster import ClusterAddresses, Metadata
from openstack_prep.openshift.install_config import Cluster, Given, read
from openstack_prep.verbs import api

PAUSE = 0.5  # seconds between two looks for metadata.json
AGAIN = 10.0  # seconds before attaching is tried again, while the installer runs
FOREVER = 10 * 24 * 3600.0  # seconds; the installer ends before

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class InstallOptions(ClusterAddresses):
    """The addresses for ``ipi`` to attach and allow, and how it runs.

    A floating IP that is not given is read from install-config.yaml; the cluster's virtual addresses are always
    allowed.
    """

    wait: float | None = None
    """Seconds for the virtual ports to appear; None: while the installer runs."""
    check: bool = True
    """Whether to check before, and not to start when the installation would fail."""
    hosts: Path = HOSTS
    """The hosts file that check looks into."""
    lock_timeout: float = LOCK_TIMEOUT
    """Seconds to wait for another run for the same cluster, per request for its lease."""


Wishes = InstallOptions  # the former name


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How the installer ended, and what was put right."""

    code: int
    """The installer's exit code, or 128 and the number of the signal that ended it."""
    metadata: Metadata | None = None
    """The cluster; None when the installer made none."""
    report: Report | None = None
    """What was done after it; None when there was nothing to do, or no cluster to do it to."""
    problem: str = ""
    """Why our own part did not succeed."""

    @property
    def exit_code(self) -> int:
        """The installer's code; when that is 0, 1 if our own part did not succeed, 128+n if signal n stopped it."""
        if self.code == 0 and self.report is not None and self.report.interrupt is not None:
            return interrupts.exit_code(self.report.interrupt)
        return self.code or (1 if self.problem else 0)

    def raise_for_problems(self) -> None:
        """Raise PrepError with what happened, when the installer failed or our own part did."""
        said = [f"the installer ended with {self.code}"] if self.code else []
        if said or self.problem:
            raise PrepError("; ".join(filter(None, [*said, self.problem])))


class Installation:
    """One run; ``prepare`` before it looks at everything, so that what is wrong is said before the start."""

    cloud: Cloud
    scene: Scene | None = None

    def __init__(
        self, place: Folder, release: str, program: Path | None, options: InstallOptions, tell: Callable[[str], None]
    ) -> None:
        self.place, self.release, self.program, self.options, self.tell = place, release, program, options, tell
        self._ended = threading.Event()
        # an earlier cluster's; of a run that goes on it is this one's
        self._stale = None if place.used else place.metadata_text()

    # --- before ---------------------------------------------------------------------------

    def prepare(self, clouds_file: Path, *, look: bool, jobs: int) -> None:
        """Read, connect, check when told to, and keep a copy of install-config.yaml; raises PrepError."""
        path = self.place.readable
        if not self.place.config.exists() and not self.place.used:
            remedy = f"copy {path} to it" if path else "write one, or give the spec that declares it"
            remedy += "" if self.place.path != Path() else "; one in another folder is named by --dir"
            raise ConfigError(f"there is no {self.place.config}, nor the state of an earlier run; {remedy}")
        self.cloud = connect(self.place.cloud(), clouds_file=clouds_file).authenticate()
        self._environment = environment(self.cloud.name, clouds_file)
        if path is not None:
            cluster, contents = read(path, self.release)
            self.scene = Scene(site=Site(self.cloud, READER), cluster=cluster, contents=contents, path=path)
            if _holds_ports(cluster):
                self._read_addresses(path)
        if look and path is not None and not self.place.used:
            with for_installer(self.cloud.name, clouds_file):
                self._check(path, jobs)
        self.place.keep_config()

    def _read_addresses(self, path: Path) -> None:
        """Take the floating IPs of install-config.yaml, also one that the release does not know; raises ConfigError."""
        for field in ("ingress_floating_ip", "api_floating_ip"):
            (name, written), option = Given(path).field(field), getattr(self.options, field)
            if written and option and "." in option and written != option:
                raise ConfigError(f"{name} in {path} is {written}, not {option}; name one of them")
            changed: Values = {field: option or written}
            self.options = replace(self.options, **changed)

    def _check(self, path: Path, jobs: int) -> None:
        verdict = preflight(path, self.release, installer=self.program, hosts=self.options.hosts, jobs=jobs)
        for each in warnings(verdict.findings, self.options.ingress_floating_ip):
            self.tell(str(each))
        if verdict.errors:
            raise NotReady(errors(verdict.findings))

    # --- the run ----------------------------------------------------------------------------

    def run(self, command: Sequence[str]) -> Outcome:
        """Run the installer, attach what it does not while it runs, and put right what is left."""
        pool = ThreadPoolExecutor(1, thread_name_prefix="beside")
        beside = pool.submit(self._beside)
        try:
            code = child.run(command, self._environment)
        finally:
            self._ended.set()
        with contextlib.suppress(KeyboardInterrupt):  # a second one: nobody waits for a request that hangs
            pool.shutdown()
        outcome = self._after(code)
        bug = beside.exception() if beside.done() else None
        return outcome if bug is None else replace(outcome, problem=_problem(bug))

    def _beside(self) -> None:
        """Keep metadata.json as soon as it is there, then attach: tried again until the installer has ended."""
        while (text := self.place.metadata_text()) is None or text == self._stale:
            if self._ended.wait(PAUSE):
                return
        told = ""
        while not self._ended.is_set():
            try:
                self.place.keep_metadata()
                if self._not_by_installer.all:
                    self._attach()
                return
            except PrepError as error:
                if not self._ended.is_set() and told != str(error):
                    told = str(error)
                    self.tell(f"not attached yet: {told}")
                if isinstance(error, WaitTimeout):
                    return
            self._ended.wait(AGAIN)

    @property
    def _not_by_installer(self) -> ClusterAddresses:
        """The floating IPs to attach while the installer runs: those that it does not attach itself."""
        cluster, options = self.scene.cluster if self.scene else None, self.options
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
        return self.place.metadata_of(self.scene.cluster.cluster_name if self.scene else None)

    # --- after ----------------------------------------------------------------------------

    def _after(self, code: int) -> Outcome:
        """Put right what is left, when there is a cluster; never raises for what goes wrong."""
        text = self.place.metadata_text()
        if text is None or text == self._stale:
            problem = "" if code else f"the installer left no metadata.json of a new cluster in {self.place.path}"
            return Outcome(code=code, problem=problem)
        report, metadata, problem = None, None, ""
        try:
            self.place.keep_metadata()
            metadata = self._metadata()
            if code:
                self.tell(f"the installer ended with {code}; once the cluster is there: {self._by_hand()}")
                self.tell(f"to continue: {self.place.to_go_on}")
                self.tell(f"to start over: {self.place.to_begin_anew}")
            elif self._addresses.all:
                spec = spec_of(metadata, self._addresses)
                report = api.apply(self.cloud, spec, lock_timeout=self.options.lock_timeout)
                for line in str(report).splitlines():
                    self.tell(line)
                report.raise_for_failures()
        except Exception as error:  # noqa: BLE001 - not even a bug of ours hides the installer's exit code
            problem = _problem(error)
        return Outcome(code=code, metadata=metadata, report=report, problem=problem)

    @property
    def _addresses(self) -> ClusterAddresses:
        return replace(self.options, vips=tuple(dict.fromkeys([*self._vips(), *self.options.vips])))

    def _vips(self) -> Iterator[str]:
        """Yield the cluster's virtual addresses, where its own machines hold them."""
        if self.scene is not None and self.scene.cluster.load_balancer != "UserManaged":
            for addresses in virtual_addresses(self.scene).values():
                yield from map(str, addresses)

    def _by_hand(self) -> str:
        """Return the command that does the rest."""
        words = ["openstack-prep", "post-ipi", "--metadata", str(self.place.metadata)]
        addresses = self._addresses
        given = [("--ingress-ip", addresses.ingress_floating_ip), ("--api-ip", addresses.api_floating_ip)]
        given += [("--vip", vip) for vip in addresses.vips]
        return shlex.join([*words, *(word for option, value in given if value for word in (option, value))])


def _problem(error: BaseException) -> str:
    """Return what to say of an error of our own part."""
    if isinstance(error, PrepError):
        return str(error)
    _log.debug("", exc_info=error)
    return f"internal error beside the installer: {type(error).__name__}: {error}; please report it"


def _holds_ports(cluster: Cluster) -> bool:
    """Whether the installer makes the virtual ports; of two stacks users do, by names of their own."""
    return cluster.load_balancer != "UserManaged" and len(cluster.machine_networks) == 1 == max(
        1, len(cluster.api_vips)
    )
