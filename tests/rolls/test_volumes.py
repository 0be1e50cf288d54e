"""A roll of servers that have volumes, on a real Heat, Nova and Cinder."""

from __future__ import annotations

from functools import partial

from tests.functional.rke2_cluster import BASE, Cluster, attached_to, check_script, made, volumes

__all__ = ["made"]  # a fixture


def test_a_replaced_server_gets_its_volume(made: Cluster, images: tuple[str, str]) -> None:
    """The volume moves from the old server to the new one, which waits for it."""
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
