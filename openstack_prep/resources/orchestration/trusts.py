"""Why Heat cannot create a stack by an application credential."""

NO_TRUSTS = (
    "Heat creates a trust for each new stack (unless its deferred_auth_method is not trusts, the default), and "
    "Keystone refuses trusts to application credentials, unrestricted ones included since the fix of CVE-2026-43000"
)
"""Source: Heat 27.0.1, engine/stack.py; Keystone 30.0.0, api/trusts.py: the operator may allow it by
allow_insecure_application_credential_trust_escalation, which nobody else can read."""
BY_PASSWORD = "create the stack by an entry with the user's password (--os-cloud, or clouds: tenant:)"
