"""What rke2-cluster.yaml offers by choice, on a real Heat: volumes, and what servers are told.

The devcloud's servers run no operating system; the tests read their user data, and signal in their place.
"""

from __future__ import annotations

import subprocess
from functools import partial
from pathlib import Path
from typing import Any

from tests.functional.rke2_cluster import BASE, Cluster, cluster, images, project

__all__ = ["cluster", "images", "project"]  # fixtures

BEFORE = Path(__file__).parent / "data" / "rke2-before" / "rke2-cluster.yaml"
"""The template before it had these choices."""


def volumes(made: Cluster) -> dict[str, Any]:
    listed = made.lab.admin.block_storage.volumes(all_projects=True, project_id=made.project_id)
    return {each.name: each for each in listed if each.name.startswith(made.name)}


def attached_to(volume: Any) -> list[str]:
    return [each["server_id"] for each in volume.attachments]


def test_a_stack_of_the_earlier_template_keeps_its_servers(project: Any, images: tuple[str, str]) -> None:
    """With unchanged parameters; and with a volume for etcd, which each server gets beside it."""
    made = Cluster(project, images[0])
    plain = {"wait_timeout": 0, "agent_count": 1}
    made.lab.apply(*BASE, made.stack(template=str(BEFORE), **plain))
    before, nodes = made.ids(), made.nodes()
    assert len(nodes) == 4

    plan = made.lab.plan(*BASE, made.stack(**plain))
    assert not plan.refusals, plan.refusals
    made.lab.apply(*BASE, made.stack(**plain))
    assert made.nodes() == nodes
    assert volumes(made) == {}

    made.lab.apply(*BASE, made.stack(**plain, etcd_volume_size=2))
    assert made.nodes() == nodes
    assert {name: attached_to(each) for name, each in volumes(made).items()} == {
        f"{made.name}-server-{number}-etcd": [server] for number, server in before.items()
    }


def test_a_replaced_server_gets_its_volume(project: Any, images: tuple[str, str]) -> None:
    """The volume moves from the old server to the new one, which waits for it."""
    made = Cluster(project, images[0])
    declared = {"server_count": 3, "etcd_volume_size": 1}
    with made.applied(made.stack(**declared)):
        made.until(lambda: len(made.active()) == 3)
        for each in made.active().values():
            made.signal(each)
    made.report.raise_for_failures()
    before, kept = made.ids(), {name: each.id for name, each in volumes(made).items()}
    for number, server in before.items():
        files = made.files(server)
        assert files["/var/lib/rke2-node/volume"] == kept[f"{made.name}-server-{number}-etcd"]
        check_script(files["/var/lib/rke2-node/mount-volume"])

    new = made.stack(**declared, server_image=images[1])
    (refused,) = made.lab.plan(*BASE, new).refusals
    assert "etcd_volume" not in refused.what
    with made.applied(new, allow_replace=True) as apply:
        for number in "210":
            made.until(partial(made.is_replaced, number, before))
            made.until(partial(is_attached, made, number))
            assert apply.is_alive()
            made.signal(made.active()[number])
    made.report.raise_for_failures()
    assert not set(made.ids().values()) & set(before.values())
    assert {name: each.id for name, each in volumes(made).items()} == kept


def is_attached(made: Cluster, number: str) -> bool:
    return attached_to(volumes(made)[f"{made.name}-server-{number}-etcd"]) == [made.ids()[number]]


def test_volumes_grow_and_are_deleted_only_with_consent(project: Any, images: tuple[str, str]) -> None:
    """Larger in place; refused when removed; kept by choice when the stack is deleted."""
    made = Cluster(project, images[0])
    plain = {"server_count": 1, "wait_timeout": 0}
    made.lab.apply(*BASE, made.stack(**plain, etcd_volume_size=1))
    server, kept = made.ids()["0"], [each.id for each in volumes(made).values()]
    made.lab.apply(*BASE, made.stack(**plain, etcd_volume_size=2, etcd_volume_retain=True))
    assert [(each.id, each.size, attached_to(each)) for each in volumes(made).values()] == [(kept[0], 2, [server])]

    (refused,) = made.lab.plan(*BASE, made.stack(**plain)).refusals
    assert "would delete" in refused.what
    assert "servers.0.etcd_volume (OS::Cinder::Volume)" in refused.what
    made.lab.destroy(made.stack())
    assert made.nodes() == {}
    assert [(each.id, each.status) for each in volumes(made).values()] == [(kept[0], "available")]
    made.lab.admin.block_storage.delete_volume(kept[0])


def check_script(text: str) -> None:
    """Insist that a shell would read it."""
    for shell in ("sh", "bash"):
        subprocess.run([shell, "-n"], input=text, text=True, check=True)
