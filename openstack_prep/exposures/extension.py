"""Exposures as an extension: addresses from outside to services inside of clusters."""

from __future__ import annotations

from openstack_prep.extensions import Command, Extension, Scan, Section

_HERE = "openstack_prep.exposures"
_OPTIONS = f"{_HERE}.commands.options"

EXTENSION = Extension(
    name="exposures",
    heading="External access",
    sections=(
        Section(
            "pool_files",
            f"{_HERE}.pool_file:PoolFile",
            "Files that register addresses of networks outside of OpenStack.",
            after="address_pools",
            in_files=True,
        ),
        Section(
            "exposures",
            f"{_HERE}.exposure:Exposure",
            "What leads from outside to the services, virtual machines and hosts of clusters.",
            after="stacks",
            in_files=True,
        ),
        Section(
            "exposed_clusters",
            f"{_HERE}.exposed_cluster:ExposedCluster",
            "Clusters with exposures: the files for them, and their nodes in OpenStack.",
            after="exposures",
            in_files=True,
            secrets=("external_ips.bgp",),
        ),
    ),
    scans=(
        Scan(
            f"{_HERE}.machine_claims:LeftClaim",
            tagged="openstack_prep.resources.network.reserved_ports:has_tagged",
            on_networks=True,
            only_left=True,
        ),
    ),
    derive=f"{_HERE}.exposed_cluster:derive",
    leftovers=f"{_HERE}.leftovers:leftovers",
    groups={
        "exposures": "addresses from outside to services inside of clusters",
    },
    commands={
        f"{_OPTIONS}:add_show": {
            "exposures show": Command(
                "show which outside address leads to what, and the state of each hop (exit 1 on failure)",
                {
                    "exposures show prep.yaml": "show each hop from outside to the services",
                    "exposures show prep.yaml --kubeconfig kubeconfig": "also read the Services of the running cluster",
                },
            ),
        },
        f"{_OPTIONS}:add_convert": {
            "exposures convert": Command(
                "convert Services with externalIPs to MetalLB, Cilium or kube-vip, and prove that each address is kept",
                {
                    "exposures convert services.json --to metallb": "print the manifests for MetalLB",
                    "exposures convert --kubeconfig kubeconfig --to cilium": "read the Services of a running cluster",
                },
            ),
        },
    },
    documents=f"{_HERE}.commands.documents",
    codes=_HERE,
)
