"""Before ``openshift-install``: apply the spec, which writes install-config.yaml, and check the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus, errors
from openstack_prep.base.errors import Mistake, PrepError, SpecError
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.lease import LOCK_TIMEOUT
from openstack_prep.core.executor import Event, silent
from openstack_prep.core.plan import Report
from openstack_prep.openshift.check.preflight import HOSTS, preflight
from openstack_prep.openshift.folder import Folder, clouds_file, for_installer
from openstack_prep.openshift.install_config_file import InstallConfig
from openstack_prep.openshift.installer import CONFIG
from openstack_prep.openshift.names.resolver import read_hosts
from openstack_prep.resources.addresses.floating_ip import FloatingIP
from openstack_prep.resources.files.clouds_entry import InCloudsYaml
from openstack_prep.spec import Spec, load_spec
from openstack_prep.spec.python import spec_from
from openstack_prep.verbs import api


class NotReady(PrepError):
    """An installation would fail; ``findings`` say why, and how to fix it."""

    def __init__(self, findings: Sequence[Diagnostic], shown: Sequence[Diagnostic] = ()) -> None:
        """``shown``: the findings with the lines of the file, for the text."""
        self.findings = tuple(findings)
        super().__init__("\n".join(map(str, shown or findings)))

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The findings, as ``--format json`` prints them."""
        return self.findings


@dataclass(frozen=True, kw_only=True)
class Ready:
    """The outcome of the preparation, and how to call the installer."""

    report: Report
    """What apply did."""
    findings: tuple[Diagnostic, ...] = ()
    """What check found, errors first; nothing when apply failed, or the installer is at work already."""
    folder: Path
    """Directory of install-config.yaml, for the installer's --dir."""
    cloud: str
    """Entry of clouds.yaml that the installer will use, for OS_CLOUD."""
    clouds_file: Path
    """The clouds.yaml that contains it, for OS_CLIENT_CONFIG_FILE."""
    release: str
    """Release of the install-config, such as 4.18."""
    ingress_floating_ip: str | None = None
    """Address of the floating IP for ingress in the spec, from install_config or by the name ingress."""
    installed: str | None = None
    """InfraID of the cluster that was installed, or is being installed, from the directory; None if there is none."""

    @property
    def ok(self) -> bool:
        """Whether the installer may start: each step was done, and no finding is an error."""
        return not (self.report.failed or self.report.skipped or self.errors)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The findings because of which the installation would fail."""
        return tuple(errors(self.findings))

    def raise_for_problems(self) -> None:
        """Raise ApplyFailed if a step failed, NotReady if the installation would fail."""
        self.report.raise_for_failures()
        if self.errors:
            raise NotReady(self.errors)


def pre_ipi(
    cloud: Cloud,
    wanted: str | Path | Spec,
    *,
    jobs: int = 8,
    tell: Callable[[Event], None] = silent,
    hosts: Path = HOSTS,
    lock_timeout: float = LOCK_TIMEOUT,
) -> Ready:
    """Apply a spec that declares an install_config, then check the installer's input.

    ``cloud`` is the administrator's connection, which applies; the checks use the installer's own entry of clouds.yaml.
    ``wanted`` is the spec, or its path. ``jobs`` is how many requests are sent at a time. ``tell`` is called with an
    Event whenever a step begins, is retried or ends.
    ``hosts``: the hosts file of the installer's machine. ``lock_timeout``: seconds to wait for another run of the spec,
    then LeaseHeld is raised. ``ready.raise_for_problems()`` stops a script. Raises SpecError, PlanRefused, ConfigError.
    """
    spec = spec_from(wanted if isinstance(wanted, Spec) else load_spec(Path(wanted)))
    examine(spec, hosts)
    return checked(
        spec, api.apply(cloud, spec, jobs=jobs, tell=tell, lock_timeout=lock_timeout), hosts=hosts, jobs=jobs
    )


def installation_of(spec: Spec) -> InstallConfig:
    """Return the only install_config of a spec; raises SpecError if there is none, or its file has a different name."""
    found = [resource for resource in spec.resources if isinstance(resource, InstallConfig)]
    if len(found) != 1:
        what = "declares no install_config" if not found else f"declares {len(found)} install_config sections"
        fix = "add one (see `openstack-prep example openshift-current`), or run apply instead"
        raise SpecError([Mistake(f"{spec.name}: install_config", what, fix if not found else "keep one per spec")])
    if found[0].file.name != CONFIG:
        wrong = Mistake.about(
            found[0].key,
            f"{found[0].path} is not named {CONFIG}",
            "rename it, because the installer reads no other file",
        )
        raise SpecError(spec.placed([wrong]))
    return found[0]


def examine(spec: Spec, hosts: Path | None) -> None:
    """Check what needs no cloud, before anything is changed; raises SpecError."""
    installation_of(spec)
    if hosts:
        read_hosts(hosts)


def entry_file(spec: Spec) -> Path:
    """Return the clouds.yaml for the installer: the file to which the spec writes its entry, else the usual one."""
    name = installation_of(spec).cloud
    mine = (
        resource.file for resource in spec.resources if isinstance(resource, InCloudsYaml) and resource.cloud == name
    )
    found = next(mine, None)
    return found.absolute() if found else clouds_file()


def checked(spec: Spec, report: Report, *, look: bool = True, hosts: Path = HOSTS, jobs: int = 8) -> Ready:
    """Return the result of the preparation, with the findings of check unless checks are disabled."""
    config = installation_of(spec)
    file = entry_file(spec)
    findings: tuple[Diagnostic, ...] = ()
    ingress = _ingress(config, report)
    failed, folder = report.failed or report.skipped, Folder(config.file.parent)
    if look and not failed and (folder.unfinished or not folder.used):
        with for_installer(config.cloud, file):
            found = preflight(folder.readable or config.file, config.release, hosts=hosts, jobs=jobs).findings
        findings = tuple(_with_ingress(diagnostic, ingress) for diagnostic in found)
    return Ready(
        report=report,
        findings=findings,
        folder=folder.path,
        cloud=config.cloud,
        clouds_file=file,
        release=config.release,
        ingress_floating_ip=ingress,
        installed=folder.installed,
    )


def _ingress(config: InstallConfig, report: Report) -> str | None:
    """Return the address for ingress; up to 4.5 install_config has no field for it, so its name shows it."""
    label = config.ingress_floating_ip or "ingress"
    key = config.key_of(FloatingIP.kind, label)
    name = next((str(result.step) for result in report.results if result.step.key == key), "")
    return report.outputs.get(name, config.ingress_floating_ip)


def _with_ingress(diagnostic: Diagnostic, address: str | None) -> Diagnostic:
    """Return a diagnostic whose fix names the routers' address, which check cannot know."""
    return replace(
        diagnostic, fix=diagnostic.fix.replace("--ingress-ip ADDRESS", f"--ingress-ip {address or 'ADDRESS'}")
    )


def warnings(findings: Iterable[Diagnostic], ingress_floating_ip: str | None) -> Iterator[Diagnostic]:
    """Yield all but the errors, without the advice to attach later what ipi attaches itself."""
    for finding in findings:
        attached = ingress_floating_ip and finding.code == "floating-ip.ingress-unset"
        if finding.status is not DiagnosticStatus.ERROR and not attached:
            yield finding
