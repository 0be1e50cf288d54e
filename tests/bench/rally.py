"""rally-openstack's contexts, as a contender of fleets: tenants with users, quotas, a network and a router.

They are made for the time of a measurement, and there is no way to keep them: a run creates and deletes.  Without key
pairs, which the light server would have to generate.

Sources: rally-openstack 4.1.0, task/contexts/keystone/users.py, quotas/quotas.py, network/networks.py.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import yaml

from tests.bench import environments
from tests.bench.scenario import BenchError
from tests.light.running import Light

QUOTAS = {
    "nova": {"cores": 40, "instances": 20, "ram": 102400, "key_pairs": 10},
    "neutron": {"network": 5, "security_group": 20, "security_group_rule": 200, "floatingip": 4},
    "cinder": {"volumes": 30, "gigabytes": 500},
}


def command(*words: str) -> Sequence[str]:
    """Return a command of rally, to be run in the folder of ``prepare``."""
    return [str(environments.ensure("rally") / "rally"), "--config-file", "rally.conf", *words]


def prepare(folder: Path, light: Light, tenants: int, workers: int) -> None:
    """Write the task, and make rally's database with the cloud in it; raises BenchError."""
    contexts = {
        "users": {"tenants": tenants, "users_per_tenant": 1, "resource_management_workers": workers},
        "quotas": QUOTAS,
        "network": {"start_cidr": "10.10.0.0/24", "dns_nameservers": ["192.168.122.1"]},
    }
    runner = {"constant": {"times": 1, "concurrency": 1}}
    load = {"title": "tenants", "scenario": {"Dummy.dummy": {}}, "runner": runner, "contexts": contexts}
    (folder / "task.json").write_text(json.dumps({"version": 2, "title": "tenants", "subtasks": [load]}))
    entry = yaml.safe_load(light.clouds_file.read_text())["clouds"][light.entries[0]]
    admin = dict(entry["auth"])
    cloud = {"auth_url": admin.pop("auth_url"), "region_name": entry["region_name"], "admin": admin}
    (folder / "cloud.json").write_text(json.dumps({"openstack": cloud}))
    (folder / "rally.conf").write_text(f"[database]\nconnection = sqlite:///{folder / 'rally.db'}\n")
    for words in (("db", "create"), ("env", "create", "--name", "light", "--spec", "cloud.json")):
        environment = {"HOME": str(folder), "LC_ALL": "C.UTF-8"}
        made = subprocess.run(command(*words), cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if made.returncode:
            raise BenchError(f"rally {' '.join(words)}: exit code {made.returncode}\n{made.stderr[-3000:]}")
