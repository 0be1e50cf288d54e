"""OpenShift's installer as an extension."""

from __future__ import annotations

from openstack_prep.extensions import Command, Extension, FileForm, Section

_HERE = "openstack_prep.openshift"
_OPTIONS = f"{_HERE}.commands.options"

EXTENSION = Extension(
    name="openshift",
    heading="OpenShift",
    sections=(
        Section(
            "install_config",
            f"{_HERE}.install_config_file:InstallConfig",
            "An install-config.yaml to write.",
            many=False,
            in_files=True,
            next="ipi --spec {} -- openshift-install create cluster",
        ),
    ),
    forms=(
        FileForm("an install-config.yaml of OpenShift", "check {}", keys=("baseDomain", "pullSecret", "controlPlane")),
        FileForm("a metadata.json of OpenShift's installer", "verify --metadata {}", keys=("infraID",)),
    ),
    commands={
        f"{_OPTIONS}:add_topology": {
            "topology": Command(
                "print the networks of a spec, a cluster or a project, with what is on them",
                {
                    "topology prep.yaml --format svg > topology.svg": "draw the networks of a spec, and which exist",
                    "topology --project shop": "print a project for Mermaid",
                },
                heading="Projects",
            ),
        },
        f"{_OPTIONS}:add_check": {
            "check": Command(
                "check an install-config.yaml of OpenShift and its cloud before the installation",
                {
                    "check": "check ./install-config.yaml against its cloud",
                    "check --offline one two": "check the files in two folders, without the cloud",
                },
            ),
        },
        f"{_OPTIONS}:add_import": {
            "import": Command(
                "write the spec that renders an existing install-config.yaml",
                {
                    "import ocp4 --output spec": "write the spec of ocp4/install-config.yaml, and its secrets",
                    "import --release 4.20": "print the spec of ./install-config.yaml",
                },
            ),
        },
        f"{_OPTIONS}:add_verify": {
            "verify": Command(
                "verify API and console connectivity, link by link (exit 1 on failure)",
                {
                    "verify --metadata ocp4": "follow the path from outside to the API and the console",
                    "verify --metadata ocp4 --probe": "also connect from this machine",
                },
            ),
        },
        f"{_OPTIONS}:add_tools": {
            "tools": Command(
                "download openshift-install, oc and kubectl, and verify them",
                {
                    "tools stable-4.20": "download the newest release of a channel",
                    "tools 4.20.3 --only oc,kubectl --into bin": "download only some tools of a release",
                },
            ),
        },
        f"{_OPTIONS}:add_names": {
            "names": Command(
                "print the addresses of api and *.apps of a cluster, or write them",
                {
                    "names": "print lines for a hosts file",
                    "names --as bind --server ns1.example.com": "print a zone for BIND",
                },
            ),
        },
    },
    clusters="openstack_prep.clusters.installer_names:InstallerNaming",
    documents=f"{_HERE}.commands.documents",
    codes=_HERE,
)
