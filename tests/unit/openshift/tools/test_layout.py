from __future__ import annotations

import pytest

from openstack_prep.base.errors import DownloadError
from openstack_prep.openshift.tools.layout import Archive, find_archive, folder_of, is_version, platforms
from tests.unit.texts import Wording, expect_error

OCP = "https://mirror.openshift.com/pub/openshift-v4"
OCP5 = "https://mirror.openshift.com/pub/openshift-v5"


@pytest.mark.parametrize(
    ("release", "mirror", "arch", "folder"),
    [
        ("4.18.7", None, "x86_64", f"{OCP}/x86_64/clients/ocp/4.18.7"),
        ("4.21.0-rc.1", None, "aarch64", f"{OCP}/aarch64/clients/ocp/4.21.0-rc.1"),
        ("latest", None, "x86_64", f"{OCP}/x86_64/clients/ocp/latest"),
        ("stable-4.18", "http://mirror.lan/ocp/", "s390x", "http://mirror.lan/ocp/s390x/clients/ocp/stable-4.18"),
        ("fast-4.20", "/srv/mirror", "x86_64", "/srv/mirror/x86_64/clients/ocp/fast-4.20"),
        (
            "4.20.0-okd-scos.3",
            None,
            "x86_64",
            "https://github.com/okd-project/okd/releases/download/4.20.0-okd-scos.3",
        ),
        ("4.20.0-okd-scos.3", "/srv", "x86_64", "/srv/x86_64/clients/ocp/4.20.0-okd-scos.3"),
        ("4.22.0-ec.5", None, "x86_64", f"{OCP}/x86_64/clients/ocp-dev-preview/4.22.0-ec.5"),
        ("5.0.2", None, "x86_64", f"{OCP5}/x86_64/clients/ocp/5.0.2"),
        ("5.0.0-rc.2", None, "x86_64", f"{OCP5}/x86_64/clients/ocp/5.0.0-rc.2"),
        ("5.1.0-ec.0", None, "s390x", f"{OCP5}/s390x/clients/ocp-dev-preview/5.1.0-ec.0"),
        ("5.1.0-ec.0", "/srv", "s390x", "/srv/s390x/clients/ocp-dev-preview/5.1.0-ec.0"),
        ("stable-5.0", None, "aarch64", f"{OCP5}/aarch64/clients/ocp/stable-5.0"),
        ("candidate-5.1", None, "x86_64", f"{OCP5}/x86_64/clients/ocp/candidate-5.1"),
        ("stable-5.0", "/srv", "x86_64", "/srv/x86_64/clients/ocp/stable-5.0"),
        ("4.15.0", None, "x86_64", f"{OCP}/x86_64/clients/ocp/4.15.0"),
        (
            "5.0.0-okd-scos.0",
            None,
            "x86_64",
            "https://github.com/okd-project/okd/releases/download/5.0.0-okd-scos.0",
        ),
        ("https://mirror.lan/4.18/", "/srv", "x86_64", "https://mirror.lan/4.18"),
        ("./4.18", None, "x86_64", "./4.18"),
        (".", None, "x86_64", "."),
    ],
)
def test_where_a_release_is(release: str, mirror: str | None, arch: str, folder: str) -> None:
    assert folder_of(release, mirror, arch) == folder


@pytest.mark.parametrize(
    ("release", "say"),
    [
        ("4.18", "write stable-4.18 or latest-4.18, or"),
        ("v4.9", "write stable-4.9 or latest-4.9, or"),
        ("5.0", "write stable-5.0 or latest-5.0, or"),
        ("newest", "write 4.18.7, stable-4.18, latest, or"),
        ("4.18.7?x", "write 4.18.7, stable-4.18, latest, or"),
        ("", "write 4.18.7, stable-4.18, latest, or"),
    ],
)
def test_no_release(release: str, say: str, wording: Wording) -> None:
    with expect_error(ValueError) as caught:
        folder_of(release, None, "x86_64")
    wording(caught.value)


def test_versions() -> None:
    assert all(map(is_version, ("4.18.7", "4.2.0", "4.15.0-0.okd-2024-03-10-010116", "5.0.0", "5.1.0-ec.0")))
    assert not any(map(is_version, ("4.18", "5.0", "stable-4.18", "/4.18.7", "4.18.7/..", "4.18.7\n")))


@pytest.mark.parametrize(
    ("system", "host", "arch", "names"),
    [
        ("linux", "x86_64", "x86_64", ("linux", "linux-amd64")),
        ("linux", "aarch64", "x86_64", ("linux-arm64",)),
        ("linux", "x86_64", "aarch64", ("linux-amd64",)),
        ("linux", "s390x", "s390x", ("linux", "linux-s390x")),
        ("mac", "x86_64", "x86_64", ("mac",)),
        ("mac", "aarch64", "x86_64", ("mac-arm64",)),
    ],
)
def test_machines(system: str, host: str, arch: str, names: tuple[str, ...]) -> None:
    assert platforms(system, host, arch) == names


SUMS = {
    "openshift-client-linux-4.18.7.tar.gz": "c",
    "openshift-install-linux-4.18.7.tar.gz": "a",
    "openshift-install-linux-arm64-4.18.7.tar.gz": "b",
    "openshift-install-linux.tar.gz": "a",
    "openshift-install-rhel9-amd64.tar.gz": "d",
}


def test_the_archive_of_a_machine() -> None:
    assert find_archive(SUMS, "openshift-install", ("linux", "linux-amd64"), "x") == Archive(
        name="openshift-install-linux-4.18.7.tar.gz",
        version="4.18.7",
        sha256="a",
        aliases=("openshift-install-linux.tar.gz",),
    )
    newer = find_archive({"openshift-install-linux-5.0.2.tar.gz": "n"}, "openshift-install", ("linux",), "x")
    assert newer.version == "5.0.2"
    found = find_archive(SUMS, "openshift-install", ("linux-arm64",), "x")
    assert (found.sha256, found.version) == ("b", "4.18.7")


def test_an_archive_that_is_not_listed(wording: Wording) -> None:
    with pytest.raises(
        DownloadError,
        match=r"^x lists no openshift-client-mac-VERSION.tar.gz; it lists openshift-client-linux-4.18.7.tar.gz$",
    ):
        find_archive(SUMS, "openshift-client", ("mac",), "x")
    with pytest.raises(DownloadError) as caught:
        find_archive({"a": "b"}, "openshift-client", ("mac",), "x")
    wording(caught.value)


def test_two_releases_in_one_list() -> None:
    both = SUMS | {"openshift-install-linux-4.18.6.tar.gz": "e"}
    with expect_error(DownloadError, "-4.18.6.tar.gz", "-4.18.7.tar.gz"):
        find_archive(both, "openshift-install", ("linux",), "x")
