"""The configuration files of every project, as data: rendered to text, written below ``etc``."""

from __future__ import annotations

from pathlib import Path

from tests.devcloud.config import balancing, compute, dns, identity, network, orchestration, storage, swift
from tests.devcloud.config.ini import Config, render
from tests.devcloud.layout import Layout, with_designate, with_octavia

DATA_DIRECTORIES = (
    "keystone",
    "glance/images",
    "glance/staging",
    "glance/tasks",
    "placement",
    "nova",
    "neutron/ovn",
    "cinder",
    "heat",
    "designate",
    "octavia",
    "swift/d1",
    "rings",
)


def configs(layout: Layout) -> dict[Path, Config]:
    """Every configuration file of the cloud, by its path."""
    etc = layout.etc
    return {
        etc / "keystone/keystone.conf": identity.keystone(layout),
        etc / "glance/glance-api.conf": storage.glance(layout),
        etc / "placement/placement.conf": compute.placement(layout),
        etc / "nova/nova.conf": compute.nova(layout),
        etc / "neutron/neutron.conf": network.neutron(layout),
        etc / "cinder/cinder.conf": storage.cinder(layout),
        etc / "heat/heat.conf": orchestration.heat(layout),
        **({etc / "designate/designate.conf": dns.designate(layout)} if with_designate() else {}),
        **({etc / "octavia/octavia.conf": balancing.octavia(layout)} if with_octavia() else {}),
        etc / "swift/proxy.conf": swift.proxy(layout),
        **{etc / f"swift/{kind}.conf": swift.storage_node(layout, kind) for kind in swift.RINGS},
        layout.data / "rings/swift.conf": swift.shared(),
    }


def write(layout: Layout) -> None:
    """Make the cloud's directories and write its configuration into them."""
    for directory in (layout.db, layout.log, layout.run):
        directory.mkdir(parents=True, exist_ok=True)
    for part in DATA_DIRECTORIES:
        (layout.data / part).mkdir(parents=True, exist_ok=True)
    for path, config in configs(layout).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render(config))
    (layout.etc / "policy.yaml").write_text("{}\n")
    # these projects look for it beside their configuration and nowhere else
    for name in ("nova", *(("designate",) if with_designate() else ())):
        (layout.etc / name / "api-paste.ini").write_text((layout.venv / f"etc/{name}/api-paste.ini").read_text())
