"""Clusters of RKE2 and RKE as an extension."""

from __future__ import annotations

from openstack_prep.extensions import Command, Extension, FileForm, Section

_HERE = "openstack_prep.kubernetes"
_OPTIONS = f"{_HERE}.commands.options"
_FORMS = f"{_HERE}.file_forms"

EXTENSION = Extension(
    name="kubernetes",
    heading="Kubernetes",
    sections=(
        Section(
            "cluster_networks",
            f"{_HERE}.networks:ClusterNetworks",
            "Networks from which the networks of pods and Services are allocated, so that those of two clusters never "
            "overlap.",
            many=False,
            after="stacks",
        ),
        Section(
            "rke_clusters",
            f"{_HERE}.cluster.rke_cluster:RkeCluster",
            "RKE and RKE2 clusters on the nodes of stacks.",
            after="cluster_networks",
            in_files=True,
        ),
    ),
    acronyms=("RKE",),
    derive=f"{_HERE}.cluster.rke_cluster:on_networks",
    check=f"{_HERE}.stack_config:list_mistakes",
    checked=("stack",),
    warn=f"{_HERE}.stack_config:list_warnings",
    forms=(
        FileForm("a cluster.yml of RKE", "rke check {}", find=f"{_FORMS}:find_cluster_yml"),
        FileForm("a registries.yaml of RKE2", "rke check --rke2 registries {}", find=f"{_FORMS}:find_registries"),
        FileForm("a config.yaml of an RKE2 agent", "rke check --rke2 agent {}", find=f"{_FORMS}:find_agent"),
        FileForm("a config.yaml of an RKE2 server", "rke check --rke2 server {}", find=f"{_FORMS}:find_server"),
        FileForm("the state of a cluster of RKE, with its keys and certificates", keys=("desiredState",)),
        FileForm("a kubeconfig", find=f"{_FORMS}:find_kubeconfig"),
        FileForm("a file of Kubernetes objects", find=f"{_FORMS}:find_objects"),
        FileForm("user data of cloud-init", keys=("write_files", "runcmd")),
        FileForm("a file of Docker Compose", find=f"{_FORMS}:find_compose"),
        FileForm("an inventory of Ansible", keys=("all",)),
    ),
    groups={
        "kubernetes": "Kubernetes clusters: the order of their installation, and from RKE to RKE2",
        "rke": "RKE2 and RKE clusters: their files, and the connections between them",
    },
    commands={
        f"{_OPTIONS}:add_checklist": {
            "kubernetes checklist": Command(
                "print the steps from a spec to running clusters, and what is normal at each step",
                {
                    "kubernetes checklist prep.yaml": "print the steps for the clusters of a spec",
                    "kubernetes checklist prep.yaml --format json": "for a program",
                },
            ),
        },
        f"{_OPTIONS}:add_convert": {
            "kubernetes convert": Command(
                "convert RKE's cluster.yml to files of RKE2, and list how workloads move to a new cluster",
                {
                    "kubernetes convert cluster.yml": "print the files of RKE2",
                    "kubernetes convert cluster.yml --output rke2": "write them",
                },
            ),
        },
        f"{_OPTIONS}:add_rke": {
            "rke check": Command(
                "find unknown keys and invalid values in RKE2's config.yaml or RKE's cluster.yml, by line",
                {
                    "rke check cluster.yml": "check a file of RKE",
                    "rke check --rke2 server config.yaml": "check a file of RKE2",
                },
            ),
        },
        f"{_OPTIONS}:add_rke_render": {
            "rke render": Command(
                "write the files of a spec's clusters, or of a cluster on any stack, from existing stacks",
                {
                    "rke render prep.yaml": "write the files that the spec declares",
                    "rke render --stack web-nodes --distribution rke2": "print those for the nodes of a stack",
                },
            ),
        },
        f"{_OPTIONS}:add_rke_mesh": {
            "rke mesh": Command(
                "check the traffic that must pass between the clusters of a mesh, and print fixes (exit 1 on failure)",
                {
                    "rke mesh prep.yaml": "check all connections, and print fixes",
                    "rke mesh prep.yaml --format json": "for a program",
                },
            ),
        },
    },
    clusters="openstack_prep.clusters.cloud_provider_names:ProviderNaming",
    documents=f"{_HERE}.commands.documents",
    codes=_HERE,
)
