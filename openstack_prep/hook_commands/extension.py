"""What is called before, around and after an installer, as an extension."""

from __future__ import annotations

from openstack_prep.extensions import Extension

_OPTIONS = "openstack_prep.hook_commands.options"

EXTENSION = Extension(
    name="hooks",
    groups={
        "address-pairs": "allowed address pairs on the ports of a cluster's nodes",
    },
    commands={
        f"{_OPTIONS}:add_pre_ipi": {
            "pre-ipi": "before openshift-install: apply the spec and check its install-config",
        },
        f"{_OPTIONS}:add_ipi": {
            "ipi": "run the installer with pre-checks, floating IPs and address pairs",
        },
        f"{_OPTIONS}:add_post_ipi": {
            "post-ipi": "after openshift-install: attach floating IPs and add allowed address pairs",
        },
        f"{_OPTIONS}:add_wait_for": {
            "wait-for": "wait until the installer has created a virtual port (exit 1 on timeout)",
        },
        f"{_OPTIONS}:add_cleanup": {
            "cleanup": "delete what is left of a cluster, after openshift-install destroy or instead of it",
        },
        f"{_OPTIONS}:add_address_pairs": {
            "address-pairs sync": (
                "allow addresses on the ports of a cluster's nodes, and delete managed pairs that are no longer"
                " declared"
            ),
        },
    },
    documents="openstack_prep.hook_commands.documents",
)
