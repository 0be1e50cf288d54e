from __future__ import annotations

import pytest
import requests_mock

from openstack_prep.base.errors import CloudError, NotAllowed
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.service import RETRIES
from openstack_prep.openshift import cluster
from openstack_prep.openshift.cluster import wait_for_port
from tests.unit.conftest import ENDPOINTS, connection, failure, port_row
from tests.unit.texts import Wording

PORTS = ENDPOINTS["network"] + "/v2.0/ports"
NAME, TAG = "dev-x7k2p-ingress-port", "openshiftClusterID=dev-x7k2p"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keystoneauth1.session.time.sleep", lambda seconds: None)
    monkeypatch.setattr(cluster, "PAUSE", 0.001)


def test_a_neutron_that_is_away_is_waited_for(services: requests_mock.Mocker) -> None:
    away = [failure(503)] * (RETRIES + 2)
    services.get(PORTS, [*away, {"json": {"ports": [port_row(id="p1", name=NAME)]}}])
    assert wait_for_port(Cloud(connection()), NAME, tag=TAG, seconds=60).id == "p1"


def test_at_the_deadline_the_fault_is_said(services: requests_mock.Mocker) -> None:
    services.get(PORTS, **failure(503))
    with pytest.raises(CloudError, match="503"):
        wait_for_port(Cloud(connection()), NAME, tag=TAG, seconds=0)


def test_rights_do_not_come_by_waiting(services: requests_mock.Mocker, wording: Wording) -> None:
    services.get(PORTS, **failure(403))
    with pytest.raises(NotAllowed) as caught:
        wait_for_port(Cloud(connection()), NAME, tag=TAG, seconds=60)
    wording(caught.value)
