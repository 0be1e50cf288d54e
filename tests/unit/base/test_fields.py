from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from openstack_prep.base import fields
from tests.unit.texts import Wording, contains


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """The folder that the spec lies in."""
    return tmp_path


def read(kind: Any, value: Any, base: Path = Path("/spec")) -> Any:
    """Read a value as the spec reader does."""
    return TypeAdapter(kind).validate_python(value, strict=True, context={"base": base})


def refused(kind: Any, value: Any, base: Path = Path("/spec")) -> str:
    with pytest.raises(ValidationError) as caught:
        read(kind, value, base)
    return str(caught.value)


SIZES = [
    (fields.MiB, 16384, 16384),
    (fields.MiB, "16384", 16384),
    (fields.MiB, "16GiB", 16384),
    (fields.MiB, "16 gib", 16384),
    (fields.MiB, " 16GIB ", 16384),
    (fields.MiB, "1TiB", 2**20),
    (fields.MiB, "0.5GiB", 512),
    (fields.MiB, "2048KiB", 2),
    (fields.MiB, "1048576B", 1),
    (fields.MiB, 0, 0),
    (fields.GiB, "25GiB", 25),
    (fields.GiB, "1024MiB", 1),
    (fields.GiB, "25", 25),
    (fields.Bytes, "1KiB", 1024),
    (fields.LimitMiB, -1, -1),
    (fields.LimitMiB, "-1", -1),
    (fields.LimitGiB, "100GiB", 100),
]


@pytest.mark.parametrize(("kind", "said", "value"), SIZES)
def test_sizes(kind: Any, said: Any, value: int) -> None:
    assert read(kind, said) == value


NO_SIZES = [
    (fields.MiB, "16GB", "is not a size; write 16GiB"),
    (fields.MiB, "16 t", "is not a size; write 16TiB"),
    (fields.GiB, "2048mb", "is not a size; write 2048MiB"),
    (fields.GiB, "16MB", "is not a size; use a number of GiB"),
    (fields.MiB, "16Gi", "is not a size"),
    (fields.MiB, "a lot", "is not a size"),
    (fields.MiB, "", "is not a size"),
    (fields.MiB, "1e3", "is not a size"),
    (fields.MiB, "9" * 400, "is not a size"),
    (fields.MiB, "1KiB", "is not a whole number of MiB"),
    (fields.MiB, "1.5", "is not a whole number of MiB"),
    (fields.GiB, "25MiB", "is not a whole number of GiB"),
    (fields.MiB, -1, "greater than or equal to 0"),
    (fields.MiB, "-1", "greater than or equal to 0"),
    (fields.LimitMiB, -2, "greater than or equal to -1"),
    (fields.LimitMiB, "-1GiB", "is not a whole number of MiB"),
    (fields.MiB, 16 * 2**30, "should be less than or equal to"),
    (fields.GiB, "1000000TiB", "should be less than or equal to"),
    (fields.MiB, 1.5, "valid integer"),
    (fields.MiB, True, "valid integer"),
    (fields.MiB, [16], "valid integer"),
    (fields.Memory, 0, "greater than 0"),
    (fields.Count, 0, "greater than 0"),
    (fields.Limit, -2, "greater than or equal to -1"),
    (fields.Port, 0, "greater than or equal to 1"),
    (fields.Port, 65536, "less than or equal to 65535"),
    (fields.Name, "", "at least 1 character"),
    (fields.Name, "n" * 256, "at most 255 characters"),
]


@pytest.mark.parametrize(("kind", "said", "why"), NO_SIZES)
def test_numbers_and_names_that_are_refused(kind: Any, said: Any, why: str) -> None:
    assert why in refused(kind, said)


@pytest.mark.parametrize(
    ("kind", "said", "value"),
    [
        (fields.Address, "192.0.2.10", "192.0.2.10"),
        (fields.Address, "2001:DB8:0::10", "2001:db8::10"),
        (fields.Cidr, "192.0.2.0/24", "192.0.2.0/24"),
        (fields.Cidr, "2001:DB8::/64", "2001:db8::/64"),
        (fields.Cidr, "192.0.2.7", "192.0.2.7/32"),
    ],
)
def test_addresses_have_one_form(kind: Any, said: str, value: str) -> None:
    assert read(kind, said) == value


@pytest.mark.parametrize(
    ("kind", "said", "why"),
    [
        (fields.Address, "192.0.2.256", "is not an IP address; use one such as"),
        (fields.Address, "api", "is not an IP address"),
        (fields.Address, "192.0.2.0/24", "is not an IP address"),
        (fields.Address, "fe80::1%eth0", "names an interface of one machine; leave out the % and what follows"),
        (fields.Address, 3221225994, "valid string"),
        (fields.Cidr, "192.0.2.1/24", "has host bits set"),
        (fields.Cidr, "192.0.2.0/33", "is not a network in CIDR notation"),
        (fields.Cidr, "net", "is not a network in CIDR notation"),
    ],
)
def test_addresses_that_are_none(kind: Any, said: Any, why: str) -> None:
    assert why in refused(kind, said)


@pytest.mark.parametrize(("said", "value"), [(True, "true"), (2, "2"), (1.5, "1.5"), ("x", "x")])
def test_a_text_may_look_like_something_else(said: Any, value: str) -> None:
    assert read(fields.Text, said) == value


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("rhcos.qcow2", "/spec/rhcos.qcow2"),
        ("../x", "/x"),
        ("/images/x", "/images/x"),
        ("~/x", "/home/me/x"),
        ("https://example.org/x", "https://example.org/x"),
        ("file:///images/x", "file:///images/x"),
    ],
)
def test_a_source_is_an_url_or_a_path_beside_the_spec(said: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert read(fields.Source, said) == value


@pytest.mark.parametrize(
    "said", ["ftp://example.org/x", "http://[/x", "http://me@/x", "https://host:port/x", "file://x"]
)
def test_no_other_urls_are_sources(said: str, wording: Wording) -> None:
    wording(refused(fields.Source, said))


@pytest.mark.parametrize("kind", [fields.File, fields.Source])
def test_the_home_of_nobody_is_no_path(kind: Any, wording: Wording) -> None:
    wording(refused(kind, "~nobody-of-that-name/x"))


@pytest.mark.parametrize("kind", [fields.File, fields.Source])
def test_a_path_is_not_empty(kind: Any, wording: Wording) -> None:
    wording(refused(kind, ""))


@pytest.mark.parametrize("kind", [fields.File, fields.Source])
def test_a_path_has_no_null_character(kind: Any) -> None:
    assert "is not a path" in refused(kind, "a\0b")


@pytest.mark.parametrize("said", ["sha256:" + "AB" * 32, "ab" * 32, f" {'ab' * 32}\n"])
def test_a_checksum_says_its_algorithm(said: str) -> None:
    assert read(fields.Checksum, said) == "sha256:" + "ab" * 32


@pytest.mark.parametrize("said", ["sha256:ab", "sha512:" + "ab" * 32, "zz" * 32, "crc:12345678", ""])
def test_what_is_no_checksum(said: str, wording: Wording) -> None:
    wording(refused(fields.Checksum, said))


DATA = base64.b64encode(b"\0\0\0\x0bssh-ed25519" + bytes(36)).decode()
KEY = f"ssh-ed25519 {DATA} me@here"


def test_a_public_key_is_itself_or_a_file(base: Path) -> None:
    (base / "id.pub").write_text(KEY + "\n")
    assert read(fields.PublicKey, KEY) == KEY
    assert read(fields.PublicKey, {"file": "id.pub"}, base) == KEY


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nx\n", "is a private key; use the public key"),
        ("ssh-ed25519", "is not an SSH public key"),
        (f"ssh-rsa {DATA}", "is not an SSH public key"),
        ("ssh-ed25519 !!!", "is not an SSH public key"),
        ("ssh-ed25519 ssh", "is not an SSH public key"),
        (f"{KEY}\n{KEY}", "is not an SSH public key"),
        ({"file": "gone.pub"}, "cannot be read"),
        ({"files": "x"}, "valid string"),
    ],
)
def test_what_is_no_public_key(said: Any, why: str, base: Path) -> None:
    assert why in refused(fields.PublicKey, said, base)


def test_a_private_key_is_not_repeated_to_the_user_as_a_whole(base: Path) -> None:
    (base / "id").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nhush\n")
    assert "hush" not in refused(fields.PublicKey, {"file": "id"}, base)


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("10.0.0.5", "10.0.0.5"),
        ("10.0.0.5/32", "10.0.0.5"),
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("2001:DB8::5/128", "2001:db8::5"),
    ],
)
def test_blocks(said: str, value: str) -> None:
    assert read(fields.Block, said) == value


def test_what_is_no_block_or_mac(wording: Wording) -> None:
    wording(refused(fields.Block, "10.0.0.5/8"))
    assert contains(refused(fields.Mac, "fa163e000001"), "MAC")
    assert read(fields.Mac, "FA:16:3E:00:00:01") == "fa:16:3e:00:00:01"
