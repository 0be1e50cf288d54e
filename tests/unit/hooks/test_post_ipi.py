from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import NotUnique, PlanRefused, SpecError, WaitTimeout
from openstack_prep.cli.main import main
from openstack_prep.cloud.connection import Cloud
from openstack_prep.hooks import post_ipi
from openstack_prep.openshift import cluster as openshift_cluster
from tests.unit.conftest import ENDPOINTS, connection, failure, port_row, sent
from tests.unit.texts import Wording, contains, expect_error

NEUTRON, NOVA = ENDPOINTS["network"] + "/v2.0", ENDPOINTS["compute"]
ID = "dev-x7k2p"
TAG = f"openshiftClusterID={ID}"


@pytest.fixture
def neutron(services: requests_mock.Mocker, monkeypatch: pytest.MonkeyPatch) -> list[list[dict[str, Any]]]:
    """What each list of ports answers, the last one again and again."""
    monkeypatch.setattr(openshift_cluster, "PAUSE", 0.01)
    own = [{"subnet_id": "s1", "ip_address": "10.0.0.7"}]
    answers: list[list[dict[str, Any]]] = [[port_row(id="p1", name=f"{ID}-ingress-port", fixed_ips=own)]]
    ip = {"id": "f1", "floating_ip_address": "192.0.2.5", "description": "", "port_id": None, "revision_number": 1}
    ip["floating_network_id"] = "n1"

    def change(request: Any, _: Any) -> dict[str, Any]:
        ip.update(request.json()["floatingip"])
        return {"floatingip": ip}

    services.get(f"{NEUTRON}/ports", json=lambda *_: {"ports": answers.pop(0) if len(answers) > 1 else answers[0]})
    services.get(f"{NEUTRON}/floatingips", json=lambda *_: {"floatingips": [ip]})
    services.put(f"{NEUTRON}/floatingips/f1", json=change)
    return answers


Answers = list[list[dict[str, Any]]]


def test_it_waits_for_the_port(neutron: Answers, wording: Wording) -> None:
    neutron[:0] = [[], []]
    report = post_ipi(Cloud(connection()), infra_id=ID, ingress_floating_ip="192.0.2.5", wait=5)
    assert report.outputs == {f"floating_ip_attachment/{ID}-ingress-port": "192.0.2.5"}
    again = post_ipi(Cloud(connection()), infra_id=ID, ingress_floating_ip="192.0.2.5", wait=5)
    wording(again.summary)


def test_what_is_missing_at_the_deadline_is_said(neutron: Answers) -> None:
    neutron[:] = [[]]
    with pytest.raises(WaitTimeout, match=rf"no port {ID}-api-port in project admin-project after 0 s; the installer"):
        post_ipi(Cloud(connection()), infra_id=ID, api_floating_ip="192.0.2.5", wait=0.02)


def test_the_wrong_port_ends_the_wait(neutron: Answers, wording: Wording) -> None:
    neutron[0][0]["tags"] = ["openshiftClusterID=other-aaaaa"]
    with pytest.raises(PlanRefused) as caught:
        post_ipi(Cloud(connection()), infra_id=ID, ingress_floating_ip="192.0.2.5", wait=5)
    wording(caught.value)
    neutron[0] += [neutron[0][0] | {"id": "p2"}]
    with pytest.raises(NotUnique, match="p1, p2"):
        post_ipi(Cloud(connection()), infra_id=ID, ingress_floating_ip="192.0.2.5", wait=5)


def test_nothing_is_asked_when_nothing_is_wanted(services: requests_mock.Mocker, wording: Wording) -> None:
    with pytest.raises(SpecError) as caught:
        post_ipi(Cloud(connection()), infra_id=ID)
    wording(caught.value)
    with expect_error(SpecError, "metadata.json", "infraID"):
        post_ipi(Cloud(connection()), ingress_floating_ip="192.0.2.5")
    assert sent(services) == []


# --- the command --------------------------------------------------------------------------


def metadata(folder: Path, cloud: str = "lab") -> Path:
    platform = {"cloud": cloud, "identifier": {"openshiftClusterID": ID}}
    path = folder / "metadata.json"
    path.write_text(json.dumps({"clusterName": "dev", "infraID": ID, "openstack": platform}))
    return path


def test_the_command_takes_cluster_and_cloud_from_metadata_json(
    clouds_yaml: Path,
    neutron: Answers,
    services: requests_mock.Mocker,
    capsys: pytest.CaptureFixture[str],
    wording: Wording,
) -> None:
    metadata(clouds_yaml.parent)
    foreign = {"id": "s", "name": f"{ID}-bootstrap", "metadata": {"openshiftClusterID": "dev-zzzzz"}}
    services.get(f"{NOVA}/servers/detail", json={"servers": [foreign]})
    assert main(["post-ipi", "--yes", "--ingress-ip", "192.0.2.5"]) == 0
    out, err = capsys.readouterr()
    assert f"+ floating_ip_attachment/{ID}-ingress-port  address 192.0.2.5" in out
    assert "bootstrap" not in err
    ours = foreign | {"metadata": {"openshiftClusterID": ID}}
    services.get(f"{NOVA}/servers/detail", json={"servers": [foreign, ours]})
    assert main(["post-ipi", "--yes", "--ingress-ip", "192.0.2.5"]) == 0
    wording(capsys.readouterr().err)
    services.get(f"{NOVA}/servers/detail", **failure(403))
    assert main(["post-ipi", "--yes", "--ingress-ip", "192.0.2.5", "--format", "json"]) == 0
    (step,) = json.loads(capsys.readouterr().out)["steps"]
    assert step["action"] == "keep"


def test_a_port_of_another_cluster_cannot_be_declared_in_a_spec(
    clouds_yaml: Path, neutron: Answers, services: requests_mock.Mocker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["post-ipi", "--os-cloud", "lab", "--infra-id", "typo-x7k2p", "--ingress-ip", "192.0.2.5"]) == 2
    missing = "port/typo-x7k2p-ingress-port does not exist; did you mean dev-x7k2p-ingress-port? [spec.unresolved"
    assert missing in capsys.readouterr().err


def test_without_consent_the_plan_is_not_carried_out(
    clouds_yaml: Path, neutron: Answers, services: requests_mock.Mocker, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["post-ipi", "--os-cloud", "lab", "--infra-id", ID, "--ingress-ip", "192.0.2.5"]
    assert main(words) == 2
    assert "--yes" in capsys.readouterr().err
    assert not [each for each in sent(services) if each.startswith("PUT")]


def test_no_cluster(clouds_yaml: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["post-ipi", "--ingress-ip", "192.0.2.5"]) == 2
    assert contains(capsys.readouterr().err, "metadata.json", "--metadata PATH", "--infra-id", "[config.invalid]")


def test_the_file_of_another_cluster(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"metadata.json: belongs to dev-x7k2p, not to dev2-q9m4t"):
        post_ipi(Cloud(connection()), metadata=metadata(tmp_path), infra_id="dev2-q9m4t", vips=("10.0.0.5",))
