"""Ports, as other kinds read them: one list a project.

Source: Networking API v2.0, "Ports".
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import tenacity

from openstack_prep.base.errors import Mistake, PlanRefused, WaitTimeout, passes
from openstack_prep.base.raw import Raw
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.site import Site, only_one
from openstack_prep.core.run import query
from openstack_prep.resources.lists.installer_names import foreign_tags
from openstack_prep.resources.lists.neutron_records import PortRecord

FIELDS = (
    "id",
    "name",
    "project_id",
    "network_id",
    "mac_address",
    "device_id",
    "device_owner",
    "description",
    "fixed_ips",
    "security_groups",
    "allowed_address_pairs",
    "port_security_enabled",
    "tags",
    "revision_number",
)
PAUSE = 1.0  # seconds between two looks for a port that is to come


@query
def rows_of(site: Site, project_id: str | None) -> Sequence[Raw]:
    """Return all ports of a project as Neutron gives them; none when it does not exist yet."""
    if project_id is None:
        return ()
    return site.admin.network.list("/ports", "ports", project_id=project_id, fields=FIELDS)


@query
def ports_of(site: Site, project_id: str | None) -> Sequence[PortRecord]:
    """Return all ports of a project; none when it does not exist yet."""
    return list(map(PortRecord.read, rows_of(site, project_id)))


def wait_for_port(cloud: Cloud, name: str, *, tag: str, seconds: float, stop: threading.Event | None = None) -> Raw:
    """Return the port of exactly that name in the connection's own project, as soon as it is there.

    Its tag may come a moment later; a Neutron that is away, too, is waited for.  ``stop``, once it is set,
    ends the waiting.  Raises WaitTimeout, PlanRefused when the port carries another cluster's tag, NotUnique
    when two have the name, CloudError.
    """

    def look() -> Raw | None:
        project_id = cloud.project_id
        with cloud.reading():
            listed = cloud.network.list("/ports", "ports", project_id=project_id, name=name, fields=FIELDS)
        return only_one(listed, f"port {name}")

    stop = stop or threading.Event()
    started = time.monotonic()
    port = tenacity.Retrying(
        retry=tenacity.retry_if_result(lambda found: found is None) | tenacity.retry_if_exception(passes),
        stop=tenacity.stop_any(tenacity.stop_after_delay(seconds), tenacity.stop_when_event_set(stop)),
        wait=tenacity.wait_fixed(PAUSE),
        sleep=tenacity.sleep_using_event(stop),
        retry_error_callback=lambda state: state.outcome and state.outcome.result(),
    )(look)
    if port is None:
        waited = time.monotonic() - started
        raise WaitTimeout(
            f"no port {name} in project {cloud.project_id} after {waited:.0f} s; the installer makes it in its "
            "first minutes: is the infraID right, and the cloud entry that of the cluster's project?"
        )
    if foreign := foreign_tags(port["tags"], tag):
        raise PlanRefused([of_another(f"port {name}", port["id"], foreign)])
    return port


def of_another(where: str, port_id: str, foreign: Sequence[str]) -> Mistake:
    """Return what is wrong with a port that has the name we want and belongs to another cluster."""
    return Mistake(where, f"{port_id} carries {', '.join(foreign)}: another cluster's", "correct the infraID")
