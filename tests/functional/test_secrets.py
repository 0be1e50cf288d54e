"""Markers in the secrets of a spec, looked for in all that its commands print, write and start."""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.functional.conftest import Prep

MARK = "mk7q-"
TEMPLATE = {
    "heat_template_version": "2018-08-31",
    "parameters": {"word": {"type": "string", "hidden": True}},
    "resources": {"value": {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "word"}}}},
    "outputs": {"word": {"value": {"get_attr": ["value", "value"]}}},
}
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB lab\n"
COMMANDS = (
    ("plan", 0),
    ("plan --debug --format json", 0),
    ("plan -o saved.plan --format yaml", 0),
    ("apply --yes --debug", 0),
    ("plan --debug", 0),
    ("show --debug --format json", 0),
    ("show --ids", 0),
    ("audit --debug --format yaml", 0),
    ("credential rotate --yes --debug", 0),
    ("exposures show --debug", None),
)


@pytest.fixture
def spec(prep: Prep) -> dict[str, Any]:
    """A spec with a marker in each secret, and its files."""
    name = f"secret{secrets.token_hex(3)}"
    prep.environment["PREP_PASSWORD"] = f"{MARK}environment"
    files = {
        "template.yaml": yaml.safe_dump(TEMPLATE),
        "key": f"{MARK}temp-url-key-2\n",
        "pull-secret.json": json.dumps({"auths": {"quay.io": {"auth": f"{MARK}pull-secret"}}}),
        "id_ed25519.pub": KEY,
    }
    for file, text in files.items():
        (prep.folder / file).write_text(text)
        (prep.folder / file).chmod(0o600)
    user = f"{name}-user"
    return {
        "name": name,
        "project": {"name": name},
        "users": [{"name": user, "password": {"env": "PREP_PASSWORD"}}, {"name": f"{name}-b", "password": f"{MARK}b"}],
        "role_assignments": [{"user": user, "role": "member"}, {"user": user, "role": "swiftoperator"}],
        "flavors": [{"name": name, "ram": "16GiB", "vcpus": 4, "disk": "100GiB"}],
        "stacks": [{"name": "s", "template": "template.yaml", "secret_parameters": {"word": f"{MARK}stack"}}],
        "object_store": {"temp_url_key": f"{MARK}temp-url-key", "temp_url_key_2": {"file": "key"}},
        "clouds_yaml": [{"path": "clouds.yaml", "cloud": name, "user": user}],
        "application_credentials": [{"name": "app", "clouds_yaml": "clouds.yaml", "cloud": f"{name}-app"}],
        "env_file": {"path": "lab.env", "cloud": name},
        "install_config": {
            "path": "ocp/install-config.yaml",
            "release": "4.20",
            "cluster_name": "lab",
            "base_domain": "example.com",
            "cloud": name,
            "pull_secret_file": "pull-secret.json",
            "ssh_key_file": "id_ed25519.pub",
            "external_network": "external",
            "machines": {"flavor": name},
        },
    }


def commands_of(root: int) -> Iterator[str]:
    """Yield the command lines of a process and of its children."""
    try:
        yield Path(f"/proc/{root}/cmdline").read_bytes().decode(errors="replace")
        for task in Path(f"/proc/{root}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from commands_of(int(child))
    except (FileNotFoundError, ProcessLookupError):
        return


def watched(prep: Prep, line: str, code: int | None) -> str:
    """Run a command, and return what it printed and the command lines that were to be seen meanwhile."""
    process, seen = prep.start(*line.split()), set[str]()
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.02):
            seen.update(commands_of(process.pid))

    watcher = threading.Thread(target=look)
    watcher.start()
    out, err = process.communicate(timeout=300)
    ended.set()
    watcher.join()
    assert code in (None, process.returncode), (line, process.returncode, out, err)
    assert seen
    return out + err + "".join(seen)


def test_no_secret_is_printed_or_written_openly(prep: Prep, spec: dict[str, Any]) -> None:
    prep.write(spec)
    prep.spec.chmod(0o600)
    said = "".join(watched(prep, f"{line} {prep.spec.name}", code) for line, code in COMMANDS)
    written = yaml.safe_load((prep.folder / "clouds.yaml").read_text())["clouds"]
    credential = written[f"{spec['name']}-app"]["auth"]["application_credential_secret"]
    admin = dict(prep.environment)
    prep.environment["OS_CLIENT_CONFIG_FILE"] = str(prep.folder / "clouds.yaml")
    said += watched(prep, f"check --debug --release 4.20 --os-cloud {spec['name']} ocp/install-config.yaml", None)
    said += watched(prep, f"verify --debug --infra-id lab-x7k2p --os-cloud {spec['name']}-app", None)
    said += watched(prep, f"export --debug --os-cloud {spec['name']}", 0)
    prep.environment |= admin
    open_files = [
        path.name
        for path in prep.folder.rglob("*")
        if path.is_file() and path.stat().st_mode & 0o077 and MARK in path.read_text(errors="replace")
    ]
    said += watched(prep, f"destroy --yes --debug {prep.spec.name}", 0)
    prep.spec.unlink()
    assert "POST" in said  # the log is there
    assert not re.findall(f"{MARK}[a-z0-9-]*", said)
    assert credential not in said
    assert open_files == []
