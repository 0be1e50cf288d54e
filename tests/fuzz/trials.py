"""The files that a person or another program writes, and the commands that read each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.fuzz import corpus
from tests.fuzz.mutating import as_json, as_yaml


@dataclass(frozen=True)
class Trial:
    """A kind of file, and the commands that read it."""

    name: str
    file: str
    documents: Callable[[], Sequence[Any]]
    commands: Sequence[str]
    form: Callable[[object], str] = as_yaml
    codes: Sequence[int] = (0, 2)
    """Exit codes besides 1 for a request that fails."""
    named: str = ""
    """What errors begin with instead of the file's name: an option, or a spec that lacks something."""

    def __str__(self) -> str:
        return self.name


SPEC_COMMANDS = (
    ["plan spec.yaml", "plan --destroy spec.yaml", "plan -o saved.plan spec.yaml", "show spec.yaml"],
    ["apply --yes spec.yaml", "destroy --yes spec.yaml", "audit spec.yaml", "credential rotate --yes spec.yaml"],
    ["kubernetes checklist spec.yaml", "rke mesh spec.yaml", "rke render spec.yaml", "exposures show spec.yaml"],
    ["pre-ipi --yes spec.yaml", "address-pairs sync spec.yaml", "unlock --yes spec.yaml"],
)
LACKING = r"spec\.yaml|the spec (has|declares) no|declares no|cloud '"
CLUSTER = "--metadata metadata.json"
OF_ID = f"--infra-id {corpus.ID}"
CONVERT = "exposures convert services.json --to"
SYNC = "address-pairs sync --tag t --within 10.0.0.0/8 --services services.json --dry-run"
NAMES = ["names", "names --as dnsmasq", "names --as bind --server ns.example.com", "names --internal"]
TRIALS = [
    *(Trial(f"spec-validate-{n}", "spec.yaml", corpus.specs, ["validate spec.yaml"]) for n in range(4)),
    *(
        Trial(f"spec-{n}", "spec.yaml", corpus.specs, commands, named=LACKING)
        for n, commands in enumerate(SPEC_COMMANDS)
    ),
    Trial(
        "metadata",
        "metadata.json",
        lambda: [corpus.METADATA],
        [
            *(f"verify {CLUSTER}", f"cleanup --plan {CLUSTER}", f"cleanup --yes {CLUSTER}", "verify"),
            *(f"post-ipi --yes --ingress-ip 192.0.2.1 {CLUSTER}", f"wait-for ingress-port --timeout 0 {CLUSTER}"),
        ],
        as_json,
    ),
    Trial(
        "install-config",
        "install-config.yaml",
        corpus.install_configs,
        [
            *("check --release 4.20 install-config.yaml", "check --release 4.14"),
            f"verify {OF_ID} --install-config install-config.yaml",
        ],
        codes=(0, 1, 2),
        named="^install-config",
    ),
    Trial("install-config-names", "install-config.yaml", corpus.install_configs, [*NAMES, "names --write hosts"]),
    Trial(
        "clouds.yaml",
        "clouds.yaml",
        lambda: [corpus.CLOUDS],
        [
            *("plan minimal.yaml", "plan --os-cloud credential minimal.yaml", "plan --os-cloud x minimal.yaml"),
            *("export", f"verify {OF_ID}"),
        ],
        named=r"clouds\.yaml|auth_url",
    ),
    Trial("services-sync", "services.json", corpus.short_service_lists, [SYNC], as_json, named="services"),
    Trial("services-json", "services.json", corpus.service_lists, [f"{CONVERT} metallb", f"{CONVERT} cilium"], as_json),
    Trial("services-yaml", "services.json", corpus.service_lists, [f"{CONVERT} kube-vip", f"{CONVERT} metallb"]),
    Trial(
        "old-pools",
        "services.json",
        corpus.pools,
        [f"{CONVERT} metallb", f"{CONVERT} cilium --announce bgp --my-asn 1 --peer 10.0.0.1=2"],
    ),
    Trial("cluster.yml", "cluster.yml", corpus.cluster_ymls, ["rke check cluster.yml"]),
    Trial("cluster.yml-convert", "cluster.yml", corpus.cluster_ymls, ["kubernetes convert cluster.yml"]),
    Trial(
        "config.yaml",
        "config.yaml",
        lambda: [corpus.CONFIG_YAML],
        ["rke check --rke2 server config.yaml", "rke check --rke2 agent config.yaml"],
    ),
    Trial("template", "template.yaml", lambda: [corpus.TEMPLATE], ["validate stack.yaml", "plan stack.yaml"]),
]
STACK = "{name: s, template: template.yaml, parameters: {network: n, names: [a], more: {b: 2}}}"
BESIDE = {
    "minimal.yaml": "name: lab\nproject: {name: lab}\n",
    "stack.yaml": f"name: lab\nstacks: [{STACK}]\n",
    "node.yaml": "heat_template_version: 2018-08-31\nparameters: {file: {type: string}}\n",
    "setup.sh": "#!/bin/sh\n",
}
"""Files that stand beside the damaged one."""
