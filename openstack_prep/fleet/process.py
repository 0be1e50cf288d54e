"""What the targets of one process share: documents of specs, and one connection per entry, region and phase of a run.

A phase is a planning or a carrying out of a fleet. This is the one place where targets get their connection.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

from openstack_prep.base.formats.yaml_places import Document
from openstack_prep.base.secret import without_prompts
from openstack_prep.cloud.connection import Cloud, connect
from openstack_prep.fleet.order import Order
from openstack_prep.spec import Spec
from openstack_prep.spec.loading import read_spec
from openstack_prep.spec.variables import Given, Origin

MOST_DOCUMENTS = 1000


class _Shared:
    """The registry; the first thread that needs something makes it, and others wait for it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.phase = ""
        self.clouds: dict[tuple[str | None, str | None], Cloud] = {}
        self.documents: dict[tuple[str, int, int], Document] = {}

    def document(self, path: Path) -> Document:
        """Return a document, which is parsed again only when the file has changed: that takes most of the time."""
        try:
            now = os.stat(path)
        except OSError:
            return Document(path)  # it says what is wrong
        if not os.path.isfile(path):
            return Document(path)
        key = str(path), now.st_mtime_ns, now.st_size
        with self.lock:
            found = self.documents.get(key)
        if found is None:
            found = Document(path)
            with self.lock:
                if len(self.documents) >= MOST_DOCUMENTS:
                    self.documents.clear()
                self.documents[key] = found
        return found

    def cloud(self, entry: str | None, region: str | None, phase: str, parallel: int) -> Cloud:
        """Return the connection of an entry in a region; another phase ends those of the last one."""
        with self.lock:
            if phase != self.phase:
                self.phase, self.clouds = phase, {}
            if (entry, region) not in self.clouds:
                self.clouds[entry, region] = connect(entry, region=region).allow_parallel(parallel)
            return self.clouds[entry, region]

    def end(self, phase: str) -> None:
        """Forget the connections of a phase."""
        with self.lock:
            if phase == self.phase:
                self.phase, self.clouds = "", {}


_shared = _Shared()
end_phase = _shared.end


def spec_of(order: Order) -> Spec:
    """Return the spec of a target with its values; raises SpecError."""
    origin = Origin(Path(order.folder), order.places)
    given = Given(files=tuple(map(Path, order.vars_files)), values=order.variables, origin=origin)
    with without_prompts():  # a question per target is no way, and threads would ask at the same time
        return read_spec(Path(order.spec), given, read=_shared.document)


def entry_of(order: Order, spec: Spec) -> str | None:
    """Return the entry of clouds.yaml for a target; None for OS_CLOUD or OS_* variables."""
    return order.cloud or order.fallback or spec.clouds.admin


def cloud_of(order: Order, spec: Spec) -> Cloud:
    """Return the connection that a target is carried out with; raises ConfigError."""
    return _shared.cloud(entry_of(order, spec), order.region, order.phase, order.parallel)
