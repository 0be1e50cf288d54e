from __future__ import annotations

import pytest

from openstack_prep.base.secret import Secret
from openstack_prep.kubernetes.keys.schema import hide, hide_in_url, hide_variable


@pytest.mark.parametrize(
    "text",
    [
        "oidc-client-secret=abc",
        "--some-password=abc",
        "https://u:p@example.com",
        "https://token@example.com",
        "https://example.com/a?private_token=x",
        "https://bucket/a?X-Amz-Signature=x",
        'proxy_set_header Authorization "abc";',
        "proxy_set_header X-Api-Key abc;",
        "Bearer abcdefgh",
        "user: {token: abc}",
        "-----BEGIN RSA PRIVATE KEY-----",
        "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQ==",
    ],
)
def test_texts_with_a_secret(text: str) -> None:
    assert isinstance(hide(text), Secret)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "https://example.com/a?x=1",
        "authentication-token-webhook-config-file=/etc/a.yaml",
        "tls-private-key-file=/etc/a.pem",
        "service-account-extend-token-expiration=true",
        "authorization-mode=Node,RBAC",
        "bootstrap-token=/etc/token",
        "feature-gates=RotateKubeletServerCertificate=true",
        "enable-admission-plugins=NodeRestriction",
        "user@example.com",
    ],
)
def test_texts_without_a_secret(text: str) -> None:
    assert hide(text) == text


def test_values_by_their_keys() -> None:
    data = {
        "password": "a",
        "nested": [{"client-key-data": "b", "token": 5}],
        "env": [{"name": "API_TOKEN", "value": "c"}, {"name": "TZ", "value": "UTC"}],
        "tolerations": [{"key": "gpu", "value": "d"}],
        "tls": {"ca": {"key": "f", "cert": "g"}},
        "volumes": [{"secret": {"secretName": "e"}}],
        "automountServiceAccountToken": True,
    }
    assert hide(data) == data | {
        "password": Secret("a"),
        "nested": [{"client-key-data": Secret("b"), "token": Secret("5")}],
        "env": [{"name": "API_TOKEN", "value": Secret("c")}, {"name": "TZ", "value": "UTC"}],
        "tls": {"ca": {"key": Secret("f"), "cert": "g"}},
    }


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("A_TOKEN=x", True),
        ("PROXY=http://u:p@h", True),
        ("AUTH=Basic abcdefgh", True),
        ("MYSQL_PWD=x", True),
        ("GITHUB_PAT=x", True),
        ("SMTP_PW=x", True),
        ("REDIS_AUTH=x", True),
        ("PATH=/usr/bin", False),
        ("AUTHOR=ann", False),
        ("TZ=UTC", False),
        ("KEY", False),
    ],
)
def test_variables(text: str, secret: bool) -> None:
    assert isinstance(hide_variable(text), Secret) == secret


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://example.com/a.yaml", "https://example.com/a.yaml"),
        ("https://u:p@example.com/a.yaml", "https://********@example.com/a.yaml"),
        ("https://u@c:p@p@example.com/a.yaml", "https://********@example.com/a.yaml"),
        ("https://example.com/a?x=1&y=2", "https://example.com/a?********"),
        ("./a?b.yaml", "./a?b.yaml"),
    ],
)
def test_urls(url: str, shown: str) -> None:
    assert hide_in_url(url) == shown
