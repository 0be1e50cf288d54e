"""A sync that stays reads one cluster, whatever becomes of its kubeconfig meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import requests_mock
import yaml

from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.hooks.address_pairs import Sync
from openstack_prep.hooks.cluster_sync import ClusterSync
from openstack_prep.kubernetes.api import ClusterError, RunningCluster
from tests.unit.kubernetes.recorded_api import DATA, Recorded, serve

UID = b"874c6c17-8ac6-450e-b55e-67289c70e704"


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    with serve(Recorded()) as made:
        yield made


@pytest.fixture
def sync(run: CloudRun, recorded: Recorded, tmp_path: Path) -> ClusterSync:
    cluster = RunningCluster(recorded.kubeconfig(tmp_path / "kubeconfig"))
    return ClusterSync(run.admin, Sync(tag="node", within=("10.1.0.0/24",)), cluster, tell=print)


def read(sync: ClusterSync) -> str:
    """Read the Services as a turn does; return the context."""
    with sync.cluster.open() as server:
        sync._read(server)
        return server.name


def test_another_current_context_does_not_matter(sync: ClusterSync, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    first = read(sync)
    config = yaml.safe_load(path.read_text())
    config["contexts"].append({"name": "other", "context": config["contexts"][0]["context"]})
    path.write_text(yaml.safe_dump(config | {"current-context": "other"}))
    assert read(sync) == first == f"context test of {path}"


def test_a_spec_that_changes_is_read_again(
    run: CloudRun, empty_cloud: requests_mock.Mocker, recorded: Recorded, tmp_path: Path
) -> None:
    """Else a watch would remove the pairs of a pool that somebody has added meanwhile, and applied."""
    spec, pool = tmp_path / "s.yaml", {"name": "lb", "subnet": "nodes", "reserve": "outside"}
    pairs = [{"name": "lb", "tag": "rke", "pools": ["lb"]}]
    cluster = RunningCluster(recorded.kubeconfig(tmp_path / "kubeconfig"))
    sync = ClusterSync(run.admin, spec, cluster, tell=print)
    for addresses, shown in (("10.1.0.201", ["10.1.0.201"]), ("10.1.0.201-10.1.0.202", ["10.1.0.201", "10.1.0.202"])):
        pools = [pool | {"addresses": [addresses]}]
        spec.write_text(yaml.safe_dump({"name": "lab", "address_pools": pools, "address_pairs": pairs}))
        read(sync)
        sync._plan()
        assert sorted(str(one) for each in sync._allowed for one in each) == shown


def test_another_cluster_is_refused(sync: ClusterSync, recorded: Recorded) -> None:
    services = (DATA / "services.json").read_bytes()
    recorded.lists = [services, services.replace(UID, UID[::-1]), services]
    read(sync)
    before = sync._found
    with pytest.raises(ClusterError, match="a different cluster"):
        read(sync)
    assert sync._found is before
    read(sync)
