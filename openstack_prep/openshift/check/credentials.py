"""The credential that the cluster will use: the installer copies the entry of clouds.yaml into the cluster.

Source: OpenShift installer docs/user/openstack/README.md and privileges.md; Identity API v3 "Application
credentials".
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from openstack_prep.base import shell
from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.base.errors import NotAllowed, NotFound
from openstack_prep.openshift.check.context import CheckContext

SINCE = 12
READER = "reader"  # Keystone's default roles (Identity, "Default roles"); member implies it
MEMBER = "member"
INSTALLATION = timedelta(hours=3)
COPIED = "the entry becomes the cluster's own credential, in its secret kube-system/openstack-credentials"


def credentials(context: CheckContext) -> Iterator[Diagnostic]:
    """Yield why this credential does not suit a cluster."""
    where = f"clouds.yaml: {context.cloud.name}"
    yield from _reading(context, where)
    if context.token_expires is not None:
        yield Diagnostic(
            code="credential.expires",
            where=where,
            what=f"is a token that expires at {context.token_expires:%Y-%m-%dT%H:%M:%S} (UTC)",
            why=f"{COPIED}: afterwards the cluster cannot log in",
            fix=create_credential(context),
        )
        return
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
            fix="name an entry with user and password in platform.openstack.cloud",
        )
    yield from _expiring(context, where, context.cloud.application_credential_id)


def _reading(context: CheckContext, where: str) -> Iterator[Diagnostic]:
    """Yield whether the token has no other role than reader, to which no policy allows writing."""
    if {role.lower() for role in context.cloud.roles} == {READER}:
        if context.cloud.application_credential_id is None:
            fix = grant(context, MEMBER)
        else:
            fix = create_credential(context, "--role", MEMBER, who="a user who has the role")
        yield Diagnostic(
            code="credential.read-only",
            where=where,
            what=f"gives only the role {READER} in its project",
            why="it may list everything and create nothing: the installer passes its checks, and fails when it creates",
            fix=fix,
        )


def _password(context: CheckContext, where: str) -> Diagnostic:
    return Diagnostic(
        code="credential.password",
        where=where,
        what="holds a user's password",
        why=f"{COPIED}: with the password, and changing the password stops the cluster",
        fix=f"{create_credential(context)}; or declare application_credentials in a spec",
        status=DiagnosticStatus.WARNING,
    )


def grant(context: CheckContext, role: str) -> str:
    """Return the command by which an administrator gives the user of the entry a role in its project."""
    on = ("--user", context.cloud.user_id, "--project", context.cloud.project_id)
    return f"{shell.join(['openstack', 'role', 'add', *on, role])}  # as an administrator"


def create_credential(context: CheckContext, *options: str, who: str = "the user") -> str:
    """Return the command that creates an application credential, and what to write into the entry.

    An application credential creates no other one unless it is unrestricted, so its entry is of no use for the command
    (keystone 30.0.0, api/users.py, _check_unrestricted_application_credential).
    """
    words = ("application", "credential", "create", *options, _free_name(context))
    by_entry = context.cloud.application_credential_id is None
    command = context.openstack(*words) if by_entry else shell.join(["openstack", *words])
    return (
        f"{command}  # {'' if by_entry else f'as {who}, with the password; '}then let the entry have auth_type: "
        f"v3applicationcredential and, below auth, auth_url: {context.cloud.auth_url}, application_credential_id "
        "and application_credential_secret, no user and no project"
    )


def _free_name(context: CheckContext) -> str:
    """Return a name that no application credential of the user has: the cluster's, with a number if necessary."""
    path, name = f"/users/{context.cloud.user_id}/application_credentials", context.cluster.cluster_name
    try:
        taken = {each["name"] for each in context.cloud.identity.list(path, "application_credentials")}
    except (NotAllowed, NotFound):
        return name
    numbered = (f"{name}-{number}" for number in itertools.count(2))
    return next(each for each in itertools.chain([name], numbered) if each not in taken)


def _expiring(context: CheckContext, where: str, credential_id: str) -> Iterator[Diagnostic]:
    path = f"/users/{context.cloud.user_id}/application_credentials/{credential_id}"
    found = context.cloud.identity.get(path)["application_credential"]
    expires = found["expires_at"]
    if expires is None:
        return
    moment = datetime.fromisoformat(expires).replace(tzinfo=UTC)
    soon = moment - context.cloud.now() < INSTALLATION
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
        fix=create_credential(context),  # without --expiration
        status=DiagnosticStatus.ERROR if soon else DiagnosticStatus.WARNING,
    )
