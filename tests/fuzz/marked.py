"""A spec and files of a cluster with a marker in every secret of every kind."""

from __future__ import annotations

import json
from typing import Any

from tests.fuzz import corpus
from tests.fuzz.mutating import as_yaml

MARK = "mk7q-"
PLACES: list[str] = []
"""The secrets that have a marker."""


def mark(place: str) -> str:
    """Return a marker for a secret, which is as long as Swift and RKE2 want."""
    PLACES.append(place)
    return f"{MARK}{place}"


GENERATED = {"REGISTRY_PASSWORD": mark("from-environment"), "OS_PASSWORD_UNUSED": mark("in-environment")}
FILES = {
    "user.password": mark("user-file") + "\n",
    "generated.password": mark("generated") + "\n",
    "pull-secret.json": json.dumps({"auths": {"quay.io": {"auth": mark("pull-secret"), "email": "a@example.com"}}}),
    "kubeconfig": as_yaml({"users": [{"name": "a", "user": {"token": mark("kubeconfig-token")}}]}),
    "tsig.key": mark("tsig") + "\n",
}
BGP = {"name": "tor", "peer_asn": 64513, "peer_address": "192.168.200.1"}
METALLB = {
    "pools": [{"pool": "mesh", "protocol": "bgp"}],
    "peers": [
        {"name": "t", "my_asn": 64512, "peer_asn": 1, "peer_address": "10.1.0.1", "password": mark("metallb-bgp")}
    ],
}
S3 = {
    "etcd-s3": True,
    "etcd-s3-bucket": "backups",
    "etcd-s3-access-key": mark("s3-access"),
    "etcd-s3-secret-key": mark("s3-secret"),
    "agent-token": mark("agent-token"),
}
RKE = {
    "services": {
        "etcd": {
            "backup_config": {
                "enabled": True,
                "s3backupconfig": {
                    "access_key": mark("rke-s3-access"),
                    "secret_key": mark("rke-s3-secret"),
                    "bucket_name": "backups",
                    "endpoint": "s3.example.com",
                },
            }
        }
    }
}
NODES_OF_RKE = {"image": "i", "flavor": "f", "key_name": "k", "network": "nodes"}
NODES_OF_RKE2 = {
    **dict.fromkeys(("server_image", "agent_image"), "i"),
    **dict.fromkeys(("server_flavor", "agent_flavor"), "f"),
    **{"key_name": "k", "network": "nodes", "subnet": "nodes"},
}
SPEC: dict[str, Any] = {
    "name": "lab",
    "clouds": {"admin": "lab"},
    "project": {"name": "lab"},
    "users": [
        {"name": "plain", "password": mark("user-plain")},
        {"name": "file", "password": {"file": "user.password"}},
        {"name": "made", "password": {"generate": "generated.password"}},
    ],
    "role_assignments": [{"user": "plain", "role": "member"}],
    "flavors": [{"name": "m", "vcpus": 1, "ram": "1GiB"}],
    "images": [{"name": "remote", "source": f"https://user:{mark('image-login')}@127.0.0.1:1/image.qcow2"}],
    "networks": [{"name": "nodes"}],
    "subnets": [
        {"name": "nodes", "network": "nodes", "cidr": "10.1.0.0/24", "allocation_pools": ["10.1.0.10-10.1.0.99"]}
    ],
    "stacks": [
        {
            "name": "own",
            "template": "template.yaml",
            "secret_parameters": {"word": mark("stack-plain"), "other": {"env": "REGISTRY_PASSWORD"}},
        },
        {"name": "k", "template": "shipped:rke2-cluster.yaml", "parameters": NODES_OF_RKE2},
        {"name": "r", "template": "shipped:rke-cluster.yaml", "parameters": NODES_OF_RKE},
    ],
    "address_pools": [{"name": "mesh", "subnet": "nodes", "addresses": ["10.1.0.208/29"], "reserve": "outside"}],
    "address_pairs": [{"name": "k", "stack": "k", "pools": ["mesh"]}],
    "object_store": {"temp_url_key": mark("temp-url-key"), "temp_url_key_2": mark("temp-url-key-2")},
    "rke_clusters": [
        {
            "name": "two",
            "distribution": "rke2",
            "stack": "k",
            "directory": "two",
            "config": S3,
            "metallb": METALLB,
            "private_registries": [{"url": "r.example.com", "user": "me", "password": mark("rke2-registry")}],
        },
        {
            "name": "one",
            "stack": "r",
            "directory": "one",
            "config": RKE,
            "private_registries": [
                {"url": "s.example.com", "user": "me", "password": {"env": "REGISTRY_PASSWORD"}},
                {"url": "t.example.com", "user": "me", "password": mark("rke-registry")},
            ],
        },
    ],
    "exposures": [
        {
            "name": "web",
            "cluster": "lab",
            "how": "external-ip",
            "target": {"service": "shop/web"},
            "ports": [{"port": 443}],
            "pool": "mesh",
            "address": "10.1.0.209",
        }
    ],
    "exposed_clusters": [
        {
            "name": "lab",
            "directory": "lab-access",
            "kubernetes_version": "v1.35.7",
            "external_ips": {
                "interface": "eth0",
                "nodes": [{"name": "n1", "addresses": ["10.1.0.16"]}],
                "bgp": {"my_asn": 64512, "peers": [{**BGP, "password": mark("external-ip-bgp")}]},
            },
        }
    ],
    "clouds_yaml": [
        {"path": "out.yaml", "cloud": "a", "user": "plain"},
        {"path": "out.yaml", "cloud": "b", "user": "other", "password": mark("entry-password")},
    ],
    "env_file": {"path": "lab.env", "cloud": "a"},
    "install_config": {
        "path": "ocp/install-config.yaml",
        "release": "4.20",
        "cluster_name": "lab",
        "base_domain": "example.com",
        "cloud": "a",
        "pull_secret_file": "pull-secret.json",
        "external_network": "external",
        "machines": {"flavor": "m"},
    },
}
TEMPLATE = {
    "heat_template_version": "2018-08-31",
    "parameters": {
        "word": {"type": "string", "hidden": True, "default": mark("template-default")},
        "other": {"type": "string", "hidden": True},
    },
    "resources": {"port": {"type": "OS::Neutron::Port", "properties": {"network": "nodes"}}},
}
CLOUDS: dict[str, Any] = {
    "clouds": {
        "lab": {
            "region_name": "one",
            "compute_api_version": "2",
            "identity_api_version": "3",
            "auth": {
                "auth_url": "http://keystone/v3",
                "username": "admin",
                "password": mark("cloud-password"),
                "project_name": "admin",
                "user_domain_name": "Default",
                "project_domain_name": "Default",
            },
        },
        "credential": {
            "auth_type": "v3applicationcredential",
            "region_name": "one",
            "auth": {
                "auth_url": "http://keystone/v3",
                "application_credential_id": "0123",
                "application_credential_secret": mark("cloud-credential"),
            },
        },
        "token": {
            "auth_type": "v3token",
            "region_name": "one",
            "auth": {"auth_url": "http://keystone/v3", "token": mark("cloud-token"), "project_id": "admin-project"},
        },
    }
}
OLD_ENTRIES = {
    "clouds": {"b": {"auth": {"password": mark("old-entry")}}, "c": {"auth": {"token": mark("other-entry")}}}
}


def files() -> dict[str, str]:
    """Return all files by name."""
    config = corpus.read(corpus.DATA / "install_config" / "4.20.yaml")
    config["pullSecret"] = FILES["pull-secret.json"]
    config["platform"]["openstack"]["cloud"] = "lab"
    config["sshKey"] = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA== me"
    cluster = (corpus.ROOT / "tests/unit/kubernetes/data/secrets.yml").read_text().replace("s3cret-", f"{MARK}rke1-")
    services = corpus.short_service_lists()[0]
    services["items"][0]["metadata"]["annotations"]["example.com/token"] = f"{MARK}annotation"
    return {
        **FILES,
        "spec.yaml": as_yaml(SPEC),
        "template.yaml": as_yaml(TEMPLATE),
        "clouds.yaml": as_yaml(CLOUDS),
        "out.yaml": as_yaml(OLD_ENTRIES),
        "install-config.yaml": as_yaml(config),
        "metadata.json": json.dumps(corpus.METADATA),
        "cluster.yml": cluster,
        "config.yaml": as_yaml({**corpus.CONFIG_YAML, "token": f"{MARK}rke2-token", **S3}),
        "services.json": json.dumps(services),
        "lab.env": f"export OS_PASSWORD={MARK}old-env-file\n",
    }
