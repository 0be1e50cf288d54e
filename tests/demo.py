"""The main job, shown on a devcloud: plan, apply, apply again, show, and a look with ``openstack``."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from importlib import resources

from tests.devcloud.layout import DEFAULT_BASE, Layout, default_root
from tests.devcloud.qcow2 import qcow2

SPEC = "openshift-lab.yaml"


def run(*command: str, **variables: str) -> None:
    """Show a command, run it as a user would, and stop the demo when it fails."""
    print(f"\n$ {shlex.join(command)}", flush=True)
    started = time.monotonic()
    code = subprocess.call(command, env=os.environ | variables)
    print(f"[{time.monotonic() - started:.1f} s]", flush=True)
    if code:
        sys.exit(f"demo: {command[0]} ended with {code}")


def main() -> int:
    cloud, repository = Layout(DEFAULT_BASE, default_root()), os.getcwd()
    print("A real OpenStack on loopback; the first time its servers are installed (some minutes) and built (a minute).")
    run(sys.executable, "-m", "tests.devcloud", "up")
    place = cloud.root / "demo"
    place.mkdir(parents=True, exist_ok=True)
    with resources.as_file(resources.files("openstack_prep.install_configs") / SPEC) as shipped:
        shutil.copy(shipped, place / SPEC)
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
    print(f"""
The cloud goes on running. Look around, as the new user and as the administrator:
  export PATH={os.path.dirname(sys.executable)}:$PATH
  cd {place} && (. ./ocp4.env && openstack floating ip list)
  export OS_CLIENT_CONFIG_FILE={cloud.clouds_file} OS_CLOUD=devcloud-admin
  openstack project list
Take it all back, and stop the cloud:
  openstack-prep destroy {place / SPEC}
  cd {repository} && python -m tests.devcloud down""")
    return 0


if __name__ == "__main__":
    sys.exit(main())
