"""Every key of the tables is taken, every misspelled one refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from openstack_prep.base.raw import Raw, Steps, dotted
from openstack_prep.base.secret import Secret
from openstack_prep.kubernetes.keys.schema import find_faults, hide_secrets, load_schema, merge, sort_keys
from tests.unit.texts import Wording

FORMS = ("server", "agent", "cluster.yml")
CLUSTER = load_schema("cluster.yml")
STRING = ["string", "number", "boolean"]
EXAMPLES: list[tuple[Raw, Any, Any]] = [
    ({"type": STRING}, "text", ["text"]),
    ({"type": [*STRING, "array"]}, ["text"], {"a": "text"}),
    ({"type": "integer"}, 3, "3"),
    ({"type": "number"}, 0.5, "half"),
    ({"type": "boolean"}, True, "maybe"),
    ({"type": STRING, "writeOnly": True}, "hush", ["hush"]),
    ({"type": [*STRING, "array"], "writeOnly": True}, ["A=hush"], {"a": "hush"}),
    ({"type": "object", "writeOnly": True}, {"key": ["hush"]}, "hush"),
]
"""A type, a valid value and an invalid value."""


def examples(schema: Raw) -> tuple[Any, Any]:
    """Return a valid and an invalid value of a schema."""
    found = {name: schema[name] for name in ("type", "writeOnly") if name in schema}
    return next(((valid, invalid) for each, valid, invalid in EXAMPLES if each == found), ({"apiVersion": "v1"}, None))


def made(steps: Steps, value: Any) -> Any:
    """Return data with a value at a path."""
    for step in reversed(steps):
        value = [value] if isinstance(step, int) else {step: value}
    return value


def misspelled(name: str) -> str:
    """Return a name that nobody means to be another: two letters change places, or one is doubled."""
    return name[0] + name if len(name) < 4 else name[:-2] + name[-1] + name[-2] + "x"


def leaves(schema: Raw, steps: Steps = ()) -> Iterator[tuple[Steps, Raw]]:
    """Yield every path with the schema at its end; of lists the first item, of free mappings the key "any"."""
    if "properties" in schema:
        for name, inner in schema["properties"].items():
            yield from leaves(inner, (*steps, name))
    elif "additionalProperties" in schema:
        yield from leaves(schema["additionalProperties"], (*steps, "any"))
    elif schema.get("type") == "array":
        yield from leaves(schema["items"], (*steps, 0))
    else:
        yield steps, schema


ENDS = [(schema, steps, leaf) for schema in map(load_schema, FORMS) for steps, leaf in leaves(schema)]


def test_the_schemas_are_complete() -> None:
    """As many keys as RKE 1.7 and RKE2 1.36 have."""
    properties = CLUSTER["properties"]
    aci = properties["network"]["properties"]["aci_network_provider"]
    found = [CLUSTER, load_schema("node"), aci, properties["system_images"], load_schema("server")]
    assert [len(each["properties"]) for each in found] == [30, 15, 124, 41, 135]
    assert len(list(leaves(CLUSTER))) == len({steps for steps, _ in leaves(CLUSTER)}) == 515
    assert load_schema("agent")["properties"].keys() < load_schema("server")["properties"].keys()


@pytest.mark.parametrize("name", FORMS)
def test_they_are_json_schemas(name: Any) -> None:
    jsonschema.Draft202012Validator.check_schema(load_schema(name))


def test_each_key() -> None:
    for schema, steps, leaf in ENDS:
        check_key(schema, steps, leaf)


def check_key(schema: Raw, steps: Steps, leaf: Raw) -> None:
    """Read a valid and an invalid value of a key, and its misspelling."""
    valid, invalid = examples(leaf)
    assert list(find_faults(made(steps, valid), schema)) == []
    assert list(find_faults(made(steps, None), schema)) == []
    assert (invalid is None) == (leaf == {})
    if invalid is not None:
        (fault,) = find_faults(made(steps, invalid), schema)
        assert fault.what.endswith(f" is not {leaf['title']}")
        assert "hush" not in str(fault)
    known = [index for index, step in enumerate(steps) if isinstance(step, str) and step != "any"]
    for index in known:
        wrong = (*steps[:index], misspelled(str(steps[index])), *steps[index + 1 :])
        (fault,) = find_faults(made(wrong, valid), schema)
        assert (fault.steps, fault.what) == (wrong[: index + 1], "unknown key")


@pytest.mark.parametrize(
    ("steps", "fix"),
    [
        (("services", "kubeapi"), "did you mean kube-api?"),
        (("nodes", 0, "roles"), "did you mean role?"),
        (("nodes", 0, "hostnameOverride"), "did you mean hostname_override?"),
        (("nodes", 0, "node_name"), "did you mean nodeName?"),
        (("network", "tolerations", 0, "tolerationSeconds"), "did you mean tolerationseconds?"),
        (("services", "etcd", "backup_config", "s3_backup_config"), "did you mean s3backupconfig?"),
        (("rotate_certificates", "ca_certificates"), "did you mean cacertificates?"),
        (("kubelet",), "remove it"),  # a text is no settings of a kubelet
        (("services", "kubelet", "service_node_port_range"), "remove it"),
        (("cloud_provider", "cloud_config"), "remove it"),
        (("network", "cloud_config"), "remove it"),  # a key of that name far away says nothing
        (("extra_args",), "remove it"),
        (("quux",), "remove it"),
    ],
)
def test_what_to_write_instead(steps: Steps, fix: str) -> None:
    (fault,) = find_faults(made(steps, "x"), CLUSTER)
    assert fault.fix == fix


@pytest.mark.parametrize(
    ("data", "fix"),
    [
        ({"kubelet": {"image": "x"}}, "move it to services"),
        ({"kubelet": {"image": "x"}, "services": {"kubelet": {}}}, "remove it"),
        ({"kubelet": {"imaje": "x"}}, "remove it"),
        ({"services": {"etcd": {"cluster_cidr": "x"}, "kube-controller": {}}}, "move it to services.kube-controller"),
        ({"cloud_provider": {"cloud_config": {"username": "x"}}}, "remove it"),
    ],
)
def test_a_key_moves_to_a_near_mapping_that_takes_it(data: Raw, fix: str) -> None:
    (fault,) = find_faults(data, CLUSTER)
    assert fault.fix == fix


def test_all_at_once_by_their_places(wording: Wording) -> None:
    data = {"nodes": [{"role": "etcd"}, "n2"], "network": [], "services": {"etcd": {"uid": True, "gid": 1.5}}}
    wording([str(each.mistake(dotted(each.steps))) for each in find_faults(data, CLUSTER)])


def test_secrets_are_hidden_wherever_they_stand() -> None:
    key = {"secret": "hush", "keys": [{"secret": "hush"}]}
    data = {
        "nodes": [{"ssh_key": "hush"}],
        "private_registries": [{"password": Secret("hush"), "user": "me"}],
        "cloud_provider": {"vsphereCloudProvider": {"virtual_center": {"here": {"password": "hush", "port": "1"}}}},
        "services": {"kube-api": {"secrets_encryption_config": {"custom_config": {"resources": [key]}}}},
        "unknown": "seen",
    }
    shown = str(hide_secrets(data, CLUSTER))
    assert "hush" not in shown
    assert shown.count("********") == 5
    assert all(word in shown for word in ("'me'", "'1'", "'seen'"))
    assert "hush" in str(data)  # what was given is as it was


def test_order_and_merging() -> None:
    assert list(sort_keys({"new": 1, "services": {}, "nodes": [{"user": 1, "address": 2}]}, CLUSTER)) == [
        "nodes",
        "services",
        "new",
    ]
    assert list(sort_keys([{"user": 1, "address": 2}], CLUSTER["properties"]["nodes"])[0]) == ["address", "user"]
    assert list(sort_keys({"b": 1, "a": 2}, CLUSTER["properties"]["network"]["properties"]["options"])) == ["b", "a"]
    assert merge({"a": {"b": 1}, "c": 2}, {"a": {"b": 3, "d": 4}, "c": {}}) == {"a": {"b": 1, "d": 4}, "c": 2}
