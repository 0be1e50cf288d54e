"""``credential rotate``: new application credentials for a spec."""

from __future__ import annotations

from dataclasses import replace

from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.observation import JOBS
from openstack_prep.core.resource import provided_keys
from openstack_prep.resources.credentials.application_credential import ApplicationCredential, RotatedCredential
from openstack_prep.resources.identity.role_assignment import RoleAssignment
from openstack_prep.spec import Spec
from openstack_prep.spec.python import spec_from
from openstack_prep.verbs import api
from openstack_prep.verbs.opening import LivePlan


def plan_rotation(
    cloud: Cloud,
    spec: Spec,
    *,
    credential: str | None = None,
    keep_old: bool = False,
    allow_replace: bool = False,
    jobs: int = JOBS,
) -> LivePlan:
    """Return a plan that renews all application credentials of a spec or a named one, even if nothing differs.

    ``cloud`` is the connection of the user who applies the ``spec``. ``credential`` selects one by its name;
    ``keep_old`` keeps the old ones, as entries ``CLOUD-old`` of clouds.yaml. ``allow_replace`` and ``jobs`` are those
    of ``plan``. A credential that is not in use yet, or whose secret is lost, is planned as by ``plan``. The role
    assignments that the credentials need are applied, too: a new credential has the roles of its user. Raises SpecError
    if the spec declares no such credential, CloudError.
    """
    chosen = spec_from(spec).limited_to("application_credential", credential)
    needs = frozenset(key for resource in chosen.chosen for key in resource.needs())
    assignments = (resource for resource in chosen.resources if isinstance(resource, RoleAssignment))
    needed = (assignment.key for assignment in assignments if needs.intersection(provided_keys(assignment)))
    chosen = replace(chosen, only=(chosen.only or frozenset()) | frozenset(needed))
    found = api.show(cloud, chosen, jobs=jobs)
    resources = tuple(
        RotatedCredential.of(resource, observed, keep_old)
        if isinstance(resource, ApplicationCredential)
        and chosen.is_chosen(resource)
        and (observed := found[resource.key])
        else resource
        for resource in chosen.resources
    )
    return api.plan(cloud, replace(chosen, resources=resources), allow_replace=allow_replace, jobs=jobs)
