"""Prepare a project and install OpenShift 4.20 on a devcloud, until ``verify`` finds nothing wrong.

The installer is a stand-in (tests/standin): it creates in OpenStack what the real one creates, and no cluster.
"""

from __future__ import annotations

import os
import shutil
import sys
from importlib import resources
from pathlib import Path

from tests import standin
from tests.devcloud.qcow2 import qcow2
from tests.show import Show, begin

SPEC = "openshift-lab.yaml"
OPENSHIFT, CLUSTER, RELEASE = "openshift-current.yaml", "ocp420", "4.20"
CREDENTIALS = f"{CLUSTER}-credentials"
API, INGRESS = "192.168.122.166", "192.168.122.182"
CHANGED = {  # names and addresses that are free beside those of SPEC, and the virtual addresses
    "ocp4": CLUSTER,
    "192.168.122.164": API,
    "192.168.122.180": INGRESS,
    "  external_dns:": "  api_vips: [10.0.0.5]\n  ingress_vips: [10.0.0.7]\n  external_dns:",
}
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB demo\n"
WITHOUT_SECRETS = "/^pullSecret/d; /^sshKey/d"


def changed(text: str, changes: dict[str, str]) -> str:
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


def shipped(spec: str) -> str:
    return (resources.files("openstack_prep.install_configs") / spec).read_text()


def write_files(place: Path) -> Path:
    """Write the specs and what they need; returns the stand-in for the installer."""
    (place / SPEC).write_text(shipped(SPEC))
    (place / OPENSHIFT).write_text(changed(shipped(OPENSHIFT), CHANGED))
    (place / "rhcos.qcow2").write_bytes(qcow2())  # an empty disk stands in for the gigabyte of RHCOS
    (place / "pull-secret.json").write_text('{"auths": {"quay.io": {"auth": "Zm9vOmJhcg=="}}}')
    (place / "id_ed25519.pub").write_text(KEY)
    return standin.write_program(place / "bin")


def remove_former(show: Show) -> None:
    """Delete what an earlier demo has left in the cloud; a cloud that was reset knows nothing of it."""
    show.chapter("Delete what an earlier demo left", "So that this demo begins with nothing.")
    folder = show.place / CLUSTER
    if (folder / "metadata.json").exists():
        show.prep("cleanup", "--yes", "--metadata", CLUSTER, code=None, **show.user(CLUSTER, CREDENTIALS))
    for spec in (OPENSHIFT, SPEC):
        show.prep("destroy", "--yes", spec)
    for each in (folder, show.place / CREDENTIALS):  # what is left in them is the installer's, or a password of nobody
        shutil.rmtree(each, ignore_errors=True)


def prepare(show: Show) -> None:
    """Prepare a project, find drift in it, and log in as its user."""
    show.chapter(
        "Plan",
        """The spec is install_configs/openshift-lab.yaml: a project with its user, roles, quotas, a flavor, an image,
        floating IPs, an object store and a clouds.yaml. A plan changes nothing.""",
    )
    show.prep(
        "plan", SPEC, writes=False, proves="a plan lists each change and makes none: {requests} requests, no write"
    )
    show.chapter("Apply", "Each resource is created as soon as what it needs exists, several at a time.")
    show.prep("apply", "--yes", SPEC, proves="one apply prepares the whole project: {requests} requests")
    show.chapter("Apply again", "There is no state file: the second run reads the cloud and finds nothing to do.")
    show.prep(
        "apply", "--yes", SPEC, writes=False, proves="a second apply changes nothing: {requests} requests, no write"
    )
    show.chapter(
        "Find drift", "Somebody changes a quota by hand. A plan finds it (exit code 2), and apply restores it."
    )
    show.run("openstack", "quota", "set", "--cores", "7", "ocp-tenant", **show.admin)
    drift = ("plan", "--detailed-exitcode", SPEC)
    show.prep(*drift, code=2, writes=False, proves="a quota that was changed by hand is found")
    show.prep("apply", "--yes", SPEC, proves="apply restores the quota")
    show.chapter("Log in as the new user", "With the clouds.yaml that apply has written.")
    own = ("--project", "ocp-tenant", "-c", "Floating IP Address", "-c", "Project")
    show.run(
        "openstack", "floating", "ip", "list", *own, proves="the new user can log in", **show.user("ocp-tenant", "ocp4")
    )


def install(show: Show, program: Path) -> None:
    """Install OpenShift, with a stand-in for its installer, and verify the way to the console."""
    show.chapter(
        f"Prepare OpenShift {RELEASE}",
        f"""The spec is install_configs/openshift-current.yaml with other names: a second project, a credential for the
        installer, and an install-config.yaml for {RELEASE}. pre-ipi applies it, then checks what the installer does not
        check. A hosts file takes the place of DNS.""",
    )
    domain = ("--cluster-name", CLUSTER, "--base-domain", "example.com")
    show.prep("names", *domain, "--api", API, "--ingress", INGRESS, "--write", "hosts")
    show.prep(
        *("pre-ipi", "--yes", "--hosts", "hosts", OPENSHIFT),
        proves=f"a second project is ready for OpenShift {RELEASE}, and checked: no problems",
    )
    show.run("sed", WITHOUT_SECRETS, f"{CLUSTER}/install-config.yaml")
    show.chapter(
        f"Install OpenShift {RELEASE}",
        """ipi starts the installer, keeps a copy of its files, attaches floating IPs where the installer does not, and
        ensures the address pairs of the virtual addresses afterwards. This openshift-install is a STAND-IN: it creates
        in OpenStack what the real one creates, in the same order, and no cluster.""",
    )
    path = {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}", "STANDIN_RELEASE": RELEASE}
    show.run("openshift-install", "version", **path)
    installer = ("--", "openshift-install", "create", "cluster")
    show.prep(
        *("ipi", "--yes", "--spec", OPENSHIFT, "--hosts", "hosts", *installer),
        proves="ipi runs the installer; addresses and address pairs are right afterwards",
        **path,
    )
    show.chapter("Verify", "Each link from the name in DNS to the machines, as the new project's own user.")
    show.prep(
        *("verify", "--metadata", CLUSTER, "--hosts", "hosts"),
        writes=False,
        proves="verify follows the path to the API and to the console: no problems",
        **show.user(CLUSTER, CREDENTIALS),
    )


def main() -> int:
    repository = os.getcwd()
    show = begin("demo", __doc__)
    former = (show.place / SPEC).exists()
    program = write_files(show.place)
    if former:
        remove_former(show)
    prepare(show)
    install(show, program)
    show.summary()
    own = f"OS_CLIENT_CONFIG_FILE={CREDENTIALS}/clouds.yaml OS_CLOUD={CLUSTER}"
    show.farewell(
        ["openstack project list", "(. ./ocp4/ocp4.env && openstack floating ip list)"],
        [
            f"{own} openstack-prep cleanup --metadata {CLUSTER}",
            f"openstack-prep destroy {OPENSHIFT}",
            f"openstack-prep destroy {SPEC}",
        ],
        repository,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
