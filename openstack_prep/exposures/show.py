"""``exposures show``: from a spec to the state of the paths to its exposures."""

from __future__ import annotations

from pathlib import Path

from openstack_prep.base.errors import SpecError
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.executor import JOBS
from openstack_prep.exposures.paths.looking import look as look_at
from openstack_prep.exposures.paths.report import Report
from openstack_prep.exposures.paths.running import Running
from openstack_prep.spec import Spec
from openstack_prep.verbs.opening import open_run


def look(
    cloud: Cloud,
    spec: Spec,
    *,
    path: str = "SPEC",
    hosts: Path | None = None,
    running: Running | None = None,
    jobs: int = JOBS,
) -> Report:
    """Return the exposures of a spec: which address leads to what, and the state of each hop; only reads.

    ``path`` is the spec's file, for the commands in ``fix``; ``hosts`` is a hosts file to read before the resolver;
    ``running`` is what one of its clusters has. Raises SpecError when the spec has no exposed clusters; CloudError.
    """
    spec, run = open_run(cloud, spec, jobs)
    with cloud.reading():
        try:
            return look_at(run, spec.resources, spec=spec.name, path=path, hosts=hosts, running=running)
        except SpecError as error:
            raise SpecError(spec.placed(error.mistakes)) from None
