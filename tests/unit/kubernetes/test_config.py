"""A spec's secrets within config: fetched from where they are, and never shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.base.secret import Secret
from openstack_prep.kubernetes.cluster_yml import document, mistakes
from openstack_prep.kubernetes.keys.schema import load_schema
from openstack_prep.kubernetes.model import KubernetesCluster


def read(spec: dict[str, Any], base: Path, warnings: list[str]) -> KubernetesCluster:
    context = {"base": base, "warn": warnings.append}
    found: KubernetesCluster = TypeAdapter(KubernetesCluster).validate_json(json.dumps(spec), context=context)
    return found


def s3(secret: Any) -> dict[str, Any]:
    target = {"endpoint": "s3.example.com", "bucket_name": "etcd", "secret_key": secret}
    return {"config": {"services": {"etcd": {"backup_config": {"s3backupconfig": target}}}}}


def test_from_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warnings: list[str] = []
    monkeypatch.setenv("S3_SECRET", "hush")
    (tmp_path / "token").write_text("quiet\n")
    (tmp_path / "token").chmod(0o600)
    cluster = read(s3({"env": "S3_SECRET"}), tmp_path, warnings)
    assert list(mistakes(cluster, None)) == []
    assert "hush" not in str(cluster) + str(document(cluster, (), "c"))
    assert "secret_key: hush" in dump(document(cluster, (), "c"))
    config = {"distribution": "rke2", "config": {"agent-token": {"file": "token"}, "profile": "cis"}}
    assert read(config, tmp_path, warnings).config == {"agent-token": Secret("quiet"), "profile": "cis"}
    assert warnings == []


def test_of_one_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "hush")
    group = {"nodes": "0-", "roles": ["etcd"], "config": {"etcd-s3-secret-key": {"env": "TOKEN"}}}
    (found,) = read({"roles": [group]}, tmp_path, []).roles
    assert found.config == {"etcd-s3-secret-key": Secret("hush")}


def test_plain_ones_are_warned_of_and_documents_are_not(tmp_path: Path) -> None:
    warnings: list[str] = []
    cluster = read(s3("hush"), tmp_path, warnings)
    assert "hush" not in str(cluster)
    assert len(warnings) == 1
    key = {"services": {"etcd": {"backup_config": {"s3backupconfig": {"access_key": "hush"}}}}}
    assert "hush" not in str(read({"config": key}, tmp_path, []))
    assert "hush" not in str(read({"distribution": "rke2", "config": {"etcd-s3-access-key": "hush"}}, tmp_path, []))
    manifests = "apiVersion: v1\nkind: Namespace\n"
    assert read({"config": {"addons": manifests}}, tmp_path, warnings).config == {"addons": manifests}
    assert len(warnings) == 1


def test_sources_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ValidationError) as caught:
        read(s3({"env": "NOBODY_HAS_SET_THIS"}), tmp_path, [])
    (error,) = caught.value.errors()
    assert (error["type"], error["loc"]) == ("secret", ("config",))
    steps = "services.etcd.backup_config.s3backupconfig.secret_key"
    what = f"{steps}: environment variable NOBODY_HAS_SET_THIS is not set"
    assert error["ctx"] == {"what": what, "fix": "export it", "code": "secret.missing"}


def test_keys_of_rke_and_of_rke2_do_not_meet() -> None:
    cluster, node, server = (load_schema(name)["properties"].keys() for name in ("cluster.yml", "node", "server"))
    assert not cluster & server
    assert not node & server
