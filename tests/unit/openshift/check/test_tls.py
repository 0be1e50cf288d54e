from __future__ import annotations

import datetime
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from openstack_prep.openshift.check.services import certificates, endpoints
from tests.unit.conftest import token
from tests.unit.openshift.check.project import Project
from tests.unit.texts import Wording


def certificate(folder: Path, *names: str) -> tuple[Path, Path]:
    """Return the files of a self-signed certificate for localhost by its common name, and of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
    )
    if names:
        made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(each) for each in names]), critical=False)
    pem, private = folder / "cert.pem", folder / "key.pem"
    pem.write_bytes(made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    formats = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    private.write_bytes(key.private_bytes(*formats))
    return pem, private


@contextmanager
def served(pem: Path, key: Path) -> Iterator[str]:
    """Yield the URL of a server on loopback that shakes hands once, and says nothing."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, key)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)  # for whoever never comes

        def answer() -> None:
            connected, _ = server.accept()
            connected.settimeout(10)
            try:
                context.wrap_socket(connected, server_side=True).close()
            except OSError:  # whoever distrusts us hangs up
                connected.close()

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"https://localhost:{server.getsockname()[1]}/v3"
        thread.join()


@pytest.mark.parametrize(
    ("release", "names", "found"),
    [
        (18, ["localhost"], []),
        (10, [], ["error"]),
        (9, [], ["warning"]),
        (18, ["another.example.com"], []),  # that is for the login to tell
    ],
)
def test_a_certificate_needs_an_alternative_name(
    tmp_path: Path, release: int, names: list[str], found: list[str], wording: Wording
) -> None:
    pem, key = certificate(tmp_path, *names)
    with served(pem, key) as url:
        said = list(certificates([url], release, cacert=str(pem)))
    assert [each.status for each in said] == found
    for each in said:
        assert each.code == "certificate.no-alternative-name"
        wording(each.what)
        assert "-addext subjectAltName=DNS:localhost" in each.fix


def test_endpoints_that_nobody_of_ours_calls_may_be_as_they_are(
    project: Project, tmp_path: Path, wording: Wording
) -> None:
    catalog = token()["token"]["catalog"]
    with served(*certificate(tmp_path)) as url:
        next(each for each in catalog if each["type"] == "image")["endpoints"][0]["url"] = url
        elsewhere = {
            "interface": "public",
            "region": "one",
            "region_id": "one",
            "url": "https://localhost:1",
            "id": "x",
        }
        catalog.append({"id": "metric", "type": "metric", "name": "metric", "endpoints": [elsewhere]})
        project.login(catalog=catalog)
        (said,) = project.found(endpoints)
    wording(said)


def test_one_that_nobody_trusts(tmp_path: Path, wording: Wording) -> None:
    with served(*certificate(tmp_path, "localhost")) as url:
        (said,) = certificates([url, url], 18)
    assert (said.status, said.where) == ("error", url.removesuffix("/v3"))
    assert said.code == "certificate.unverified"
    wording(said.what)


def test_a_port_where_nobody_listens_and_one_without_tls() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    (said,) = certificates([f"https://127.0.0.1:{port}", "http://127.0.0.1:1"], 18)
    assert said.status == "warning"
    assert said.code == "endpoint.unreachable"
