"""Topologies of a spec, a cluster and a project: what is read, and what is drawn of it."""

from __future__ import annotations

from dataclasses import replace

from openstack_prep.base.errors import NotFound
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.entries import ADMINISTRATOR, MEMBER
from openstack_prep.cloud.no_cloud import NoCloud
from openstack_prep.core.executor import JOBS
from openstack_prep.core.model import OwnershipTag
from openstack_prep.pictures.topology.elements import Topology
from openstack_prep.pictures.topology.project_topology import read, topology_of
from openstack_prep.pictures.topology.spec_topology import with_declared
from openstack_prep.resources.identity.project import Project
from openstack_prep.spec import Spec
from openstack_prep.spec.python import spec_from
from openstack_prep.spec.resolution import refuse_mistakes, resolve_spec
from openstack_prep.verbs import opening


def of_declared(spec: Spec) -> Topology:
    """Return what a spec declares, without a cloud; raises SpecError."""
    spec = spec_from(spec)
    refuse_mistakes(spec)
    resolved = resolve_spec(spec, NoCloud.as_cloud(), for_apply=False)
    return with_declared(Topology(subject=f"spec {spec.name}"), resolved.resources, _home(resolved))


def of_spec(cloud: Cloud, spec: Spec, *, jobs: int = JOBS) -> Topology:
    """Return what a spec declares, and what exists in its project; raises SpecError, CloudError."""
    spec = spec_from(spec)
    refuse_mistakes(spec)
    resolved, run = opening.open_run(cloud, spec, jobs)
    return of_run(run, resolved, jobs=jobs)


def of_run(run: CloudRun, spec: Spec, *, jobs: int = JOBS) -> Topology:
    """Return the same for a spec with its resources resolved; raises CloudError."""
    home = _home(spec)
    with run.admin.reading(ADMINISTRATOR):
        project_id = run.find_project_id(home)
        found = Topology(subject="")
        if project_id is not None:
            found = topology_of(read(_reader(run, home), project_id, jobs=jobs), "")
    return with_declared(replace(found, subject=f"spec {spec.name}"), spec.resources, home)


def _reader(run: CloudRun, home: Project | None) -> Cloud:
    """Return the connection that lists what is in a project: that of the run if it may, otherwise the project's own."""
    own = run.find_project_id(home) == run.admin.project_id or "admin" in run.admin.roles
    return run.admin if own else run.find_tenant(home) or run.admin


def _home(spec: Spec) -> Project | None:
    return next((each for each in spec.resources if isinstance(each, Project)), None)


def of_project(cloud: Cloud, project: Project | None = None, *, jobs: int = JOBS) -> Topology:
    """Return what is in a project (default: that of the connection); raises NotFound, CloudError."""
    cloud.allow_parallel(jobs).authenticate()
    with cloud.reading(ADMINISTRATOR if project else MEMBER):
        project_id, name = cloud.project_id, cloud.project_name
        if project and (project.name, project.domain) != (cloud.project_name, cloud.project_domain_name):
            found = CloudRun(cloud, OwnershipTag("")).look(project)
            if found is None:
                raise NotFound(f"project {project.name} does not exist in domain {project.domain}, or is not visible")
            project_id, name = found.id, project.name
        return topology_of(read(cloud, project_id, jobs=jobs), f"project {name}")


def of_cluster(cloud: Cloud, infra_id: str, *, jobs: int = JOBS) -> Topology:
    """Return the part of an installer's cluster in the project of the connection; raises CloudError."""
    cloud.allow_parallel(jobs).authenticate()
    with cloud.reading():
        whole = topology_of(read(cloud, cloud.project_id, jobs=jobs), f"cluster {infra_id}")
    return whole.of_cluster(infra_id)
