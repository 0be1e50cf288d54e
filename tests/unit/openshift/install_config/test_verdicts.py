"""Our rules agree with the installer's own code, release by release."""

from __future__ import annotations

import pytest

from tests.unit.openshift.install_config.judged import names, ours, refused

STRICTER = {
    "network: machine_networks fd00::/64": "families differ: no machine gets an address that services use",
    "network: cluster_networks fd00::/64": "families differ: the network operator refuses them later",
    "stack: two stacks, one service": "families differ: the network operator refuses them later",
    "stack: IPv6 alone": "without controlPlanePort there is no IPv6 subnet",
    "machine: machines volume, two zones of volumes": "refused later, by the check that asks the cloud",
    "machine: control_plane volume, two zones of volumes": "refused later, by the check that asks the cloud",
    "machine: compute volume, two zones of volumes": "refused later, by the check that asks the cloud",
    "mirror: source x_y.io/okd": "no host has an underscore in its name",
    "mirror: mirror x_y.io/okd": "no host has an underscore in its name",
    "text: a key and text": "a line that is no key would be on every machine",
    "text: a key and text, FIPS": "a line that is no key would be on every machine",
    "given: networking.networkType kuryr": "no network operator knows it, in small letters or not",
    "given: host prefix 33": "no IPv4 network is that small",
    "proxy: http http:x": "a URL without a host is no proxy",
    "other: own subnet by name": "machinesSubnet takes an ID; the name would be read as one",
}
"""What we refuse on purpose although the installer's validation accepts it, and why."""


@pytest.mark.parametrize("release", refused())
def test_we_accept_nothing_that_the_installer_refuses(release: str) -> None:
    assert set(refused()[release]) - ours(release) == set()


@pytest.mark.parametrize("release", refused())
def test_we_refuse_nothing_that_the_installer_accepts(release: str) -> None:
    assert ours(release) - set(refused()[release]) - STRICTER.keys() == set()


def test_each_exception_is_one() -> None:
    accepted = {name for release in refused() for name in ours(release) - refused()[release].keys()}
    assert STRICTER.keys() - accepted == set()


@pytest.mark.parametrize("release", refused())
def test_the_table_has_verdicts_of_both_kinds(release: str) -> None:
    assert 100 < len(refused()[release]) < len(names(release)) - 100
