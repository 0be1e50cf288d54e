"""Files for KubeInit's playbook: extra variables, the inventory's hosts and the command.

Sources: KubeInit 1.0.2 (hosts/okd/inventory; roles/kubeinit_libvirt: defaults/main.yml, templates/ifcfg-eth1.j2, which
wants a dotted netmask, tasks/60_okd_deploy_nodes.yml, which needs ``mac``) and 0.5.4. 2.0.0 removed these variables and
ignores them in silence.
"""

from __future__ import annotations

import ipaddress
import shlex
import uuid
from collections.abc import Iterable, Iterator

from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.exposures.service_host.model import ROLES, KubeInit, Machine, ServiceHost

VARIABLES = "kubeinit.yaml"
INVENTORY = "inventory"
COMMAND = "ansible-playbook.sh"


def variables(settings: ServiceHost, address: str, mac: str | None) -> str:
    """Return the extra variables that give the services machine its external interface."""
    external = settings.external
    network = ipaddress.ip_network(f"{address}/{external.prefix_length}", strict=False)
    interface = {
        "attached": external.bridge,
        "dev": external.device,
        "ip": address,
        "gateway": external.gateway,
        "netmask": str(network.netmask),
    }
    return dump(
        {
            "kubeinit_libvirt_external_service_interface_enabled": True,
            "kubeinit_libvirt_external_service_interface": interface | ({"mac": mac} if mac else {}),
        }
    )


def inventory(settings: ServiceHost, found: Iterable[Machine]) -> str:
    """Return the groups of KubeInit's inventory with their hosts, to replace those of its own file."""
    return "\n".join(_groups(settings, list(found)))


def _groups(settings: ServiceHost, found: list[Machine]) -> Iterator[str]:
    yield f"# Groups for hosts/{settings.distribution}/inventory; they replace those with the same names."
    for role in ROLES:
        yield f"[{settings.distribution}_{role}_nodes]"
        yield from (_host(settings, each) for each in found if each.role == role)
        yield ""


def _host(settings: ServiceHost, machine: Machine) -> str:
    """Return the line of a host; KubeInit before 1.0 ignores what follows the MAC address."""
    words = [machine.name, f"ansible_host={machine.address}", *([f"mac={machine.mac}"] if machine.mac else [])]
    if settings.kubeinit:
        port = uuid.uuid5(uuid.NAMESPACE_DNS, f"{machine.name}.{settings.domain}")  # of OVN: stable, and unique
        words += [f"interfaceid={port}", f"target={settings.kubeinit.hypervisor}", "type=virtual"]
    return " ".join(words)


def command(settings: ServiceHost, kubeinit: KubeInit, variables_file: str) -> list[str]:
    """Return the words of the command, to be run in KubeInit's directory ``kubeinit``."""
    distribution = settings.distribution
    inventory_file, playbook = f"./hosts/{distribution}/inventory", f"./playbooks/{distribution}.yml"
    login = ["--user", kubeinit.user, "-i", inventory_file, "--become", "--become-user", "root"]
    return ["ansible-playbook", "-v", *login, "-e", f"@{variables_file}", playbook]


def script(settings: ServiceHost, kubeinit: KubeInit) -> str:
    """Return a script that runs the command with the variables beside the script."""
    *words, extra, playbook = map(shlex.quote, command(settings, kubeinit, VARIABLES))
    assert extra == f"@{VARIABLES}"
    return "\n".join(
        [
            "#!/bin/bash",
            "# Run this in the directory kubeinit of a checkout of KubeInit 1.0.2 or earlier.",
            "set -euo pipefail",
            'here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)',
            f'exec {" ".join(words)} "@$here/{VARIABLES}" {playbook} "$@"',
            "",
        ]
    )
