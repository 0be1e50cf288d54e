"""Whole files with the names of exposures: ../data/names; OPENSTACK_PREP_STORE=1 writes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter, ValidationError

from openstack_prep.exposures.endpoint import Exposed, ExposedPort, ExposureTarget, PlacedExposure
from openstack_prep.exposures.names import ExposureNames, ExternalDns, files, mistakes

Stored = Callable[[str, str], None]
TODAY = date(2026, 11, 23)


def placed(name: str, address: str | None, *names: str, public: str | None = None) -> PlacedExposure:
    exposure = Exposed(
        name=name,
        cluster="shop",
        target=ExposureTarget(service=f"shop/{name}"),
        ports=(ExposedPort(port=443),),
        how="metallb",
        names=names,
    )
    return PlacedExposure(exposure=exposure, address=address, public_address=public)


WEB = placed("web", "10.1.0.200", "shop.example.com", "*.shop.example.com", "example.com", public="192.0.2.10")
MAIL = placed("mail", "192.0.2.11", "mail.example.org", "shop.example.com", "ns.example.org")
SIX = placed("six", "2001:db8::10", "shop.example.com", "*.shop.example.com")
ALL = ExposureNames(
    zones=("example.com", "shop.example.com", "example.org"),
    server="ns.example.org",
    name_servers=("192.0.2.53", "2001:db8::53"),
    external_dns=ExternalDns(owner="shop"),
)


def test_files(stored: Stored) -> None:
    for name, text in files(ALL, [WEB, MAIL], today=TODAY).items():
        stored(f"../exposures/data/names/{name}", text.rstrip("\n"))


def test_names_of_both_ip_versions() -> None:
    texts = files(replace(ALL, external_dns=None), [WEB, SIX], today=TODAY)
    assert "2001:db8::10 shop.example.com\n" in texts["hosts"]
    assert "@ IN AAAA 2001:db8::10\n" in texts["shop.example.com.zone"]


def test_a_zone_delegates_the_next_zones_below_it() -> None:
    zones = ("example.com", "a.example.com", "b.a.example.com", "notexample.com")
    texts = files(ExposureNames(zones=zones, server="ns.example.net"), [], today=TODAY)
    delegations = {zone: [line for line in texts[f"{zone}.zone"].splitlines() if " NS " in line][1:] for zone in zones}
    assert delegations == {
        "example.com": ["a IN NS ns.example.net."],
        "a.example.com": ["b IN NS ns.example.net."],
        "b.a.example.com": [],
        "notexample.com": [],
    }


def test_an_exposure_without_an_address_has_no_names_yet() -> None:
    assert files(ExposureNames(), [placed("later", None, "later.example.com")], today=TODAY) == {
        "hosts": "",
        "dnsmasq.conf": "",
    }


def test_a_second_run_changes_nothing() -> None:
    first = files(ALL, [WEB, MAIL], today=TODAY)
    assert files(ALL, [WEB, MAIL], previous=first, today=date(2028, 1, 1)) == first


def test_each_name_is_in_one_endpoint() -> None:
    documents = yaml.safe_load_all(files(ALL, [WEB, MAIL], today=TODAY)["external-dns-endpoints.yaml"])
    endpoints = [endpoint for document in documents for endpoint in document["spec"]["endpoints"]]
    names = [endpoint["dnsName"] for endpoint in endpoints]
    assert len(names) == len(set(names))
    assert endpoints[0]["targets"] == ["192.0.2.10", "192.0.2.11"]


# --- mistakes -----------------------------------------------------------------------------


def places(settings: ExposureNames, *found: PlacedExposure) -> list[str]:
    return [mistake.where for mistake in mistakes(settings, found)]


def test_valid_settings() -> None:
    assert places(ALL, WEB, MAIL) == []
    assert places(ExposureNames(), WEB, MAIL, SIX) == []
    assert places(ALL, MAIL, replace(SIX, address=None)) == []


@pytest.mark.parametrize(
    ("settings", "found", "where"),
    [
        (replace(ALL, zones=("*.example.com", *ALL.zones)), [WEB, MAIL], "zones[0]"),
        (replace(ALL, zones=(*ALL.zones, "example.org")), [WEB, MAIL], "zones[3]"),
        (replace(ALL, server=None), [WEB, MAIL], "server"),
        (replace(ALL, server="*.example.net"), [WEB, MAIL], "server"),
        (ALL, [WEB], "server"),
        (replace(ALL, zones=()), [WEB, MAIL], "zones"),
        (replace(ALL, zones=("example.com",)), [WEB, MAIL], "exposures.mail.names[0]"),
        (ALL, [MAIL, SIX], "exposures.six.names[0]"),
    ],
)
def test_mistakes(settings: ExposureNames, found: list[PlacedExposure], where: str) -> None:
    assert places(settings, *found)[0] == where


# --- reading ------------------------------------------------------------------------------


def test_reading() -> None:
    given = {"zones": ["Example.com."], "external_dns": {"owner": "shop"}}
    settings = TypeAdapter(ExposureNames).validate_json(json.dumps(given))
    assert settings == ExposureNames(zones=("example.com",), external_dns=ExternalDns(owner="shop"))


@pytest.mark.parametrize(
    "given",
    [
        {"zones": ["exa mple.com"]},
        {"name_servers": ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"]},
        {"name_servers": ["ns.example.com"]},
        {"external_dns": {"owner": "a'b"}},
        {"external_dns": {"owner": "a", "webhook_release": 2.3}},
        {"external_dns": {}},
    ],
)
def test_values_that_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(ExposureNames).validate_json(json.dumps(given))


def test_hostile_values_are_plain_text_in_yaml() -> None:
    hostile = "x: {y}\n- &a '\"`$(id)"
    external_dns = ExternalDns(owner=hostile, cloud=hostile, secret=hostile)
    values = yaml.safe_load(files(replace(ALL, external_dns=external_dns), [], today=TODAY)["external-dns-values.yaml"])
    assert values["txtOwnerId"] == hostile
    assert values["provider"]["webhook"]["env"] == [{"name": "OS_CLOUD", "value": hostile}]
