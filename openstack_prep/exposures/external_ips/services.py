"""Services with externalIPs: whole ones if their pods are known, otherwise commands that patch existing ones.

Source: Kubernetes API, Service v1; a merge patch replaces the list of externalIPs as a whole.
"""

from __future__ import annotations

import ipaddress
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence

from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.base.raw import Values
from openstack_prep.exposures.external_ips.carrying import addresses, chosen
from openstack_prep.exposures.model import ExposedPort, Placed

SERVICES, PATCHES = "external-ip-services.yaml", "patch-external-ips.sh"
HEAD = """\
#!/bin/sh
# Adds external addresses to existing Services: sh {name}
# A Service that has other external addresses is refused, because a patch replaces all of them.
set -eu

check() {{
    found=$(kubectl -n "$1" get service "$2" -o 'jsonpath={{.spec.externalIPs[*]}}')
    for address in $found; do
        case " $3 " in
        *" $address "*) ;;
        *)
            echo "Service $1/$2 also has the external address $address; declare an exposure for it, or remove it" >&2
            exit 1
            ;;
        esac
    done
}}

"""


def files(placed: Sequence[Placed]) -> dict[str, str]:
    """Return the manifests and the script, each only if it is needed."""
    rendered: list[list[Placed]] = []
    patched: list[list[Placed]] = []
    for found in of_service(placed).values():
        (rendered if any(each.exposure.target.selector for each in found) else patched).append(found)
    texts = {}
    if rendered:
        texts[SERVICES] = dump(*map(_manifest, rendered))
    if patched:
        lines = [_check(each) for each in patched] + [patch(each) for each in patched]
        texts[PATCHES] = HEAD.format(name=PATCHES) + "\n".join(lines) + "\n"
    return texts


def of_service(placed: Iterable[Placed]) -> Mapping[str, list[Placed]]:
    """Return the exposures of each Service, by namespace/name."""
    found: dict[str, list[Placed]] = {}
    for each in chosen(placed):
        found.setdefault(each.exposure.target.service or "", []).append(each)
    return found


def _manifest(placed: Sequence[Placed]) -> Values:
    target = placed[0].exposure.target
    ports = placed[0].exposure.ports
    selector = next((each.exposure.target.selector for each in placed if each.exposure.target.selector), None)
    held = addresses(placed)
    spec: Values = {
        "type": "NodePort" if any(each.node_port for each in ports) else "ClusterIP",
        "selector": dict(selector or {}),
        "ports": [_port(each) for each in ports],
        **_families(held),
        "externalIPs": held,
    }
    metadata = {"name": target.object_name, "namespace": target.namespace}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def _port(port: ExposedPort) -> Values:
    found: Values = {"name": f"{port.protocol}-{port.port}", "protocol": port.protocol.upper(), "port": port.port}
    found |= {"targetPort": port.inner}
    return found | ({"nodePort": port.node_port} if port.node_port else {})


def _families(held: Sequence[str]) -> Values:
    """Return the IP versions of the Service: kube-proxy only serves external addresses of these."""
    versions = sorted({ipaddress.ip_address(each).version for each in held})
    if len(versions) == 2:
        return {"ipFamilyPolicy": "RequireDualStack"}
    return {"ipFamilies": ["IPv6"]} if versions == [6] else {}


def _words(placed: Sequence[Placed]) -> list[str]:
    target = placed[0].exposure.target
    return [shlex.quote(each) for each in (target.namespace, target.object_name)]


def _check(placed: Sequence[Placed]) -> str:
    return " ".join(["check", *_words(placed), shlex.quote(" ".join(addresses(placed)))])


def patch(placed: Sequence[Placed], kubectl: str = "kubectl") -> str:
    """Return the command that gives an existing Service the addresses of its exposures, instead of all others."""
    namespace, name = _words(placed)
    change = json.dumps({"spec": {"externalIPs": addresses(placed)}})
    return f"{kubectl} -n {namespace} patch service {name} --type merge -p {shlex.quote(change)}"
