"""An image from where it is hard to get: a mirror that a proxy alone knows, with TLS by a private CA and a login."""

from __future__ import annotations

import hashlib
import secrets
import ssl
from collections.abc import Iterator
from typing import Any

import pytest
import trustme

from openstack_prep.download.http import CA_BUNDLES
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.qcow2 import qcow2
from tests.functional.conftest import Prep
from tests.unit import distant
from tests.unit.distant import Distant, Proxy, forward

CONTENT = qcow2(1)
CHECKSUM = hashlib.sha256(CONTENT).hexdigest()
PASSWORD, OF_THE_PROXY, SIGNATURE = "pw-of-the-mirror", "pw-of-the-proxy", "a-signature"


@pytest.fixture
def mirror(prep: Prep) -> Iterator[Distant]:
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(prep.folder / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("mirror.invalid").configure_cert(context)
    with distant.serve(Distant(CONTENT, login=f"me:{PASSWORD}"), context) as serving:
        yield serving


@pytest.fixture
def proxy(prep: Prep, mirror: Distant) -> Iterator[Proxy]:
    with forward(Proxy(mirror.port, login=f"me:{OF_THE_PROXY}")) as forwarding:
        prep.environment |= dict.fromkeys(CA_BUNDLES, "") | {
            "https_proxy": f"http://me:{OF_THE_PROXY}@127.0.0.1:{forwarding.port}",
            "http_proxy": f"http://127.0.0.1:{forwarding.port}",
            "no_proxy": "127.0.0.1",  # the cloud
            "NETRC": str(prep.folder / ".netrc"),
            "SSL_CERT_FILE": str(prep.folder / "ca.pem"),
        }
        yield forwarding


@pytest.fixture
def name() -> str:
    return f"src{secrets.token_hex(3)}"


def spec(name: str, source: str) -> dict[str, Any]:
    images = [{"name": name, "source": source, "checksum": CHECKSUM}]
    return {"name": name, "project": {"name": name}, "images": images}


def test_by_proxy_ca_and_netrc(prep: Prep, devcloud: Devcloud, proxy: Proxy, name: str) -> None:
    (prep.folder / ".netrc").write_text(f"machine mirror.invalid login me password {PASSWORD}\n")
    prep.write(spec(name, "https://mirror.invalid/disk"))
    prep.apply()
    (made,) = devcloud.admin.image.images(name=name, visibility="all")
    assert devcloud.admin.image.download_image(made).content == CONTENT
    assert set(proxy.asked) == {"CONNECT mirror.invalid:443"}  # and nothing that was meant for the cloud


def test_what_is_secret_in_a_source_is_never_shown(prep: Prep, proxy: Proxy, mirror: Distant, name: str) -> None:
    prep.write(spec(name, f"https://me:{PASSWORD}@mirror.invalid/disk?signature={SIGNATURE}"))
    said = [prep.run(*words.split(), prep.spec.name) for words in ("plan --debug", "plan --format json --out kept")]
    mirror.redirects = {f"/disk?signature={SIGNATURE}": f"http://elsewhere.invalid/?signature={SIGNATURE}"}
    said.append(prep.run("apply", "--yes", "--debug", prep.spec.name, code=1))
    assert "https://mirror.invalid/disk redirects to http://elsewhere.invalid/, without TLS" in said[-1].stdout
    mirror.redirects.clear()
    mirror.login += "-of-today"
    said.append(prep.run("apply", "--yes", "--debug", prep.spec.name, code=1))
    assert "https://mirror.invalid/disk cannot be downloaded: 401 Unauthorized" in said[-1].stdout
    prep.environment["no_proxy"] += ",mirror.invalid"
    said.append(prep.run("apply", "--yes", "--debug", prep.spec.name, code=1))
    prep.environment |= {"no_proxy": "127.0.0.1", "SSL_CERT_FILE": ""}
    said.append(prep.run("apply", "--yes", "--debug", prep.spec.name, code=1))
    assert "set REQUESTS_CA_BUNDLE to a file with its CA" in said[-1].stdout
    shown = "".join(each.stdout + each.stderr for each in said)
    assert "Traceback" in shown
    for secret in (PASSWORD, OF_THE_PROXY, SIGNATURE):
        assert secret not in shown
