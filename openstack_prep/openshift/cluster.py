"""A cluster by its metadata.json or its infraID, and the addresses that the installer leaves to the user.

Source: OpenShift installer docs/source, "What gets created, names and tags"; docs/user/troubleshooting.md
for a lost metadata.json.
"""

from __future__ import annotations

import ipaddress
import json
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import tenacity

from openstack_prep.base.errors import Mistake, PlanRefused, SpecError, WaitTimeout, is_transient
from openstack_prep.base.fields import block
from openstack_prep.base.formats.foreign_text import parse_json
from openstack_prep.base.given_file import name_of, read_text, unreadable
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.cloud_run import only_one
from openstack_prep.cloud.connection import Cloud
from openstack_prep.clusters import installer_names as naming
from openstack_prep.core.model import Resource
from openstack_prep.openshift.installer import METADATA, find_file
from openstack_prep.resources.addresses.address_pairs import AddressPairs
from openstack_prep.resources.addresses.floating_ip_attachment import FloatingIPAttachment
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.cluster_naming import foreign_tags
from openstack_prep.resources.lists.neutron_records import PortRecord, list_records
from openstack_prep.resources.network.port import of_another

PAUSE = 1.0  # seconds between two polls for a port


@dataclass(frozen=True, kw_only=True)
class Metadata:
    """The metadata.json that the installer writes before it creates anything."""

    infra_id: str
    """Prefix of the names of the cluster's resources."""
    cluster_name: str
    """Name in install-config.yaml."""
    cluster_id: str = ""
    """The cluster's UUID; empty if the metadata was rebuilt."""
    cloud: str | None = None
    """Entry of clouds.yaml that the installer used."""

    @property
    def text(self) -> str:
        """A metadata.json that ``openshift-install destroy cluster`` can use."""
        identifier = {naming.TAG: self.infra_id}
        data = {
            "clusterName": self.cluster_name,
            "clusterID": self.cluster_id,
            "infraID": self.infra_id,
            "openstack": {"cloud": self.cloud or "", "identifier": identifier},
        }
        return json.dumps(data, indent=2) + "\n"


def rebuild_metadata(infra_id: str, *, cloud: str | None = None, cluster_name: str | None = None) -> Metadata:
    """Return the metadata of a cluster whose metadata.json is lost; raises SpecError.

    The name is taken from the infraID, for which the installer cuts it to 21 characters.
    """
    if not naming.is_infra_id(infra_id):
        raise SpecError([Mistake("infraID", f"{infra_id!r} is not a valid infraID", _FIX)])
    return Metadata(infra_id=infra_id, cluster_name=cluster_name or infra_id.rpartition("-")[0], cloud=cloud)


_FIX = "write the cluster's name, a hyphen and its five random letters, such as dev-x7k2p"


def read_metadata(path: str | Path) -> Metadata:
    """Return the content of a metadata.json; raises SpecError with all mistakes."""
    path = Path(path)
    lost = "give the installer's folder or the infraID"
    try:
        data = parse_json(read_text(path))
    except OSError as error:
        raise SpecError([Mistake(name_of(path), unreadable(error), lost)]) from error
    except ValueError as error:
        raise SpecError([Mistake(str(path), f"is not JSON ({error})", lost)]) from error
    if not isinstance(data, dict):
        raise SpecError([Mistake(str(path), "is not a mapping", lost)])
    mistakes = list(_mistakes(path, data))
    if mistakes:
        raise SpecError(mistakes)
    return Metadata(
        infra_id=data["infraID"],
        cluster_name=data["clusterName"],
        cluster_id=data.get("clusterID") or "",
        cloud=data["openstack"].get("cloud") or None,
    )


def _mistakes(path: Path, data: Raw) -> Iterator[Mistake]:
    for key in ("clusterName", "infraID"):
        if not isinstance(data.get(key), str):
            yield Mistake(f"{path}: {key}", "is missing or not a string", "use the file that the installer wrote")
    infra_id = data.get("infraID")
    if isinstance(infra_id, str) and not naming.is_infra_id(infra_id):
        yield Mistake(f"{path}: infraID", f"{infra_id!r} is not a valid infraID", _FIX)
    platform = data.get("openstack")
    if not isinstance(platform, dict):
        yield Mistake(f"{path}: openstack", "is missing or not a mapping", "use the file of a cluster on OpenStack")
        return
    identifier = platform.get("identifier")
    named = identifier.get(naming.TAG) if isinstance(identifier, dict) else None
    if named != infra_id:
        what = f"{naming.TAG} is {named!r}, but infraID is {infra_id!r}"
        yield Mistake(f"{path}: openstack.identifier", what, "use the file that the installer wrote")


def find_metadata(given: str | Path) -> Path:
    """Return the metadata.json at a path or in a folder; its copy if destroy has deleted it."""
    return find_file(given, METADATA)


def cluster(metadata: str | Path | None, infra_id: str | None) -> Metadata:
    """Return the cluster by its metadata.json or its infraID; if both are given, they must agree."""
    if metadata is None and infra_id is None:
        raise SpecError([Mistake("cluster", "is not given", "give its metadata.json or its infraID")])
    if metadata is None:
        return rebuild_metadata(infra_id or "")
    found = read_metadata(find_metadata(metadata))
    if infra_id not in (None, found.infra_id):
        what = f"belongs to {found.infra_id}, not to {infra_id}"
        raise SpecError([Mistake(str(metadata), what, "give only one of them, or the right file")])
    return found


@dataclass(frozen=True, kw_only=True)
class ClusterAddresses:
    """The addresses that a cluster needs after the installer: floating IPs on its virtual ports, pairs on its nodes.

    The installer itself attaches the floating IP of the API and, since 4.6, that of ingress if it is in
    install-config.yaml.
    """

    ingress_floating_ip: str | None = None
    """Floating IP for the ingress port, by address or ID."""
    api_floating_ip: str | None = None
    """Floating IP for the API port, by address or ID."""
    vips: Sequence[str] = ()
    """Addresses and networks to allow on all nodes."""

    @property
    def all(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.ingress_floating_ip, self.api_floating_ip, *self.vips)))

    def resources(self, infra_id: str, *, move: bool = False) -> tuple[Resource, ...]:
        """Return what to apply; ``move`` allows to detach a floating IP from another port.  Raises SpecError."""
        ports = {
            naming.api_port(infra_id): self.api_floating_ip,
            naming.ingress_port(infra_id): self.ingress_floating_ip,
        }
        resources: list[Resource] = [
            _by_address_or_id(given, FloatingIPAttachment(port=port, tag=naming.tag(infra_id), move=move))
            for port, given in ports.items()
            if given
        ]
        if self.vips:
            addresses = _blocks(self.vips)
            resources.append(AddressPairs(name=infra_id, infra_id=infra_id, addresses=addresses, prune=False))
        return tuple(resources)


def _by_address_or_id(given: str, attachment: FloatingIPAttachment) -> FloatingIPAttachment:
    """Return an attachment of the floating IP that is given by its address or its id."""
    try:
        return replace(attachment, address=str(ipaddress.ip_address(given)))
    except ValueError:
        return replace(attachment, floating_ip_id=given)


def _blocks(given: Sequence[str]) -> tuple[str, ...]:
    mistakes, found = [], []
    for each in given:
        try:
            found.append(str(block(each)))
        except InvalidValue as error:
            mistakes.append(error.at("vips", each))
    if mistakes:
        raise SpecError(mistakes)
    return tuple(dict.fromkeys(found))


def wait_for_port(
    cloud: Cloud, name: str, *, tag: str, seconds: float, stop: threading.Event | None = None
) -> PortRecord:
    """Return the port with exactly this name in the connection's own project, as soon as it exists.

    Its tag may be set a moment later, and temporary failures of Neutron are tolerated. Setting ``stop`` ends the
    waiting. Raises WaitTimeout, PlanRefused if the port has another cluster's tag, NotUnique if two ports have the
    name, CloudError.
    """

    def look() -> PortRecord | None:
        project_id = cloud.project_id
        with cloud.reading():
            which: Values = {"project_id": project_id, "name": name, "fields": queries.PORT_FIELDS}
            listed = list_records(cloud.network, PortRecord, **which)
        return only_one(listed, f"port {name}")

    stop = stop or threading.Event()
    started = time.monotonic()
    port = tenacity.Retrying(
        retry=tenacity.retry_if_result(lambda found: found is None) | tenacity.retry_if_exception(is_transient),
        stop=tenacity.stop_any(tenacity.stop_after_delay(seconds), tenacity.stop_when_event_set(stop)),
        wait=tenacity.wait_fixed(PAUSE),
        sleep=tenacity.sleep_using_event(stop),
        retry_error_callback=lambda state: state.outcome and state.outcome.result(),
    )(look)
    if port is None:
        waited = time.monotonic() - started
        raise WaitTimeout(
            f"no port {name} in project {cloud.project_id} after {waited:.0f} s; the installer creates it in its "
            "first minutes; check the infraID, and that the cloud entry is scoped to the cluster's project"
        )
    if foreign := foreign_tags(port.tags, tag):
        raise PlanRefused([of_another(f"port {name}", port.id, foreign)])
    return port
