from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import requests_mock

from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus, by_weight
from openstack_prep.openshift import check as package
from openstack_prep.openshift.check import CheckContext, check
from openstack_prep.openshift.check.network.external_network import external_network
from openstack_prep.openshift.check.network.ovn import ovn
from openstack_prep.openshift.check.preflight import preflight
from tests.unit.conftest import failure
from tests.unit.openshift.check.neutron import NEUTRON, Neutron
from tests.unit.texts import contains


@pytest.fixture
def neutron(services: requests_mock.Mocker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Neutron:
    monkeypatch.setattr(package, "CHECKS", (("ovn", ovn), ("external_network", external_network)))
    return Neutron(services, tmp_path)


@pytest.mark.parametrize(("status", "level"), [(403, "unknown"), (501, "error"), (404, "error")])
def test_what_cannot_be_looked_at_is_found_and_the_rest_goes_on(
    neutron: Neutron, services: requests_mock.Mocker, status: int, level: str
) -> None:
    services.get(f"{NEUTRON}/ports", **failure(status))
    found = check(neutron.context(external_network="no-such"))
    assert sorted((each.status, each.where) for each in found) == sorted(
        [("error", "platform.openstack.externalNetwork"), (level, "ovn")]
    )


def test_the_places_of_what_could_not_be_checked_stay() -> None:
    """They are part of the JSON, wherever the checks are in the package."""
    names = "credentials services tls flavors image zones quota hosts object_store external_network floating_ips"
    later = "networks own_subnet vips names ovn mirror"
    assert list(dict.fromkeys(name for name, _ in package.CHECKS)) == [*names.split(), *later.split()]


def test_errors_come_first_and_what_is_found_twice_once(neutron: Neutron) -> None:
    words = {"where": "here", "what": "it", "why": "so", "fix": "do"}
    warning, error = Diagnostic(**words, status=DiagnosticStatus.WARNING), Diagnostic(**words)
    assert by_weight([warning, error, warning]) == [error, warning]


def test_no_check_hides_what_is_our_own_mistake(neutron: Neutron, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(context: CheckContext) -> Iterator[Diagnostic]:
        raise KeyError("ours")
        yield

    monkeypatch.setattr(package, "CHECKS", (("broken", broken),))
    with pytest.raises(KeyError):
        check(neutron.context())


def test_mistakes_speak_the_words_of_the_file(clouds_yaml: Path, tmp_path: Path) -> None:
    path = tmp_path / "install-config.yaml"
    path.write_text(
        """
apiVersion: v1
metadata: {name: dev.one}
baseDomain: example.com
networking: {machineCIDR: 10.0.0.0/16, clusterNetwork: [{cidr: 10.0.128.0/17, hostPrefix: 24}]}
platform: {openstack: {cloud: no-such, computeFlavor: m1}}
"""
    )
    found = [f"{each.where}: {each.what}; {each.fix}" for each in preflight(path, "4.2").findings]
    assert any(contains(text, "metadata.name", "dev.one", "baseDomain") for text in found)
    overlap = "networking.machineCIDR: 10.0.0.0/16 overlaps 10.0.128.0/17 of networking.clusterNetwork"
    assert any(contains(text, overlap) for text in found)
