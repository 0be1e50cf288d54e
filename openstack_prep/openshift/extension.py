"""OpenShift's installer as an extension."""

from __future__ import annotations

from openstack_prep.extensions import Extension, Section

_HERE = "openstack_prep.openshift"
_OPTIONS = f"{_HERE}.commands.options"

EXTENSION = Extension(
    name="openshift",
    sections=(
        Section(
            "install_config",
            f"{_HERE}.install_config_file:InstallConfig",
            "An install-config.yaml to write.",
            many=False,
            in_files=True,
        ),
    ),
    commands={
        f"{_OPTIONS}:add_topology": {
            "topology": "print the networks of a spec, a cluster or a project, with what is on them",
        },
        f"{_OPTIONS}:add_check": {
            "check": "run pre-installation checks",
        },
        f"{_OPTIONS}:add_import": {
            "import": "write the spec for an existing install-config.yaml, which renders the same file",
        },
        f"{_OPTIONS}:add_verify": {
            "verify": "verify API and console connectivity, link by link (exit 1 on failure)",
        },
        f"{_OPTIONS}:add_tools": {
            "tools": "download openshift-install, oc and kubectl, and verify them",
        },
        f"{_OPTIONS}:add_names": {
            "names": "print the addresses of api and *.apps of a cluster, or write them",
        },
    },
    documents=f"{_HERE}.commands.documents",
    codes=_HERE,
)
