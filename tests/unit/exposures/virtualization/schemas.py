"""Strict schemas of what is rendered: only the fields that the renderers may use.

Written from the CRDs and types of kubernetes-nmstate 0.86 (nodenetworkconfigurationpolicies), nmstate 1.4 and 2.2
(operational-state.yaml; rust/src/lib/ifaces, ovn.rs), network-attachment-definition-client 1.7.7 (networks-crd.yaml),
CNI plugins 1.9 (bridge.go), ovn-kubernetes 1.3 (clusteruserdefinednetworks, cni.go), KubeVirt 1.9 (schema.go), and
cloud-init's network data v2. Services are checked by Kubernetes' own schema.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from typing import Any

import jsonschema

from tests.unit import kubernetes_schemas

LABEL = "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
MAC = "^([0-9a-f]{2}:){5}[0-9a-f]{2}$"
INTERFACE = "^[^\\s/:]{1,15}$"
TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
VLAN = {"type": "integer", "minimum": 1, "maximum": 4094}
MTU = {"type": "integer", "minimum": 576, "maximum": 65536}


def of(required: Mapping[str, Any], **optional: Any) -> dict[str, Any]:
    """Return the schema of an object with exactly these fields."""
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
        "additionalProperties": False,
    }


def many(items: Any, least: int = 1) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": least}


def text(pattern: str) -> dict[str, str]:
    return {"type": "string", "pattern": pattern}


def one(*values: Any) -> dict[str, Any]:
    return {"enum": list(values)}


def kind(versions: tuple[str, ...], name: str, metadata: dict[str, Any], spec: Any) -> dict[str, Any]:
    return of({"apiVersion": one(*versions), "kind": one(name), "metadata": metadata, "spec": spec})


# --- nmstate ------------------------------------------------------------------------------

ADDRESS = of({"ip": {"format": "ipv4"}, "prefix-length": {"type": "integer", "minimum": 1, "maximum": 32}})
IPV4 = {
    "oneOf": [
        of({"enabled": one(False)}),
        of({"enabled": one(True), "dhcp": one(True)}),
        of({"enabled": one(True), "dhcp": one(False), "address": many(ADDRESS)}),
    ]
}
PORTS = many(of({"name": text(INTERFACE)}))
LINUX_BRIDGE = of(
    {
        "name": text(INTERFACE),
        "type": one("linux-bridge"),
        "state": one("up"),
        "ipv4": IPV4,
        "ipv6": of({"enabled": one(False)}),
        "bridge": of({"options": of({"stp": of({"enabled": {"type": "boolean"}})}), "port": PORTS}),
    },
    **{"copy-mac-from": text(INTERFACE)},
)
OVS_BRIDGE = of(
    {
        "name": text(INTERFACE),
        "type": one("ovs-bridge"),
        "state": one("up"),
        "bridge": of(
            {"allow-extra-patch-ports": one(True), "options": of({"stp": {"type": "boolean"}}), "port": PORTS}
        ),
    }
)
VLAN_INTERFACE = of(
    {
        "name": text(INTERFACE),
        "type": one("vlan"),
        "state": one("up"),
        "vlan": of({"base-iface": text(INTERFACE), "id": VLAN}),
    }
)
MAPPING = of({"localnet": text("^[^,:]{1,253}$"), "bridge": text(INTERFACE), "state": one("present")})
STATE = {
    **of(
        {},
        interfaces=many({"oneOf": [LINUX_BRIDGE, OVS_BRIDGE, VLAN_INTERFACE]}),
        ovn=of({"bridge-mappings": many(MAPPING)}),
    ),
    "minProperties": 1,
}
POLICY = kind(
    ("nmstate.io/v1", "nmstate.io/v1beta1", "nmstate.io/v1alpha1"),
    "NodeNetworkConfigurationPolicy",
    of({"name": text(SUBDOMAIN)}),
    of({"nodeSelector": TEXTS, "desiredState": STATE}),
)

# --- networks -----------------------------------------------------------------------------

DEFINITION = kind(
    ("k8s.cni.cncf.io/v1",),
    "NetworkAttachmentDefinition",
    of({"name": text(SUBDOMAIN), "namespace": text(LABEL)}, annotations=TEXTS),
    of({"config": {"type": "string"}}),
)
CNI = {"cniVersion": one("0.3.1"), "name": text(LABEL)}


def plugins(bridge: str, tuning: str) -> dict[str, Any]:
    given = {"type": one(bridge), "bridge": text(INTERFACE), "ipam": of({}), "macspoofchk": {"type": "boolean"}}
    both = {"type": "array", "prefixItems": [of(given, vlan=VLAN, mtu=MTU), of({"type": one(tuning)})], "minItems": 2}
    return of({**CNI, "plugins": {**both, "maxItems": 2}})


OVERLAY = of(
    {
        **CNI,
        "type": one("ovn-k8s-cni-overlay"),
        "topology": one("localnet"),
        "netAttachDefName": text("^[^/]+/[^/]+$"),
    },
    physicalNetworkName=text("^[^,:]{1,253}$"),
    vlanID=VLAN,
    mtu=MTU,
)
CONFIG = {"oneOf": [plugins("bridge", "tuning"), plugins("cnv-bridge", "cnv-tuning"), OVERLAY]}
EXPRESSION = of({"key": one("kubernetes.io/metadata.name"), "operator": one("In"), "values": many(text(LABEL))})
LOCALNET = of(
    {
        "role": one("Secondary"),
        "physicalNetworkName": text("^[^,:]{1,253}$"),
        "ipam": of({"mode": one("Disabled")}),  # then subnets must not be set
    },
    vlan=of({"mode": one("Access"), "access": of({"id": VLAN})}),
    mtu=MTU,
)
CLUSTER_NETWORK = kind(
    ("k8s.ovn.org/v1",),
    "ClusterUserDefinedNetwork",
    of({"name": text(SUBDOMAIN)}),
    of(
        {
            "namespaceSelector": of({"matchExpressions": many(EXPRESSION)}),
            "network": of({"topology": one("Localnet"), "localnet": LOCALNET}),
        }
    ),
)

# --- machines -----------------------------------------------------------------------------

NAME = text("^[A-Za-z0-9-_]+$")
INTERFACES = many(
    {
        "oneOf": [
            of({"name": NAME, "masquerade": of({})}),
            of({"name": NAME, "bridge": of({}), "macAddress": text(MAC)}),
        ]
    }
)
NETWORKS = many(
    {
        "oneOf": [
            of({"name": NAME, "pod": of({})}),
            of({"name": NAME, "multus": of({"networkName": text("^[^/]+/[^/]+$")})}),
        ]
    }
)
VOLUMES = many(
    {
        "oneOf": [
            of({"name": one("disk"), "containerDisk": of({"image": {"type": "string"}})}),
            of({"name": one("disk"), "persistentVolumeClaim": of({"claimName": text(SUBDOMAIN)})}),
            of(
                {
                    "name": one("cloud-init"),
                    "cloudInitNoCloud": of(
                        {"networkData": {"type": "string", "maxLength": 2048}},
                        secretRef=of({"name": text(SUBDOMAIN)}),
                    ),
                }
            ),
        ]
    },
    least=2,
)
DISK = of({"name": NAME, "disk": of({"bus": one("virtio")})})
DOMAIN = of(
    {
        "cpu": of({"cores": {"type": "integer", "minimum": 1}}),
        "memory": of({"guest": text("^[0-9]+Mi$")}),
        "devices": of({"disks": many(DISK), "interfaces": INTERFACES}),
    }
)
MACHINE = kind(
    ("kubevirt.io/v1",),
    "VirtualMachine",
    of({"name": text(SUBDOMAIN), "namespace": text(LABEL)}),
    of(
        {
            "runStrategy": one("Always", "RerunOnFailure", "Manual", "Halted", "Once"),
            "template": of(
                {"spec": of({"domain": DOMAIN, "networks": NETWORKS, "volumes": VOLUMES})},
                metadata=of({"labels": TEXTS}),
            ),
        }
    ),
)
LISTS = of({"domain": of({"devices": of({"interfaces": INTERFACES})}), "networks": NETWORKS})
MERGE_PATCH = of({"spec": of({"template": of({"spec": LISTS})})})
ROUTE = of({"to": {"type": "string"}, "via": {"type": "string"}}, metric={"type": "integer"})
OUTSIDE = of(
    {
        "match": of({"macaddress": text(MAC)}),
        "set-name": text(INTERFACE),
        "dhcp4": one(False),
        "dhcp6": one(False),
        "addresses": many({"type": "string"}),
    },
    mtu=MTU,
    routes=many(ROUTE),
    nameservers=of({"addresses": many({"type": "string"})}),
)
POD = of(
    {"dhcp4": one(True)},
    **{"dhcp4-overrides": of({"route-metric": {"type": "integer"}}), "routes": many(ROUTE)},
)
NETWORK_DATA = of(
    {"version": one(2), "ethernets": {"type": "object", "additionalProperties": {"oneOf": [OUTSIDE, POD]}}}
)

SCHEMAS = {
    "NodeNetworkConfigurationPolicy": POLICY,
    "NetworkAttachmentDefinition": DEFINITION,
    "ClusterUserDefinedNetwork": CLUSTER_NETWORK,
    "VirtualMachine": MACHINE,
}


def validate(document: Any) -> None:
    """Validate a document of a rendered file, and what it contains."""
    if isinstance(document, list):
        _json_patch(document)
    elif "kind" not in document:
        jsonschema.validate(document, MERGE_PATCH if "spec" in document else NETWORK_DATA)
    elif document["kind"] == "Service":
        kubernetes_schemas.validate(document, "1.33")
    else:
        checker = jsonschema.FormatChecker()
        jsonschema.Draft202012Validator(SCHEMAS[document["kind"]], format_checker=checker).validate(document)
    if isinstance(document, dict) and document.get("kind") == "NetworkAttachmentDefinition":
        jsonschema.validate(json.loads(document["spec"]["config"]), CONFIG)


def _json_patch(patch: list[Any]) -> None:
    for step, (path, values) in zip(
        patch, [("domain/devices/interfaces", INTERFACES), ("networks", NETWORKS)] * (len(patch) // 2), strict=True
    ):
        assert step.keys() == {"op", "path", "value"}
        assert (step["op"], step["path"]) == ("add", f"/spec/template/spec/{path}/-")
        jsonschema.validate([step["value"]], values)


def addresses(data: Any) -> set[str]:
    """Return the addresses in network data, which must be within their networks."""
    found = {each for one in data["ethernets"].values() for each in one.get("addresses", ())}
    return {str(ipaddress.ip_interface(each).ip) for each in found}
