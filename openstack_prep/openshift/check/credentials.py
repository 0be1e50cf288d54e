"""The credential that the cluster will use: the installer copies the entry of clouds.yaml into the cluster.

Source: OpenShift installer docs/user/openstack/README.md and privileges.md; Identity API v3 "Application
credentials".
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from openstack_prep.base.diagnostic import Diagnostic, Status
from openstack_prep.openshift.check.context import CheckContext

SINCE = 12
READER = "reader"  # Keystone's default roles (Identity, "Default roles"); member implies it
INSTALLATION = timedelta(hours=3)
COPIED = "the entry becomes the cluster's own credential, in its secret kube-system/openstack-credentials"


def credentials(context: CheckContext) -> Iterator[Diagnostic]:
    """Yield why this credential does not suit a cluster."""
    where = f"clouds.yaml: {context.cloud.name}"
    yield from _reading(context, where)
    if context.cloud.application_credential_id is None:
        if context.release >= SINCE:
            yield _password(context, where)
        return
    if context.release < SINCE:
        yield Diagnostic(
            code="credential.unsupported",
            where=where,
            what="is an application credential",
            why=f"{context.cluster.release} does not work with application credentials; 4.{SINCE} and later do",
            fix="name an entry with user and password",
        )
    yield from _expiring(context, where, context.cloud.application_credential_id)


def _reading(context: CheckContext, where: str) -> Iterator[Diagnostic]:
    """Yield whether the token has no other role than reader, to which no policy allows writing."""
    if {role.lower() for role in context.cloud.roles} == {READER}:
        create = ("application", "credential", "create", "--role", "member", context.cluster.cluster_name)
        yield Diagnostic(
            code="credential.read-only",
            where=where,
            what=f"gives only the role {READER} in its project",
            why="it may list everything and create nothing: the installer passes its checks, and fails when it creates",
            fix=f"{shlex.join(['openstack', *create])}  # by a user with the role member; then use it in the entry",
        )


def _password(context: CheckContext, where: str) -> Diagnostic:
    return Diagnostic(
        code="credential.password",
        where=where,
        what="holds a user's password",
        why=f"{COPIED}: with the password, and changing the password stops the cluster",
        fix=context.openstack("application", "credential", "create", context.cluster.cluster_name)
        + "  # and use it in the entry; or declare application_credentials in a spec",
        status=Status.WARNING,
    )


def _expiring(context: CheckContext, where: str, credential_id: str) -> Iterator[Diagnostic]:
    path = f"/users/{context.cloud.user_id}/application_credentials/{credential_id}"
    found = context.cloud.identity.get(path)["application_credential"]
    expires = found["expires_at"]
    if expires is None:
        return
    name = context.cluster.cluster_name
    create = ["application", "credential", "create", f"{name}-2" if found["name"] == name else name]
    moment = datetime.fromisoformat(expires).replace(tzinfo=UTC)
    soon = moment - datetime.now(UTC) < INSTALLATION
    yield Diagnostic(
        code="credential.expires",
        where=where,
        what=f"is an application credential that expires at {expires} (UTC)",
        why=f"{COPIED}: "
        + (
            "it expires during the installation"
            if soon
            else "afterwards the cluster can neither scale nor mount volumes"
        ),
        # an application credential creates no other one, unless it is unrestricted
        fix=f"{shlex.join(['openstack', *create])}  # as the user, without --expiration; then use it in the entry",
        status=Status.ERROR if soon else Status.WARNING,
    )
