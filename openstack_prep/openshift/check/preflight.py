"""All checks before an installation: the file, the entry of clouds.yaml, the cloud."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from openstack_prep.base import shell
from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus, by_line, by_weight, errors
from openstack_prep.base.errors import CloudError, ConfigError, Mistake
from openstack_prep.base.given_file import read_text
from openstack_prep.base.invalid import shown
from openstack_prep.base.raw import Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import connect_entry
from openstack_prep.openshift.check import check, services
from openstack_prep.openshift.check.agent_config import agent_config
from openstack_prep.openshift.check.context import READER, CheckContext
from openstack_prep.openshift.check.entry import entry
from openstack_prep.openshift.clientconfig import InstallerEntry, Login, find_entry, for_client
from openstack_prep.openshift.install_config import (
    FileContents,
    InstallConfigFields,
    InstallConfigValues,
    findings,
    mistakes,
    read,
    releases,
)
from openstack_prep.openshift.install_config.fields import FIELDS
from openstack_prep.openshift.install_config.paths import EXTERNAL, NONE, OPENSTACK, WITHOUT_CLOUD, value_of
from openstack_prep.openshift.install_config.reading import is_deprecated, is_fatal
from openstack_prep.openshift.install_config.releases import FIPS_HOSTS, NEWEST, minor, name
from openstack_prep.openshift.installer import METADATA, guard_of, infra_id_in, to_create_again, to_destroy
from openstack_prep.openshift.names.hosts import ROUTES
from openstack_prep.openshift.names.resolver import resolve
from openstack_prep.reports.codes import documented

# Clusters of the platforms none and external, on machines of one's own, and those of the agent-based installer.
#
# The installer asks no cloud for them.  Source: OpenShift installer at 5.0: pkg/types/validation/installconfig.go
# (capabilities) and, of 4.12 to 5.0, pkg/asset/agent/installconfig.go.

AGENT_CONFIG = "agent-config.yaml"
CONTROLLER = "platform.external.cloudControllerManager"
AGENT_REFUSES = "openshift-install agent create image refuses it"
MASTERS = ((19, (1, 2, 3, 4, 5)), (18, (1, 3, 4, 5)), (0, (1, 3)))
"""Since each release, how many masters the agent-based installer takes (validateControlPlaneConfiguration)."""
FIRST_WITH_NODES = 14  # of platform none; 4.12 and 4.13 take one machine alone
WITHOUT_FEATURE_SETS = releases.Span(15, 22)


def mandatory(given: InstallConfigValues) -> Mapping[str, int] | None:
    """Return the capabilities that a cluster without a cloud needs, by first release; None for OpenStack."""
    if given.platform not in WITHOUT_CLOUD:
        return None
    needed = {"Ingress"}
    if given.platform == EXTERNAL:
        needed |= {"CloudCredential"} | ({"CloudControllerManager"} if given.value(CONTROLLER) == "External" else set())
    return {name: since for name, since in releases.MANDATORY.items() if name in needed}


# --- names --------------------------------------------------------------------------------


def names(path: Path, cluster: InstallConfigFields, hosts: Path) -> Iterator[Diagnostic]:
    """Yield names of a cluster whose addresses are the user's that do not resolve here."""
    domain = f"{cluster.cluster_name}.{cluster.base_domain.rstrip('.')}"
    wanted = {
        f"api.{domain}": (DiagnosticStatus.ERROR, "the installer waits for the API by that name, then fails"),
        f"api-int.{domain}": (DiagnosticStatus.WARNING, "the nodes join by that name; it may resolve only for them"),
        f"{ROUTES[0]}.apps.{domain}": (DiagnosticStatus.WARNING, "nobody can log in to the console from here"),
    }
    found = resolve(wanted, hosts=hosts)
    for host, (status, why) in wanted.items():
        if found[host].addresses:
            continue
        nothing = "no name server answers in time" if found[host].late else "no such name in DNS"
        yield Diagnostic(
            code="dns.timeout" if found[host].late else "dns.missing",
            where=f"names: {host}",
            what=f"nothing in {hosts}, and {nothing}",
            why=why,
            fix=f"openstack-prep names --install-config {shell.quote(str(path))} --api ADDR --ingress ADDR "
            f"--api-int ADDR --as hosts --write {shell.quote(str(hosts))}",
            status=status,
        )


# --- the agent-based installer ------------------------------------------------------------


def agent_based(given: InstallConfigValues, cluster: InstallConfigFields) -> Iterator[Diagnostic]:
    """Yield what the platform, and an agent-config.yaml in the same folder, demand of the file."""
    if given.platform == EXTERNAL:
        yield from _controller(given)
    path = given.path and given.path.with_name(AGENT_CONFIG)
    if path is None or not path.exists():
        return
    if given.platform not in WITHOUT_CLOUD:
        yield documented(
            code="agent-config.other-platform",
            where=f"platform.{OPENSTACK}",
            what=f"{path} is for the agent-based installer, which does not know this platform",
            status=DiagnosticStatus.WARNING,  # create cluster does not look at that file
        )
        return
    release = releases.minor(cluster.release)
    yield from _machines(given, release)
    yield from agent_config(path, release, {each: _replicas(given, each) for each in ("controlPlane", "compute")})


def _controller(given: InstallConfigValues) -> Iterator[Diagnostic]:
    kind, name = given.value(CONTROLLER), given.value("platform.external.platformName")
    if kind not in (None, "", "External"):
        fix = "write External, or leave it out"
        yield _refused(CONTROLLER, f"is {shown(kind)}", fix, "the bootstrap machine cannot create the Infrastructure")
    elif name == "oci" and kind != "External":
        yield _refused(CONTROLLER, "is missing; platformName oci requires it", "write External", AGENT_REFUSES)


def _replicas(given: InstallConfigValues, section: str) -> int:
    """Return the number of machines of a section; of the lists, all pools together."""
    node = value_of(given.data, section)
    if node is None and section == "arbiter":
        return 0
    pools = node if isinstance(node, list) and node else [node]
    numbers = [value_of(pool, "replicas") for pool in pools]
    return sum(3 if number is None else number for number in numbers if number is None or isinstance(number, int))


def _machines(given: InstallConfigValues, release: int) -> Iterator[Diagnostic]:
    """Yield numbers of machines, and what goes with one alone (agent/installconfig.go)."""
    masters, arbiters, workers = (_replicas(given, each) for each in ("controlPlane", "arbiter", "compute"))
    where = "controlPlane.replicas"
    fenced = value_of(given.data, "controlPlane.fencing.credentials")
    known = next(numbers for since, numbers in MASTERS if release >= since)
    alone = masters == 1 and not workers
    if release < FIRST_WITH_NODES and given.platform == NONE and not alone:
        what = f"and compute: {masters} and {workers} machines; {releases.name(release)} takes one alone"
        yield _refused(where, what, "write replicas: 1, and 0 in compute", AGENT_REFUSES)
    elif masters not in known:
        numbers = ", ".join(str(each) for each in known if each != 2)
        fix = f"write {numbers}{' or 2 with an arbiter' if 2 in known else ''}"
        yield _refused(where, f"is {masters}", fix, AGENT_REFUSES)
    elif masters == 2 and not arbiters and not fenced:
        what = "is 2, which requires an arbiter or fencing"
        yield _refused(where, what, "write 3, or add arbiter with replicas: 1", AGENT_REFUSES)
    elif masters == 1 and workers:
        what = f"{workers} beside a control plane of one machine, which has none"
        yield _refused("compute", what, "write replicas: 0 there, or 3 in controlPlane", AGENT_REFUSES)
    network = given.value("networking.networkType")
    if alone and network not in (None, "", "OVNKubernetes"):
        what = f"is {shown(network)}, on a cluster of one machine"
        yield _refused("networking.networkType", what, "write OVNKubernetes", AGENT_REFUSES)
    chosen = given.value("featureSet")
    if chosen not in (None, "") and release in WITHOUT_FEATURE_SETS:
        yield _refused("featureSet", f"is {shown(chosen)}", "leave it out", AGENT_REFUSES)


def _refused(where: str, what: str, fix: str, why: str) -> Diagnostic:
    return Diagnostic(code="install-config.refused", where=where, what=what, why=why, fix=fix)


HOSTS = Path("/etc/hosts")


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The result of all checks."""

    path: Path
    """The install-config.yaml."""
    release: str
    """The release it was read for, such as 4.18."""
    cloud: str | None
    """The entry of clouds.yaml that the installer uses; None for the platforms none and external."""
    findings: tuple[Diagnostic, ...]
    """Errors first."""

    @property
    def placed(self) -> tuple[Diagnostic, ...]:
        """The findings, those about a field with the file and its line; raises SpecError if it cannot be read.

        Errors come first, and each status by line.
        """
        given = InstallConfigValues(self.path, without_cloud=True)
        found = by_line(replace(finding, where=given.place_of(finding.where)) for finding in self.findings)
        return tuple(by_weight(found))

    @property
    def errors(self) -> int:
        return self._count(DiagnosticStatus.ERROR)

    @property
    def warnings(self) -> int:
        return self._count(DiagnosticStatus.WARNING)

    @property
    def unknown(self) -> int:
        return self._count(DiagnosticStatus.UNKNOWN)

    def _count(self, status: DiagnosticStatus) -> int:
        return sum(finding.status is status for finding in self.findings)

    def data(self) -> Values:
        """Return it as JSON has it."""
        return {
            "install_config": str(self.path),
            "release": self.release,
            "cloud": self.cloud,
            "errors": self.errors,
            "warnings": self.warnings,
            "unknown": self.unknown,
            "findings": [finding.data() for finding in self.findings],
        }


def preflight(
    path: str | Path,
    release: str,
    *,
    installer: Path | None = None,
    hosts: Path = HOSTS,
    clouds_file: Path | None = None,
    jobs: int = 8,
) -> Verdict:
    """Check everything that ``openshift-install create cluster`` needs for this install-config.yaml.

    ``release``: such as 4.18.  ``installer``: the openshift-install, to ask it for its image.  ``hosts``:
    the hosts file of the machine it will run on.  ``clouds_file``: the clouds.yaml that it will be given by
    OS_CLIENT_CONFIG_FILE; default: the one that it finds in this environment.  The cloud is that of the entry
    which it will take; nothing is changed there.  For the platforms none and external no cloud is asked.  A cluster
    that was installed from that folder is the only diagnostic.
    Raises SpecError when the file, or clouds.yaml, cannot be read.
    """
    path = Path(path)
    given = InstallConfigValues(path, without_cloud=True)
    cluster, contents = read(given, release)
    found = list(installed(path))
    if not found and given.platform in WITHOUT_CLOUD:
        found = [*_of_document(given, cluster, contents), *fips(cluster), *names(path, cluster, hosts)]
    elif not found:
        mine = find_entry(cluster.cloud, clouds_file)
        of_entry = list(entry(cluster.cloud, clouds_file))
        found = [*_of_document(given, cluster, contents), *fips(cluster), *of_entry]
        blocking = [diagnostic for diagnostic in of_entry if mine is None or not _is_token(mine, diagnostic)]
        if mine is not None and not fatal(blocking):
            found += _of_cloud(mine, cluster, contents, path, installer, hosts, jobs)
    return _verdict(path, given, cluster, found)


def check_file(path: str | Path, release: str) -> Verdict:
    """Check an install-config.yaml alone, without clouds.yaml and without a cloud; raises SpecError."""
    given = InstallConfigValues(Path(path), without_cloud=True)
    cluster, contents = read(given, release)
    return _verdict(Path(path), given, cluster, _of_document(given, cluster, contents))


def _verdict(
    path: Path, given: InstallConfigValues, cluster: InstallConfigFields, found: Iterable[Diagnostic]
) -> Verdict:
    cloud = None if given.platform in WITHOUT_CLOUD else cluster.cloud
    return Verdict(path=path, release=cluster.release, cloud=cloud, findings=tuple(by_weight(found)))


# --- the file -----------------------------------------------------------------------------


def _of_document(
    given: InstallConfigValues, cluster: InstallConfigFields, contents: FileContents
) -> Iterator[Diagnostic]:
    """Yield what is wrong with the file for its release, without asking the cloud."""
    if minor(cluster.release) > NEWEST:
        yield _newer(cluster.release)
    for finding in findings(given.data, cluster.release):
        code, why = _consequence(finding)
        yield Diagnostic(
            code=code,
            where=finding.where,
            what=finding.what,
            why=why,
            fix=finding.fix,
            status=DiagnosticStatus.ERROR if is_fatal(finding) else DiagnosticStatus.WARNING,
        )
    yield from agent_based(given, cluster)
    for mistake in mistakes(cluster, contents, mandatory(given)):
        yield Diagnostic(
            code=mistake.code,
            where=_in_the_file(mistake, minor(cluster.release)),
            what=_in_its_words(mistake.what, minor(cluster.release)),
            why="the installer refuses it, or creates a cluster that does not work",
            fix=_in_its_words(mistake.fix, minor(cluster.release)),
        )


def _newer(release: str) -> Diagnostic:
    known = name(NEWEST)
    return documented(
        code="install-config.newer-release",
        where="release",
        what=f"{release} is newer than {known}, the newest release that this openstack-prep knows",
        why=f"the file is checked by the rules of {known}, which {release} may have changed",
        status=DiagnosticStatus.WARNING,
    )


def _consequence(mistake: Mistake) -> tuple[str, str]:
    """Return the code of a mistake in the file, and what the installer does because of it."""
    if is_fatal(mistake):
        code, why = "install-config.refused", "the installer stops"
    elif is_deprecated(mistake):
        code, why = "install-config.deprecated", "this installer accepts it; a later one may not"
    else:
        code, why = "install-config.ignored", "the setting may have no effect"
    return code, why


def _in_the_file(mistake: Mistake, release: int) -> str:
    """Return the installer's name of a field; fields that it does not have keep the spec's name."""
    name, bracket, index = mistake.where.partition("[")
    field = next((each for each in FIELDS if each.of == name), None)
    spelling = field and (field.spelling(release) or field.spellings[0])
    return spelling.path.replace("[]", "") + bracket + index if spelling else mistake.where


def _in_its_words(text: str, release: int) -> str:
    """Return a text with the installer's names of fields; names without a dot or underscore may be plain English."""
    installer_names = {
        field.of: (field.spelling(release) or field.spellings[0]).path.replace("[]", "") for field in FIELDS
    }
    names = "|".join(
        re.escape(installer_name)
        for installer_name in sorted(installer_names, key=len, reverse=True)
        if re.search("[._]", installer_name)
    )
    return re.sub(rf"(?<![\w.])({names})\b", lambda found: installer_names[found[1]], text)


# --- the cloud ----------------------------------------------------------------------------


def _of_cloud(
    mine: InstallerEntry,
    cluster: InstallConfigFields,
    contents: FileContents,
    path: Path,
    installer: Path | None,
    hosts: Path,
    jobs: int,
) -> list[Diagnostic]:
    """Return what is wrong in the cloud, or why the login fails."""
    try:
        cloud = connect_entry(cluster.cloud, for_client(mine.settings)).allow_parallel(jobs)
        found = list(services.identity(cloud, minor(cluster.release)))
        found += [] if fatal(found) else services.region(cloud.authenticate(), mine.settings.get("region_name"))
        if fatal(found):
            return found
    except (CloudError, ConfigError) as error:
        secured = f"; {mine.secure_file} has a part of the entry, which goes first" if mine.secure_file else ""
        refused = documented(
            code="login.failed",
            where=f"{mine.path}: {cluster.cloud}",
            what=f"{error}{secured}",
            fix=f"openstack --os-cloud {shell.quote(cluster.cloud)} token issue  # correct the entry until it succeeds",
        )
        return [refused]
    run = CloudRun(cloud, READER)
    expires = cloud.expires if Login.of(mine.settings).is_token else None
    context = CheckContext(
        run=run,
        cluster=cluster,
        contents=contents,
        path=path,
        hosts=hosts,
        token_expires=expires,
        installer=installer,
    )
    return [*found, *check(context, jobs=jobs)]


def _is_token(mine: InstallerEntry, found: Diagnostic) -> bool:
    """Whether a finding is about a token, by which one can log in nevertheless."""
    return found.code == "credential.short-lived" and Login.of(mine.settings).is_token


def fatal(found: Iterable[Diagnostic]) -> bool:
    return bool(errors(found))


# --- a folder from which a cluster was installed: another installation would lose its metadata.json, or fail ---
#
# Source: openshift/installer, pkg/asset/cluster: an existing metadata.json is overwritten (metadata.go); the files of
# an earlier installation make ``create cluster`` fail after that (cluster.go).  See ``installer.py``.


def installed(path: Path) -> Iterator[Diagnostic]:
    """Yield the cluster that was installed from an install-config's folder, if there is one."""
    metadata, guard = path.parent / METADATA, guard_of(path.parent)
    if not metadata.exists() and not guard:
        return
    verify = shell.join(["openstack-prep", "verify", "--metadata", str(metadata)])
    again = f"for a new one use another folder, or first {to_destroy(path.parent)}, then {to_create_again(path.parent)}"
    lost = "the installer would overwrite this file, without which it cannot destroy the cluster"
    fails = f"because of {guard} the installer fails, after it has deleted install-config.yaml"
    yield Diagnostic(
        code="cluster.installed",
        where=str(metadata if metadata.exists() else guard),
        what=f"cluster {_infra_id(metadata)} was installed from this folder, or its installation has begun",
        why="; ".join([lost] * metadata.exists() + [fails] * (guard is not None)),
        fix=f"{verify}  # verifies that cluster; {again}" if metadata.exists() else again,
    )


def _infra_id(metadata: Path) -> str:
    """Return the infraID, as far as it can be read; the installer does not read it either."""
    try:
        text = read_text(metadata)
    except (OSError, ValueError):
        text = ""
    return infra_id_in(text) or "(of an infraID that cannot be read)"


# --- the machine that runs the installer: this one ---
#
# Source: OpenShift installer pkg/hostcrypt (hostcrypt.go, dynamic.go, static.go): a cluster in FIPS mode needs a host
# in FIPS mode, and a build of the installer that is FIPS-capable; 4.15 warns (9b5b235e5f), 4.16 and later refuse
# (b261deb2ae) unless OPENSHIFT_INSTALL_SKIP_HOSTCRYPT_VALIDATION is set.


FIPS_FILE = Path("/proc/sys/crypto/fips_enabled")
SKIP = "OPENSHIFT_INSTALL_SKIP_HOSTCRYPT_VALIDATION"


def fips(cluster: InstallConfigFields, fips_file: Path = FIPS_FILE) -> Iterator[Diagnostic]:
    """Yield why this machine cannot install a cluster in FIPS mode."""
    if not cluster.fips or minor(cluster.release) not in FIPS_HOSTS or os.environ.get(SKIP):
        return
    try:
        text = fips_file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        what = f"{fips_file} cannot be read, so this machine is not known to be in FIPS mode: {error}"
    else:
        if text == "1":
            return
        what = f"this machine is not in FIPS mode: {fips_file} is {text[:20]!r}"
    yield Diagnostic(
        code="host.no-fips",
        where="fips",
        what=what,
        why="since 4.16 the installer installs a cluster in FIPS mode only from a host in FIPS mode, and only its "
        "FIPS-capable build does; 4.15 warns",
        fix="run the installer on such a host, as the openshift-install-fips that "
        "oc adm release extract --command=openshift-install-fips RELEASE_IMAGE writes",
        status=DiagnosticStatus.WARNING,  # the installer may run on another machine
    )
