"""Ways outside for virtual machines of KubeVirt and OpenShift Virtualization: pure functions."""

from openstack_prep.exposures.virtualization.manifests import files
from openstack_prep.exposures.virtualization.openstack import VisibleNodes, diagnose
from openstack_prep.exposures.virtualization.rules import mistakes, warnings
from openstack_prep.exposures.virtualization.settings import (
    MacPool,
    NodeBridge,
    OutsideNetwork,
    RenderedMachine,
    Virtualization,
    WholeMachine,
)

__all__ = [
    "MacPool",
    "NodeBridge",
    "OutsideNetwork",
    "RenderedMachine",
    "Virtualization",
    "VisibleNodes",
    "WholeMachine",
    "diagnose",
    "files",
    "mistakes",
    "warnings",
]
