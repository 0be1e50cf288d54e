from __future__ import annotations

from ipaddress import ip_network
from pathlib import Path

import pytest

from openstack_prep.base.errors import SpecError
from openstack_prep.openshift.verify.target import wanted
from tests.unit.openshift.verify.view import APPS, ID
from tests.unit.texts import Wording, contains, expect_error

OLD = """
baseDomain: example.com.
metadata: {name: dev}
platform:
  openstack:
    lbFloatingIP: 192.0.2.10
    INGRESSFLOATINGIP: 192.0.2.11
    apiVIP: 10.0.0.5
pullSecret: '{"auths": {}}'
"""


def test_by_the_infra_id_alone() -> None:
    found = wanted(infra_id=ID)
    api, ingress = found.targets
    assert (api.port, api.tcp, api.roles, api.hosts) == (f"{ID}-api-port", (6443,), ("master", "bootstrap"), ())
    assert (ingress.port, ingress.tcp, ingress.given) == (f"{ID}-ingress-port", (80, 443), None)
    assert (api.url, ingress.url) == ("TCP 6443", "TCP 80, 443")


def test_names_and_addresses_from_an_install_config_of_any_release(tmp_path: Path) -> None:
    file = tmp_path / "install-config.yaml"
    file.write_text(OLD)
    found = wanted(infra_id=ID, install_config=file, source="203.0.113.7")
    api, ingress = found.targets
    assert (api.hosts, api.given, api.virtual) == (("api.dev.example.com",), "192.0.2.10", ("10.0.0.5",))
    assert (ingress.hosts, ingress.given, ingress.virtual) == (APPS, "192.0.2.11", ())
    assert found.source == ip_network("203.0.113.7/32")
    assert (found.user_managed, api.url) == (False, "https://api.dev.example.com:6443")
    stronger = wanted(infra_id=ID, install_config=file, api_floating_ip="192.0.2.12", cluster_name="dev-long")
    assert (stronger.targets[0].given, stronger.targets[0].hosts) == ("192.0.2.12", ("api.dev-long.example.com",))


def test_all_mistakes_at_once(tmp_path: Path, wording: Wording) -> None:
    with pytest.raises(SpecError) as caught:
        wanted(infra_id="dev", install_config=tmp_path / "none.yaml", source="here")
    infra_id, file, source = (str(each) for each in caught.value.mistakes)
    assert contains(infra_id, "infraID", "dev")
    assert "none.yaml" in file
    wording(source)


def test_a_name_that_the_infra_id_may_have_cut(wording: Wording) -> None:
    cut = "cluster-of-the-north-"[:20] + "1"
    with pytest.raises(SpecError) as caught:
        wanted(infra_id=f"{cut}-x7k2p", base_domain="example.com")
    wording(caught.value)
    api = wanted(infra_id=f"{cut}-x7k2p", base_domain="example.com", cluster_name=f"{cut}23").targets[0]
    assert api.hosts == (f"api.{cut}23.example.com",)
    assert wanted(infra_id=f"{cut}-x7k2p").targets[0].hosts == ()


def test_the_install_config_of_another_cluster(tmp_path: Path) -> None:
    file = tmp_path / "install-config.yaml"
    file.write_text(OLD)
    with expect_error(SpecError, "dev", "prod-x7k2p"):
        wanted(infra_id="prod-x7k2p", install_config=file)
    file.write_text(OLD.replace("name: dev", "name: dev2"))
    with expect_error(SpecError, "dev2", "dev-x7k2p"):
        wanted(infra_id="dev-x7k2p", install_config=file)
