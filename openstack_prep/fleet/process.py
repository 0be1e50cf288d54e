"""What the targets of one process share: a connection per entry, region and phase of a run, what they read, and images.

A phase is a planning or a carrying out of a fleet. This is the one place where targets get their connection.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from pathlib import Path

from openstack_prep.base.formats.yaml_places import Document, shared_document
from openstack_prep.base.secret import without_prompts
from openstack_prep.cloud.connection import Cloud, connect
from openstack_prep.cloud.shared_cloud import SharedCloud
from openstack_prep.download.spool import Contents
from openstack_prep.fleet.order import Order
from openstack_prep.resources.identity.project import Project
from openstack_prep.spec import Spec
from openstack_prep.spec.spec import read_spec
from openstack_prep.spec.variables import Given, Origin

FROM = 3
"""Targets of a cloud from which on their plans share what they read."""
FRESH = 300.0
"""Seconds for which plans of a wave share what was read."""
MOST = 4
"""Phases that are remembered: nobody tells a worker of a scheduler that a phase has ended."""


class _Phase:
    """What the targets of one phase share; the first thread that needs something makes it, and others wait for it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.clouds: dict[tuple[str | None, str | None], Cloud] = {}
        self.shared: dict[Cloud, tuple[int, float, Cloud]] = {}
        self.contents = Contents()

    def cloud(self, entry: str | None, region: str | None, parallel: int) -> Cloud:
        """Return the connection of an entry in a region."""
        with self.lock:
            if (entry, region) not in self.clouds:
                made = connect(entry, region=region).allow_parallel(parallel)
                made.contents = self.contents
                self.clouds[entry, region] = made
            return self.clouds[entry, region]

    def for_plans(self, cloud: Cloud, targets: int, wave: int) -> Cloud:
        """Return a connection whose reads so many targets share, in one wave: the one before has changed the cloud."""
        with self.lock:
            of_wave, made, found = self.shared.get(cloud, (wave, -FRESH, cloud))
            if of_wave != wave or time.monotonic() - made >= FRESH:
                found = SharedCloud(cloud, targets)
                self.shared[cloud] = wave, time.monotonic(), found
            return found


_phases: dict[str, _Phase] = {}
_lock = threading.Lock()


def _phase(name: str) -> _Phase:
    """Return a phase; there may be several, as in a worker of two fleets."""
    with _lock:
        found = _phases.pop(name, None) or _Phase()
        while len(_phases) >= MOST:
            del _phases[next(iter(_phases))]  # contents that somebody still reads stay until they are idle
        _phases[name] = found
        return found


def end_phase(name: str) -> None:
    """Forget the connections of a phase, and the contents of images."""
    with _lock:
        ended = _phases.pop(name, None)
    if ended is not None:
        ended.contents.close()


def spec_of(order: Order, *, needs_secrets: bool = True) -> Spec:
    """Return the spec of a target with its values, those of secrets only if they are needed; raises SpecError."""
    origin = Origin(Path(order.folder), order.places)
    files = tuple(map(Path, order.vars_files))
    given = Given(
        files=files,
        values=order.variables,
        origin=origin,
        environment=order.environment,
        needs_secrets=needs_secrets,
    )
    with without_prompts():  # a question per target is no way, and threads would ask at the same time
        return read_spec(Path(order.spec), given, read=shared_document)


def content_of(spec: Spec) -> str:
    """Return a digest of the files of a spec, and of the values of its variables that are no secrets."""
    texts = [part.document.content for part in spec.parts if isinstance(part.document, Document)]
    return hashlib.sha256(json.dumps([texts, dict(spec.values)], sort_keys=True, default=str).encode()).hexdigest()


def cloud_of(order: Order) -> Cloud:
    """Return the connection that a target is carried out with; raises ConfigError."""
    return _phase(order.phase).cloud(order.cloud, order.region, order.parallel)


def cloud_for_reading(order: Order) -> Cloud:
    """Return the connection for what writes nothing: targets of one cloud share what they read; raises ConfigError."""
    cloud = cloud_of(order)
    return _phase(order.phase).for_plans(cloud, order.neighbours, order.wave) if order.neighbours >= FROM else cloud


def cloud_for_applying(order: Order, spec: Spec) -> Cloud:
    """Return the connection for a plan that is carried out; raises ConfigError, CloudError.

    What targets share is of use to a plan that may be empty: any other is created again by requests of its own. It is
    not empty if the spec's project is still to be created.
    """
    cloud = cloud_for_reading(order)
    projects = [resource for resource in spec.resources if isinstance(resource, Project) and order.verb == "apply"]
    if isinstance(cloud, SharedCloud) and any(cloud.lacks_project(project.name) for project in projects):
        return cloud.own
    return cloud
