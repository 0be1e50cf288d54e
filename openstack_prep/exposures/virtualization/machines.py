"""The interfaces of virtual machines, as patches or as whole VirtualMachines: pure functions.

Sources: KubeVirt 1.9 (staging/src/kubevirt.io/api/core/v1/types.go and schema.go; pkg/network/admitter;
pkg/virt-api/webhooks/validating-webhook/admitters/vms-admitter.go, vmi-create-admitter.go).
"""

from __future__ import annotations

from collections.abc import Sequence

from openstack_prep.base.raw import Values
from openstack_prep.exposures.virtualization.attaching import Attachment
from openstack_prep.exposures.virtualization.cloud_init import network_data
from openstack_prep.exposures.virtualization.model import Machine, Virtualization, WholeMachine

POD = "default"
"""Name of the pod network and of its interface, as virtctl names them."""
TEMPLATE = "/spec/template/spec"


def append_patch(attached: Sequence[Attachment]) -> list[Values]:
    """Return a JSON patch that adds interfaces and networks to those that the machine has.

    KubeVirt refuses a second interface of the same name, so that the patch is never applied twice.
    """
    interfaces, networks = f"{TEMPLATE}/domain/devices/interfaces/-", f"{TEMPLATE}/networks/-"
    patch: list[Values] = []
    for each in attached:
        patch.append({"op": "add", "path": interfaces, "value": _interface(each)})
        patch.append({"op": "add", "path": networks, "value": _network(each)})
    return patch


def replace_patch(machine: Machine, attached: Sequence[Attachment]) -> Values:
    """Return a merge patch with all interfaces and networks of the machine."""
    interfaces, networks = _lists(machine, attached)
    spec = {"domain": {"devices": {"interfaces": interfaces}}, "networks": networks}
    return {"spec": {"template": {"spec": spec}}}


def whole_machine(
    settings: Virtualization, machine: Machine, whole: WholeMachine, attached: Sequence[Attachment]
) -> Values:
    """Return a VirtualMachine with its disk and cloud-init's network data."""
    namespace, _, name = machine.name.partition("/")
    interfaces, networks = _lists(machine, attached)
    disks = [{"name": each, "disk": {"bus": "virtio"}} for each in ("disk", "cloud-init")]
    domain = {
        "cpu": {"cores": whole.cores},
        "memory": {"guest": f"{whole.memory}Mi"},
        "devices": {"disks": disks, "interfaces": interfaces},
    }
    spec = {"domain": domain, "networks": networks, "volumes": _volumes(settings, machine, whole, attached)}
    metadata = {"metadata": {"labels": dict(machine.labels)}} if machine.labels else {}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"runStrategy": whole.run_strategy, "template": {**metadata, "spec": spec}},
    }


def _lists(machine: Machine, attached: Sequence[Attachment]) -> tuple[list[Values], list[Values]]:
    """Return the interfaces and the networks of a machine; the pod network is the first one."""
    interfaces: list[Values] = [{"name": POD, "masquerade": {}}] if machine.pod_network else []
    networks: list[Values] = [{"name": POD, "pod": {}}] if machine.pod_network else []
    return [*interfaces, *map(_interface, attached)], [*networks, *map(_network, attached)]


def _interface(attached: Attachment) -> Values:
    return {"name": attached.network.name, "bridge": {}, "macAddress": attached.placed.mac}


def _network(attached: Attachment) -> Values:
    name = attached.network.name
    return {"name": name, "multus": {"networkName": f"{attached.namespace}/{name}"}}


def _volumes(
    settings: Virtualization, machine: Machine, whole: WholeMachine, attached: Sequence[Attachment]
) -> list[Values]:
    claim = {"persistentVolumeClaim": {"claimName": whole.claim}}
    disk = claim if whole.claim else {"containerDisk": {"image": whole.container_disk}}
    cloud_init: Values = {"networkData": network_data(settings, machine, attached)}
    if whole.user_data_secret:
        cloud_init["secretRef"] = {"name": whole.user_data_secret}
    return [{"name": "disk", **disk}, {"name": "cloud-init", "cloudInitNoCloud": cloud_init}]
