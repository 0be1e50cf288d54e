"""The main job, shown on a devcloud: plan, apply, apply again, show, and a look with ``openstack``.

Then OpenShift 4.2: install-config, addresses attached while the installer runs, the way to the console
verified.  The installer is a stand-in (tests/standin): it makes what the real one makes on OpenStack, and
no cluster.  An argument is the port base of the devcloud (20000, or another one whose ports are free).
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import time
from importlib import resources
from pathlib import Path

from tests import standin
from tests.devcloud import ports
from tests.devcloud.layout import DEFAULT_BASE, DevcloudError, Layout
from tests.devcloud.qcow2 import qcow2

SPEC = "openshift-lab.yaml"
OPENSHIFT, CLUSTER = "openshift-4.2-lab.yaml", "ocp42"
API, INGRESS = "192.168.122.165", "192.168.122.181"
CHANGED = {
    "192.168.122.164": API,
    "192.168.122.180": INGRESS,
    "name: master,": "name: ocp42-master,",
    "flavor: master}": "flavor: ocp42-master}",
}


def run(*command: str, needed: bool = True, **variables: str) -> None:
    """Show a command, run it as a user would, and stop the demo when it fails, if it is needed."""
    print(f"\n$ {shlex.join(command)}", flush=True)
    started = time.monotonic()
    code = subprocess.call(command, env=os.environ | variables)
    print(f"[{time.monotonic() - started:.1f} s]", flush=True)
    if code and needed:
        sys.exit(f"demo: {command[0]} ended with {code}")


def begin(name: str) -> tuple[Layout, Path]:
    """Return a devcloud that runs, and a folder of that name to work in."""
    claims = contextlib.ExitStack()
    atexit.register(claims.close)
    try:
        cloud = claims.enter_context(ports.choose(int(sys.argv[1]) if sys.argv[1:] else None, DEFAULT_BASE, "demo"))
    except DevcloudError as error:
        sys.exit(f"demo: {error}")
    print("A real OpenStack on loopback; the first time its servers are installed (some minutes) and built (a minute).")
    run(sys.executable, "-m", "tests.devcloud", "up", "--port-base", str(cloud.base))
    place = cloud.root / name
    place.mkdir(parents=True, exist_ok=True)
    return cloud, place


def copy(spec: str, place: Path) -> None:
    """Copy a shipped spec, the second with addresses and a flavor that are free beside those of the first."""
    text = (resources.files("openstack_prep.install_configs") / spec).read_text()
    if spec == OPENSHIFT:
        for old, new in CHANGED.items():
            assert old in text
            text = text.replace(old, new)
    (place / spec).write_text(text)


def install(place: Path, admin: dict[str, str]) -> None:
    """Go all the way of an OpenShift installation, with a stand-in for its installer."""
    print("\nOpenShift 4.2 from here on.  openshift-install is a STAND-IN: it makes what the real one makes on")
    print("OpenStack, in the same order, and nothing that would be a cluster.")
    program = standin.write_program(place / "bin")
    admin = admin | {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}", "STANDIN_RELEASE": "4.2"}
    copy(OPENSHIFT, place)
    (place / "pull-secret.json").write_text('{"auths": {"quay.io": {"auth": "Zm9vOmJhcg=="}}}')
    (place / "id_ed25519.pub").write_text(
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB demo\n"
    )
    installer = ("--", "openshift-install")
    if (place / CLUSTER).exists():  # what an earlier demo left; a cloud that was reset knows nothing of it
        run("openstack-prep", "ipi", "--spec", OPENSHIFT, *installer, "destroy", "cluster", needed=False, **admin)
        shutil.rmtree(place / CLUSTER)
    run("openstack-prep", "destroy", "--yes", OPENSHIFT, **admin)
    domain = ("--cluster-name", CLUSTER, "--base-domain", "example.com")
    run("openstack-prep", "names", *domain, "--api", API, "--ingress", INGRESS, "--write", "hosts", **admin)
    run("openstack-prep", "pre-ipi", "--yes", "--hosts", "hosts", OPENSHIFT, **admin)
    words = ("ipi", "--yes", "--spec", OPENSHIFT, "--hosts", "hosts", *installer, "create", "cluster")
    run("openstack-prep", *words, **admin)
    tenant = {"OS_CLIENT_CONFIG_FILE": str(place / "clouds.yaml")}
    run("openstack-prep", "verify", "--metadata", f"{CLUSTER}/metadata.json", "--hosts", "hosts", **tenant)


def main() -> int:
    repository = os.getcwd()
    cloud, place = begin("demo")
    copy(SPEC, place)
    (place / "rhcos.qcow2").write_bytes(qcow2())  # an empty disk stands in for the gigabyte of RHCOS
    os.chdir(place)
    admin = {"OS_CLIENT_CONFIG_FILE": str(cloud.clouds_file), "OS_CLOUD": "devcloud-admin"}
    run("openstack-prep", "destroy", "--yes", SPEC, **admin)  # what an earlier demo left
    run("openstack-prep", "plan", SPEC, **admin)
    run("openstack-prep", "apply", "--yes", SPEC, **admin)
    run("openstack-prep", "apply", "--yes", SPEC, **admin)
    run("openstack-prep", "show", SPEC, **admin)
    tenant = {"OS_CLIENT_CONFIG_FILE": str(place / "clouds.yaml"), "OS_CLOUD": "ocp-tenant"}
    run("openstack", "floating", "ip", "list", **tenant)
    install(place, admin)
    print(f"""
The cloud goes on running. Look around, as the new user and as the administrator:
  export PATH={os.path.dirname(sys.executable)}:$PATH
  cd {place} && (. ./ocp4.env && openstack floating ip list)
  export OS_CLIENT_CONFIG_FILE={cloud.clouds_file} OS_CLOUD=devcloud-admin
  openstack project list
Take it all back, and stop the cloud:
  openstack-prep destroy {place / SPEC}
  cd {place} && openstack-prep ipi --spec {OPENSHIFT} -- bin/openshift-install destroy cluster
  openstack-prep destroy {place / OPENSHIFT}
  cd {repository} && python -m tests.devcloud down --port-base {cloud.base}""")
    return 0


if __name__ == "__main__":
    sys.exit(main())
