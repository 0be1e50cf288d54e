"""The object store, which the cluster's registry uses if this user may.

Source: OpenShift installer docs/user/openstack/README.md, "Swift": used when the user has the role
swiftoperator, otherwise the registry gets a volume of 100 GiB.  Up to 4.3 the bootstrap's Ignition is stored there.
"""

from __future__ import annotations

from collections.abc import Iterator

from openstack_prep.base import shell
from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.base.errors import CloudError
from openstack_prep.core.run import query
from openstack_prep.openshift.check.context import CheckContext
from openstack_prep.openshift.check.credentials import create_credential, grant

ROLE = "swiftoperator"
IGNITION_UNTIL = 4
VOLUME = "the registry gets a volume of 100 GiB instead, which one replica at a time can mount"


@query
def why_unusable(context: CheckContext) -> str:
    """Return why the cluster will not use the object store; empty if it will."""
    if not context.cloud.has("object-store"):
        return "the catalogue lists no object store"
    if ROLE not in context.cloud.roles:
        return f"missing role {ROLE} (has: {', '.join(sorted(context.cloud.roles))})"
    try:
        context.cloud.object_store.request("HEAD", "")
    except CloudError as error:
        return f"it refuses this user: {error}"
    return ""


def object_store(context: CheckContext) -> Iterator[Diagnostic]:
    """Yield why the object store will not be used."""
    why = why_unusable(context)
    if not why:
        return
    needed, release = context.release < IGNITION_UNTIL, context.cluster.release
    yield Diagnostic(
        code="object-store.unusable",
        where="object-store",
        what=why,
        why=f"{release} puts the bootstrap's Ignition there, and stops without it" if needed else VOLUME,
        fix=_fix(context),
        status=DiagnosticStatus.ERROR if needed else DiagnosticStatus.WARNING,
    )


def _fix(context: CheckContext) -> str:
    if not context.cloud.has("object-store"):
        return "none needed if a volume is acceptable"
    if ROLE in context.cloud.roles:  # the role of the installer's documentation is not what this Swift requires
        return "ask the administrator for a role of operator_roles (section filter:keystoneauth of Swift's proxy)"
    create, _, who = grant(context, ROLE).partition("  # ")
    role = shell.join(["openstack", "role", "create", "--or-show", ROLE])
    again = f"; then: {create_credential(context)}" if context.cloud.application_credential_id else ""
    return f"{role} && {create}  # {who}{again}"
