"""Real listeners on loopback: what a cluster answers, and what stands in its place."""

from __future__ import annotations

import contextlib
import datetime
import socket
import ssl
import threading
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
DAY = datetime.timedelta(days=1)


def certificate(folder: Path, *names: str, since: int = -1, until: int = 90) -> Path:
    """Write a key and its own certificate for names, valid from and until some days from now; return the file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loopback")])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + since * DAY)
        .not_valid_after(now + until * DAY)
    )
    if names:
        named: list[x509.GeneralName] = [
            x509.IPAddress(ip_address(each)) if each[0].isdigit() else x509.DNSName(each) for each in names
        ]
        builder = builder.add_extension(x509.SubjectAlternativeName(named), critical=False)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "server.pem"
    path.write_bytes(private + builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    return path


@contextlib.contextmanager
def listening(answer: bytes | None = OK, *, pem: Path | None = None, pause: float = 0.0) -> Iterator[int]:
    """Answer every connection with some bytes, None: never; yield the port. With ``pem`` it speaks TLS.

    With a ``pause`` it sends one byte at a time.
    """
    server = socket.create_server(("127.0.0.1", 0))
    stop, opened = threading.Event(), list[socket.socket]()
    context = None
    if pem is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)

    def serve() -> None:
        while not stop.is_set():
            try:
                connection, _ = server.accept()
            except OSError:
                return
            opened.append(connection)
            with contextlib.suppress(OSError):
                connection.settimeout(5)
                connection = context.wrap_socket(connection, server_side=True) if context else connection
                opened.append(connection)
                if answer is not None:
                    connection.recv(4096)
                    for part in (answer[at : at + 1] for at in range(len(answer))) if pause else (answer,):
                        connection.sendall(part)
                        stop.wait(pause)
                    connection.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield server.getsockname()[1]
    finally:
        stop.set()
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        for each in opened:
            each.close()
        thread.join(5)


def unused() -> int:
    """Return a port of loopback on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
