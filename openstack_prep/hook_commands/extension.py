"""What is called before, around and after an installer, as an extension."""

from __future__ import annotations

from openstack_prep.extensions import Command, Extension

_OPTIONS = "openstack_prep.hook_commands.options"

EXTENSION = Extension(
    name="hooks",
    heading="OpenShift",
    groups={
        "address-pairs": "allowed address pairs on the ports of a cluster's nodes",
    },
    commands={
        f"{_OPTIONS}:add_pre_ipi": {
            "pre-ipi": Command(
                "before openshift-install: apply the spec and check its install-config",
                {
                    "pre-ipi prep.yaml": "apply, and check install-config.yaml",
                    "pre-ipi --yes prep.yaml": "in a pipeline, without confirmation",
                },
            ),
        },
        f"{_OPTIONS}:add_ipi": {
            "ipi": Command(
                "run the installer with pre-checks, floating IPs and address pairs",
                {
                    "ipi -- openshift-install create cluster": "run the installer in the current folder",
                    "ipi --spec prep.yaml -- openshift-install create cluster --dir ocp4": "apply a spec first",
                },
            ),
        },
        f"{_OPTIONS}:add_post_ipi": {
            "post-ipi": Command(
                "after openshift-install: attach floating IPs and add allowed address pairs",
                {
                    "post-ipi --metadata ocp4 --ingress-ip 192.0.2.10": "attach the floating IP of the ingress",
                    "post-ipi --vip 10.0.0.5 --yes": "allow an address on all nodes",
                },
            ),
        },
        f"{_OPTIONS}:add_wait_for": {
            "wait-for": Command(
                "wait until the installer has created a virtual port (exit 1 on timeout)",
                {
                    "wait-for ingress-port --metadata ocp4": "wait until the port of the ingress exists",
                    "wait-for api-port --timeout 600": "wait at most ten minutes",
                },
            ),
        },
        f"{_OPTIONS}:add_cleanup": {
            "cleanup": Command(
                "delete what is left of a cluster, after openshift-install destroy or instead of it",
                {
                    "cleanup --plan --metadata ocp4": "list what is left of a cluster",
                    "cleanup --infra-id ocp4-x7k2p": "delete it, after confirmation",
                },
            ),
        },
        f"{_OPTIONS}:add_address_pairs": {
            "address-pairs sync": Command(
                "allow addresses on the ports of a cluster's nodes, and delete managed pairs that are no longer"
                " declared",
                {
                    "address-pairs sync prep.yaml": "allow what the spec declares",
                    "address-pairs sync --tag ocp4-nodes --address 10.0.0.5 --dry-run": "show changes of tagged ports",
                },
                heading="Kubernetes",
            ),
        },
    },
    documents="openstack_prep.hook_commands.documents",
)
