"""The files of virtual machines' ways outside: pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.exposures.model import Placed
from openstack_prep.exposures.services import ANNOTATIONS
from openstack_prep.exposures.virtualization.attaching import Attachment, attachments, by_machine, served
from openstack_prep.exposures.virtualization.cloud_init import network_data
from openstack_prep.exposures.virtualization.machines import append_patch, replace_patch, whole_machine
from openstack_prep.exposures.virtualization.model import Machine, Virtualization
from openstack_prep.exposures.virtualization.networks import networks
from openstack_prep.exposures.virtualization.policies import policies
from openstack_prep.exposures.virtualization.services import service

POLICIES, NETWORKS, MACHINES = "network-policy.yaml", "networks.yaml", "virtual-machines.yaml"
SERVICES = "virtual-machine-services.yaml"


def files(
    settings: Virtualization, placed: Sequence[Placed], annotations: Mapping[str, str] = ANNOTATIONS
) -> dict[str, str]:
    """Return the texts of all files by name: manifests, a patch per existing machine, and network data per machine.

    ``annotations`` are those by which Services of each way request an address.
    """
    attached = attachments(settings, placed)
    machines = [*by_machine(settings, attached)]
    whole = [whole_machine(settings, each, each.whole, theirs) for each, theirs in machines if each.whole]
    services = [service(settings, each, annotations) for each in served(placed)]
    documents = {
        POLICIES: policies(settings),
        NETWORKS: networks(settings, attached),
        MACHINES: whole,
        SERVICES: services,
    }
    found = {name: dump(*each) for name, each in documents.items() if each}
    for machine, theirs in machines:
        if not machine.whole:
            found[f"virtual-machine-{flat(machine.name)}.patch.yaml"] = _patch(machine, theirs)
        found[f"cloud-init-{flat(machine.name)}.yaml"] = network_data(settings, machine, theirs)
    return found


def flat(name: str) -> str:
    """Return NAMESPACE_NAME for a file: neither of both contains an underscore."""
    return name.replace("/", "_")


def _patch(machine: Machine, attached: Sequence[Attachment]) -> str:
    return dump(append_patch(attached) if machine.interfaces == "append" else replace_patch(machine, attached))
