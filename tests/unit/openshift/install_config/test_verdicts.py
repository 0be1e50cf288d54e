"""Our rules agree with the installer's own code, release by release."""

from __future__ import annotations

import pytest

from openstack_prep.openshift.install_config import releases
from tests.unit.openshift.install_config.judged import judged, names, ours, refused

STRICTER = {
    "network: machine_networks fd00::/64": "families differ: no machine gets an address that services use",
    "network: cluster_networks fd00::/64": "families differ: the network operator refuses them later",
    "stack: two stacks, one service": "families differ: the network operator refuses them later",
    "stack: IPv6 alone": "without controlPlanePort there is no IPv6 subnet",
    "stack: IPv6 alone, preview": "without controlPlanePort there is no IPv6 subnet",
    "machine: machines volume, two zones of volumes": "refused later, by the check that asks the cloud",
    "machine: control_plane volume, two zones of volumes": "refused later, by the check that asks the cloud",
    "machine: compute volume, two zones of volumes": "refused later, by the check that asks the cloud",
    "mirror: source x_y.io/okd": "no host has an underscore in its name",
    "mirror: mirror x_y.io/okd": "no host has an underscore in its name",
    "given: key of one kind with another's data ": "sshd ignores a key whose kind differs from its data",
    "given: key of one kind with another's data and FIPS": "sshd ignores a key whose kind differs from its data",
    "given: keys, text before, FIPS": "a line that is no key would be on every machine",
    "given: addresses of IPv4 in IPv6": "no machine can have that address",
    "text: a key and text": "a line that is no key would be on every machine",
    "text: a key and text, FIPS": "a line that is no key would be on every machine",
    "given: networking.networkType kuryr": "no network operator knows it, in small letters or not",
    "given: host prefix 33": "no IPv4 network is that small",
    "proxy: http http:x": "a URL without a host is no proxy",
    "other: own subnet by name": "machinesSubnet takes an ID; the name would be read as one",
    "other: own subnet by name, preview": "machinesSubnet takes an ID; the name would be read as one",
    "other: own subnet, UUID 1": "refused later, by the check that asks the cloud",
}
"""What we refuse on purpose although the installer's validation accepts it, and why."""

STRICTER_BEFORE = {
    "vip: equal": ("4.9", "two machines would claim one address"),
    "vip: the API has the default of the ingress": ("4.9", "two machines would claim one address"),
    "vip: the ingress has the default of the API": ("4.9", "two machines would claim one address"),
    "given: platform.openstack.controlPlanePort {}": ("4.17", "it fails later: the rest of the code takes a subnet"),
    "given: platform.openstack.controlPlanePort {'fixedIPs': []}": ("4.17", "it fails later"),
    "given: platform.openstack.controlPlanePort {'fixedIPs': [{'subnet': {}}]}": ("4.17", "it fails later"),
    "given: platform.openstack.controlPlanePort {'fixedIPs': [{}]}": ("4.17", "it fails later"),
    "proxy: http https://proxy": ("4.7", "only the network operator refuses the scheme"),
    "proxy: http proxy:3128": ("4.7", "only the network operator refuses the scheme"),
    "proxy: https ftp://proxy": ("4.7", "only the network operator refuses the scheme"),
}
"""The same, before the release whose validation agrees."""


ACCEPTED_SINCE = {
    f"capability: set v4.17{more}": ("4.17", "4.17.4 has this set (OCPBUGS-41642); the judged source is older")
    for more in ("", " with mandatory", " with mandatory and OLM")
}
"""What a later patch release than the judged one accepts."""


def explained(release: str) -> set[str]:
    number = releases.minor(release)
    return {*STRICTER, *(name for name, (until, _) in STRICTER_BEFORE.items() if number < releases.minor(until))}


@pytest.mark.parametrize("release", refused())
def test_we_accept_nothing_that_the_installer_refuses(release: str) -> None:
    later = {name for name, (since, _) in ACCEPTED_SINCE.items() if since == release}
    assert set(refused()[release]) - ours(release) == later


@pytest.mark.parametrize("release", refused())
def test_we_refuse_nothing_that_the_installer_accepts(release: str) -> None:
    assert ours(release) - set(refused()[release]) - explained(release) == set()


def test_each_exception_is_one() -> None:
    accepted = {name for release in refused() for name in ours(release) - refused()[release].keys()}
    assert (STRICTER.keys() | STRICTER_BEFORE.keys()) - accepted == set()


@pytest.mark.parametrize("release", refused())
def test_the_table_has_verdicts_of_both_kinds(release: str) -> None:
    assert 100 < len(refused()[release]) < len(names(release)) - 100


@pytest.mark.parametrize("release", refused())
def test_every_case_was_judged(release: str) -> None:
    assert len(names(release)) == judged()[release]
