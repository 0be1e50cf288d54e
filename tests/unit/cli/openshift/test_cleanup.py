from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import requests_mock

from openstack_prep.cli.main import main
from openstack_prep.openshift.folder import Folder
from tests.unit.conftest import default_group, failure, sent
from tests.unit.hooks.test_cleanup import ID, NEUTRON, SWIFT, Lists, there
from tests.unit.texts import Wording, contains

__all__ = ["there"]

WORDS = ["cleanup", "--os-cloud", "lab", "--infra-id", ID]


def test_it_is_listed_and_nothing_is_changed(
    clouds_yaml: Path,
    there: Lists,
    services: requests_mock.Mocker,
    capsys: pytest.CaptureFixture[str],
    wording: Wording,
) -> None:
    services.get(f"{SWIFT}/", **failure(403))
    assert main([*WORDS, "--plan"]) == 0
    out, err = capsys.readouterr()
    assert "- floating_ip_attachment/192.0.2.5" in out
    assert contains(out, "floating IP itself", "kept")
    wording(err)
    assert main([*WORDS, "--plan", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["infra_id"], found["refusals"]) == (ID, [])
    assert {each["action"] for each in found["steps"]} == {"delete"}
    assert not [each for each in sent(services) if not each.startswith("GET")]


def test_what_forbids_it_is_in_the_exit_code(
    clouds_yaml: Path, there: Lists, capsys: pytest.CaptureFixture[str]
) -> None:
    there["networks"][0]["subnets"] = ["sub", "theirs"]
    assert main([*WORDS, "--plan", "--format", "json"]) == 2
    out, err = capsys.readouterr()
    (refusal,) = json.loads(out)["refusals"]
    assert (refusal["code"], refusal["where"]) == ("plan.refused", f"network/{ID}-openshift")
    warnings, _, error = err.rpartition("openstack-prep: ")
    assert error == f"{refusal['where']}: {refusal['what']}; {refusal['fix']} [plan.refused]\n"
    assert all("not checked: " in each for each in warnings.splitlines())


def test_without_consent_nothing_goes(
    clouds_yaml: Path, there: Lists, services: requests_mock.Mocker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(WORDS) == 2
    assert "--yes" in capsys.readouterr().err
    assert not [each for each in sent(services) if not each.startswith("GET")]


def test_it_goes_by_consent(
    clouds_yaml: Path, there: Lists, services: requests_mock.Mocker, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in there:
        there[name] = there[name] if name == "subnets" else []
    services.delete(f"{NEUTRON}/subnets/sub", status_code=204)
    assert main([*WORDS, "--yes"]) == 0
    assert f"- subnet/{ID}-nodes" in capsys.readouterr().out


def test_half_of_another_runs_work_is_no_refusal(
    clouds_yaml: Path, there: Lists, services: requests_mock.Mocker
) -> None:
    for name in there:
        there[name] = there[name] if name == "networks" else []
    group = default_group(services)

    def networks(request: requests_mock.request._RequestObjectProxy, context: object) -> dict[str, object]:
        """Name somebody's subnet once; then the other run has deleted it."""
        group["revision_number"] += there["networks"][0]["subnets"] != []
        there["networks"], before = [{**there["networks"][0], "subnets": []}], there["networks"]
        return {"networks": before}

    services.get(f"{NEUTRON}/networks", json=networks)
    services.delete(f"{NEUTRON}/networks/net", status_code=204)
    assert main([*WORDS, "--yes"]) == 0
    assert "DELETE /v2.0/networks/net" in sent(services)


def test_nothing_is_left(clouds_yaml: Path, there: Lists, capsys: pytest.CaptureFixture[str], wording: Wording) -> None:
    there |= {name: [] for name in there}
    assert main([*WORDS, "--yes"]) == 0
    wording(capsys.readouterr().out)


def test_it_says_what_it_did_not_look_for(clouds_yaml: Path, there: Lists, capsys: pytest.CaptureFixture[str]) -> None:
    there |= {name: [] for name in there}
    folder = clouds_yaml.parent / "ocp"
    folder.mkdir()
    platform = {"cloud": "other", "identifier": {"openshiftClusterID": ID}}
    metadata = folder / "metadata.json"
    metadata.write_text(json.dumps({"clusterName": "dev", "infraID": ID, "openstack": platform}))
    words = ["cleanup", "--os-cloud", "lab", "--metadata", "ocp", "--yes"]
    assert main([*words, "--release", "nosuch"]) == 0
    out, err = capsys.readouterr()
    assert contains(err, "warning", "metadata.json", "other", "lab")
    assert contains(err, "nosuch")
    assert "another installation" not in out  # in its own cloud it may live on
    metadata.write_text(metadata.read_text().replace("other", "lab"))
    assert main(words) == 0
    out = capsys.readouterr().out
    again = "openstack-prep ipi --again -- openshift-install create cluster --dir ocp"
    assert contains(out, "ocp", again)
    metadata.rename(folder / "metadata.json.kept")  # as destroy cluster leaves it
    assert main(words) == 0
    assert "another installation" not in capsys.readouterr().out


@pytest.mark.parametrize("said", ["yes", "no"])
def test_the_folder_is_put_right_by_consent(
    clouds_yaml: Path,
    there: Lists,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    said: str,
) -> None:
    there |= {name: [] for name in there}
    folder = clouds_yaml.parent / "ocp"
    (folder / ".clusterapi_output").mkdir(parents=True)
    platform = {"cloud": "lab", "identifier": {"openshiftClusterID": ID}}
    text = json.dumps({"clusterName": "dev", "infraID": ID, "openstack": platform})
    (folder / "metadata.json").write_text(text)
    (folder / "install-config.yaml.kept").write_text("apiVersion: v1\n")
    terminal = io.StringIO(f"{said}\n")
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    assert main(["cleanup", "--metadata", "ocp"]) == 0
    out, err = capsys.readouterr()
    assert "  ocp/.clusterapi_output\n  ocp/metadata.json\n" in err
    left = {each.name for each in folder.iterdir()}
    if said == "yes":
        assert left == {"install-config.yaml", "metadata.json.kept"}
        assert (folder / "metadata.json.kept").read_text() == text
    else:
        assert left == {".clusterapi_output", "metadata.json", "install-config.yaml.kept"}
        assert "openstack-prep ipi --again" in out


def test_a_cluster_by_its_name(
    clouds_yaml: Path,
    there: Lists,
    services: requests_mock.Mocker,
    capsys: pytest.CaptureFixture[str],
    wording: Wording,
) -> None:
    there["volumes"] = [{"id": "v", "name": "pvc-1", "metadata": claim, "attachments": []} for claim in CLAIMS]
    words = ["cleanup", "--os-cloud", "lab", "--cluster", "prod"]
    assert main([*words, "--plan", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (step,) = found["steps"]
    assert (found["cluster"], step["resource"], step["action"]) == ("prod", "volume/pvc-1", "delete")
    assert main([*words, "--plan"]) == 0
    assert "claim shop/data" in capsys.readouterr().out
    assert main(words) == 2  # there is no terminal
    there["volumes"] = []
    assert main([*words, "--yes"]) == 0
    wording(capsys.readouterr().out)
    assert not [each for each in sent(services) if not each.startswith("GET")]


CLAIMS = [
    {
        "cinder.csi.openstack.org/cluster": cluster,
        "csi.storage.k8s.io/pvc/name": "data",
        "csi.storage.k8s.io/pvc/namespace": "shop",
    }
    for cluster in ("prod", "prod_eu")
]


def test_options_beside_the_name_of_a_cluster(clouds_yaml: Path, services: requests_mock.Mocker) -> None:
    words = ["cleanup", "--os-cloud", "lab", "--cluster", "prod"]
    assert main([*words, "--release", "lab"]) == 2
    for other in (["--infra-id", ID], ["--metadata", "."]):
        with pytest.raises(SystemExit) as caught:
            main([*words, *other])
        assert caught.value.code == 2
    assert sent(services) == []


def test_while_ipi_is_at_work_in_the_folder_nothing_goes(
    clouds_yaml: Path, there: Lists, services: requests_mock.Mocker, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = clouds_yaml.parent / "ocp"
    folder.mkdir()
    platform = {"cloud": "lab", "identifier": {"openshiftClusterID": ID}}
    (folder / "metadata.json").write_text(json.dumps({"clusterName": "dev", "infraID": ID, "openstack": platform}))
    with Folder(folder).locked():
        assert main(["cleanup", "--os-cloud", "lab", "--metadata", "ocp", "--yes"]) == 2
        assert main(["cleanup", "--os-cloud", "lab", "--metadata", "ocp", "--plan"]) == 0
    assert contains(capsys.readouterr().err, "ocp", "openstack-prep ipi", "[config.invalid]")
    assert not [each for each in sent(services) if not each.startswith("GET")]
