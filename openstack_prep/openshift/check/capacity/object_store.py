"""The object store: where the cluster's registry keeps its images, if this user may use it.

Source: OpenShift installer docs/user/openstack/README.md, "Swift": used when the user has the role
swiftoperator, otherwise a volume of 100 GiB stands in.  Up to 4.3 the bootstrap's Ignition lies there.
"""

from __future__ import annotations

from collections.abc import Iterator

from openstack_prep.base.diagnostic import Diagnostic, Status
from openstack_prep.base.errors import CloudError
from openstack_prep.core.run import query
from openstack_prep.openshift.check.scene import Scene

ROLE = "swiftoperator"
IGNITION_UNTIL = 4
VOLUME = "the registry gets a volume of 100 GiB instead, which one replica at a time can mount"


@query
def why_unusable(scene: Scene) -> str:
    """Return why the cluster will not use the object store; nothing when it will."""
    if not scene.cloud.has("object-store"):
        return "the catalogue lists no object store"
    if ROLE not in scene.cloud.roles:
        return f"this user has not the role {ROLE} in the project, but {', '.join(sorted(scene.cloud.roles))}"
    try:
        scene.cloud.object_store.request("HEAD", "", log=False)  # its answer holds the Temp-URL keys
    except CloudError as error:
        return f"it does not serve this user: {error}"
    return ""


def object_store(scene: Scene) -> Iterator[Diagnostic]:
    """Yield why it will not be used."""
    why = why_unusable(scene)
    if not why:
        return
    needed = scene.release < IGNITION_UNTIL
    yield Diagnostic(
        code="object-store.unusable",
        where="object-store",
        what=why,
        why=f"4.{scene.release} puts the bootstrap's Ignition there, and stops without it" if needed else VOLUME,
        fix=_fix(scene),
        status=Status.ERROR if needed else Status.WARNING,
    )


def _fix(scene: Scene) -> str:
    if not scene.cloud.has("object-store"):
        return "nothing, if a volume will do"
    grant = f"openstack role add --user {scene.cloud.user_id} --project {scene.cloud.project_id} {ROLE}"
    again = "; then make the application credential anew" if scene.cloud.application_credential_id else ""
    return f"{grant}  # as an administrator{again}"
