"""Ways outside for virtual machines of KubeVirt and OpenShift Virtualization: pure functions."""

from openstack_prep.exposures.virtualization.manifests import files
from openstack_prep.exposures.virtualization.model import (
    Machine,
    MacPool,
    NodeBridge,
    OutsideNetwork,
    Virtualization,
    WholeMachine,
)
from openstack_prep.exposures.virtualization.openstack import VisibleNodes, diagnose
from openstack_prep.exposures.virtualization.rules import mistakes, warnings

__all__ = [
    "MacPool",
    "Machine",
    "NodeBridge",
    "OutsideNetwork",
    "Virtualization",
    "VisibleNodes",
    "WholeMachine",
    "diagnose",
    "files",
    "mistakes",
    "warnings",
]
