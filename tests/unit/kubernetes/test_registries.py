"""registries.yaml as a file, and as a parameter of a stack."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.base.errors import SpecError
from openstack_prep.kubernetes import reading, stack_config
from openstack_prep.kubernetes.registries import registry_faults
from openstack_prep.spec import load_spec
from openstack_prep.spec.resolution import refuse_mistakes

REQUIRED = ("server_image", "agent_image", "server_flavor", "agent_flavor", "key_name", "network", "subnet")
VALID = {
    "mirrors": {
        "docker.io": {"endpoint": ["https://mirror.example.com:5000", "mirror.example.com/v2/proxy"]},
        "*": None,
        "registry.example.com:5000": {"endpoint": ["http://192.0.2.5"], "rewrite": {"^rancher/(.*)": "prod/$1"}},
    },
    "configs": {
        "mirror.example.com:5000": {
            "auth": {"username": "a", "password": "b"},
            "tls": {"cert_file": "/c", "key_file": "/k", "ca_file": "/a", "insecure_skip_verify": True},
        },
        "192.0.2.5": {"auth": {"identity_token": "t"}},
        "my_registry:5000": {"auth": {"username": "a", "password": "b"}},
        "[2001:db8::5]:5000": {"tls": {"insecure_skip_verify": False}},
    },
}
INVALID: list[tuple[dict[str, Any], str]] = [
    ({"mirror": {}}, "mirror"),
    ({"mirrors": {"docker.io": {"endpoints": []}}}, "mirrors.docker.io.endpoints"),
    ({"mirrors": {"docker.io": {"endpoint": "https://a"}}}, "mirrors.docker.io.endpoint"),
    ({"mirrors": {"docker.io": {"endpoint": ["https://"]}}}, "mirrors.docker.io.endpoint[0]"),
    ({"mirrors": {"docker.io": {"endpoint": ["ftp://a"]}}}, "mirrors.docker.io.endpoint[0]"),
    ({"mirrors": {"https://docker.io": {}}}, "mirrors.https://docker.io"),
    ({"configs": {"a.example.com/team": {}}}, "configs.a.example.com/team"),
    ({"configs": {"a.example.com": {"insecure_skip_verify": True}}}, "configs.a.example.com.insecure_skip_verify"),
    ({"auths": {"https://r.io": {"username": "a", "password": "hush"}}}, "auths"),
    ({"auths": {"r.io": {"auth": "aHVzaA=="}}}, "auths"),
    ({"configs": {"a.example.com": {"tls": {"cert_file": "/c"}}}}, "configs.a.example.com.tls.key_file"),
    ({"configs": {"a.example.com": {"auth": {"user": "a"}}}}, "configs.a.example.com.auth.user"),
    ({"configs": {"a.example.com": {"auth": {"password": "CHANGEME"}}}}, "configs.a.example.com.auth.password"),
    ({"configs": {"a.example.com": {"tls": {"insecure_skip_verify": "true"}}}}, "configs.a.example.com.tls.insecure"),
]


def mistakes_of_spec(text: str, source: str = "file") -> list[str]:
    """Return the mistakes of a spec with a stack whose nodes get such a registries.yaml."""
    Path("registries.json").write_text(text)
    Path("registries.json").chmod(0o600)
    secret = {"registries": {source: "registries.json"}}
    stack = {"name": "s", "template": stack_config.TEMPLATE, "parameters": dict.fromkeys(REQUIRED, "x")}
    Path("spec.yaml").write_text(yaml.safe_dump({"name": "lab", "stacks": [stack | {"secret_parameters": secret}]}))
    try:
        refuse_mistakes(load_spec("spec.yaml"))
    except SpecError as error:
        return [each.what for each in error.mistakes]
    return []


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_valid_file() -> None:
    Path("registries.yaml").write_text(yaml.safe_dump(VALID))
    assert reading.read(Path("registries.yaml"), "registries").mistakes == []


@pytest.mark.parametrize(("data", "place"), INVALID)
def test_what_rke2_ignores_or_does_not_read(data: dict[str, Any], place: str) -> None:
    Path("registries.yaml").write_text(yaml.safe_dump(data))
    (found,) = reading.read(Path("registries.yaml"), "registries").mistakes
    assert place in found.where


def test_the_parameter_of_a_stack() -> None:
    assert mistakes_of_spec(json.dumps(VALID)) == []
    (found,) = mistakes_of_spec(json.dumps(INVALID[0][0]))
    assert "registries.mirror: " in found
    assert len(mistakes_of_spec("mirrors: {}")) == 1  # YAML
    assert mistakes_of_spec("mirrors: {}", "content") == []  # another step of the apply may write the file


def test_no_secret_is_shown() -> None:
    data = {"configs": {"a": {"auth": ["hush"]}, "b": {"auth": {"password": ["hush"]}}, "c": {"auth": "hush"}}}
    found = list(registry_faults(data))
    assert len(found) == 3
    assert "hush" not in str(found)
