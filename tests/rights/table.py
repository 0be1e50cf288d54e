"""What each command and each kind of resource needs: one table for docs/security.md and for these tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

BEGIN, END = "<!-- rights: begin -->", "<!-- rights: end -->"
NOBODY: tuple[str, ...] = ()
"""A user without a role in the project, who cannot log in to it."""
READER, MEMBER, MANAGER, ADMIN = ("reader",), ("member",), ("manager",), ("admin",)
OPERATOR = ("member", "swiftoperator")
LESSER = {READER: NOBODY, MEMBER: READER, MANAGER: MEMBER, ADMIN: MEMBER, OPERATOR: MEMBER}
"""The next lesser right of each."""

CLUSTER = "--infra-id dev-x7k2p"


@dataclass(frozen=True)
class Use:
    """A command as the tests run it: with these roles it ends with this code, with the lesser ones it is refused.

    ``before`` runs first, as a member. ``refused`` is the exit code of a refusal.
    """

    line: str
    roles: tuple[str, ...]
    code: int = 0
    before: tuple[str, ...] = ()
    refused: int = 1
    lacks: str = ""
    """What its messages may say although it does its work."""
    why: str = ""

    @property
    def command(self) -> str:
        """The command, and those of its options that make the difference."""
        words = self.line.split()
        name = words[:2] if words[0] in ("address-pairs", "credential", "exposures", "fleet", "rke") else words[:1]
        return " ".join([*name, *(each for each in words if each in ("--dry-run", "--plan"))])


USES = (
    Use("plan spec.yaml", READER, why="of a spec for an existing project; of any other, to see everything: `admin`"),
    Use("show spec.yaml", READER, why="as for `plan`"),
    Use("support-bundle spec.yaml", READER, refused=0, why="as for `plan`; without it the bundle has the error"),
    Use("audit spec.yaml", READER, 1, why="as for `plan`"),
    Use("graph --plan spec.yaml", READER, why="without `--plan`: none; as for `plan`"),
    Use("topology spec.yaml", READER, why="with `--offline`: none; `--project` of another project: `admin`"),
    Use("export", READER, why="`--project` of another project: `admin`"),
    Use("apply --yes more.yaml", MEMBER, why="for the resources of a project; see the next table for others"),
    Use("destroy --yes more.yaml", MEMBER, before=("apply --yes more.yaml",), why="as for `apply`"),
    Use("fleet plan fleet.yaml", READER, why="as for `plan`, for each target"),
    Use("fleet audit fleet.yaml", READER, 1, why="as for `audit`, for each target"),
    Use("fleet export --output exported fleet.yaml", READER, why="as for `export`, for each target"),
    Use("fleet apply --yes more-fleet.yaml", MEMBER, why="as for `apply`, for each target"),
    Use(
        "fleet destroy --yes more-fleet.yaml",
        MEMBER,
        before=("fleet apply --yes more-fleet.yaml",),
        why="as for `apply`, for each target",
    ),
    Use("unlock --yes held.yaml", MEMBER, why="`reader` shows who holds the lease"),
    Use(
        "credential rotate --yes credential.yaml",
        READER,
        lacks="403 rule:update_security_group",
        why="the user itself, not by an application credential; a reader cannot hold a lease",
    ),
    Use(
        "check --release 4.20 --hosts hosts ocp",
        READER,
        1,
        why="of the entry that the install-config names; with `--offline`: none",
    ),
    Use("pre-ipi --yes --hosts hosts ocp.yaml", MEMBER, 1, why="as for `apply`, and then as for `check`"),
    Use("ipi --no-check -- ./openshift-install create cluster --dir ipi", MEMBER, why="what the installer needs"),
    Use(f"post-ipi --yes {CLUSTER} --vip 10.0.0.9", MEMBER),
    Use(f"wait-for api-port {CLUSTER} --timeout 5", READER),
    Use(f"verify {CLUSTER} --base-domain example.com --hosts hosts", READER, 1),
    Use(f"cleanup --plan {CLUSTER}", READER, lacks="GET object-store: 403", why="containers: as below"),
    Use(
        f"cleanup --yes {CLUSTER}",
        MEMBER,
        lacks="GET object-store: 403",
        why="containers also need one of Swift's `operator_roles`; without it a warning names them",
    ),
    Use("address-pairs sync --dry-run --security-group nodes --address 10.1.0.200/30", READER),
    Use(
        "address-pairs sync --security-group nodes --address 10.1.0.200/30",
        MEMBER,
        why="in the project of the ports, which must own their network",
    ),
    Use("exposures show exposed.yaml", READER, 1),
    Use("rke render --stack cluster", READER),
    Use("rke mesh mesh.yaml", READER),
)
NO_CLOUD = {
    "validate": "",
    "fleet validate": "",
    "tools": "",
    "import": "the file is read; without --release, the installer is asked for its release",
    "names": "addresses come from the install-config, or from options",
    "kubernetes checklist": "",
    "kubernetes convert": "",
    "rke check": "",
    "exposures convert": "with `--kubeconfig` [this role](load-balancers.md#follow-a-running-cluster)",
    "explain": "",
    "schema": "",
    "example": "",
    "completion": "",
    "help": "",
    "version": "",
    "mcp": "each tool needs what its command needs",
}
"""Commands that send OpenStack nothing."""
AT_TERMINAL = {"approve": "as for `plan`, which it repeats (tested by `tests/functional/test_mcp.py`)"}
"""Commands for readers that ask a person, so that these tests do not run them."""


@dataclass(frozen=True)
class Kind:
    """What the creation, change and deletion of resources needs; ``section`` is a part of a spec that declares some."""

    name: str
    roles: tuple[str, ...]
    section: dict[str, Any] = field(default_factory=dict)
    why: str = ""
    refused: int = 1
    """The exit code of apply with the lesser right: 2 where a plan knows it."""
    local: bool = False


def _one(**fields: Any) -> list[dict[str, Any]]:
    return [fields]


NETWORK = {"networks": _one(name="n"), "subnets": _one(name="n", network="n", cidr="10.9.0.0/24")}
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB lab"
KINDS = (
    Kind(
        "project",
        ADMIN,
        {"project": {"name": "{}-p"}},
        "also to look up a project other than that of the connection",
    ),
    Kind("user", ADMIN, {"users": _one(name="{}-u", password="a-password-of-the-test")}),
    Kind("role_assignment", ADMIN, {"role_assignments": _one(user="{}", role="reader")}),
    Kind("quota", ADMIN, {"quota": {"cores": 7}}, refused=2),
    Kind("flavor", ADMIN, {"flavors": _one(name="{}", ram=512, vcpus=1, disk=1)}, refused=2),
    Kind(
        "image with `visibility: public`",
        ADMIN,
        {"images": _one(name="i", source="disk.qcow2", disk_format="qcow2", visibility="public")},
    ),
    Kind("network that is `shared` or `external`, or has a provider", ADMIN, {"networks": _one(name="n", shared=True)}),
    Kind(
        "router with `enable_snat`, `ha`, `distributed` or `external_fixed_ips`",
        ADMIN,
        {"routers": _one(name="r", external_network="external", enable_snat=False)},
    ),
    Kind(
        "floating_ip with an `address`",
        MANAGER,
        {"floating_ips": _one(name="f", external_network="external", address="192.168.122.171")},
        "before Neutron 2025.1 an administrator",
    ),
    Kind("floating_ip, floating_ip_attachment", MEMBER, {"floating_ips": _one(name="f", external_network="external")}),
    Kind("image", MEMBER, {"images": _one(name="i", source="disk.qcow2", disk_format="qcow2")}),
    Kind("network, subnet", MEMBER, NETWORK),
    Kind("router", MEMBER, {"routers": _one(name="r", external_network="external")}),
    Kind(
        "security_group, security_group_rule",
        MEMBER,
        {"security_groups": _one(name="g", rules=_one(protocol="tcp", ports=22))},
    ),
    Kind("port", MEMBER, NETWORK | {"ports": _one(name="p", network="n")}, "on a network of the project"),
    Kind(
        "address_pool, address_pairs, exposure",
        MEMBER,
        NETWORK | {"address_pools": _one(name="lb", subnet="n", addresses=["10.9.0.200-10.9.0.203"])},
        "on a network of another project: `admin`",
    ),
    Kind("server_group", MEMBER, {"server_groups": _one(name="s", policy="anti-affinity")}),
    Kind(
        "stack",
        MEMBER,
        {"stacks": _one(name="{}", template="template.yaml")},
        "and what its resources need; with Heat's `trusts_delegated_roles` those roles, such as `heat_stack_owner`",
    ),
    Kind(
        "object_store",
        OPERATOR,
        {"object_store": {"temp_url_key": "a-key-of-the-test"}},
        "or another of Swift's `operator_roles`",
        refused=2,
    ),
    Kind(
        "keypair", READER, {"keypairs": _one(name="{}", public_key=KEY)}, "of the user itself; of other users: `admin`"
    ),
    Kind(
        "application_credential",
        READER,
        {"application_credentials": _one(name="{}", clouds_yaml="made.yaml", cloud="made")},
        "of the user itself, not by an application credential; with the roles that the user has",
    ),
    Kind("recordset", MEMBER, why="in the project of the zone (tested by `tox -e designate`)", local=True),
    Kind("rke_cluster", READER, why="reads its stack, writes files (tested by `rke render`)", local=True),
    Kind(
        "clouds_entry, env_file, install_config, pool_file, exposed_cluster",
        NOBODY,
        why="files on this machine",
        local=True,
    ),
)


def roles(needed: tuple[str, ...]) -> str:
    return ", ".join(f"`{each}`" for each in needed) or "none"


def render() -> str:
    """Return both tables in Markdown."""
    return "\n".join([*_commands(), "", *_kinds()])


def _commands() -> Iterator[str]:
    yield "| command | role in the project | |"
    yield "|---|---|---|"
    for use in USES:
        yield f"| `{use.command}` | {roles(use.roles)} | {use.why} |"
    for name, why in AT_TERMINAL.items():
        yield f"| `{name}` | {roles(READER)} | {why} |"
    for name, why in NO_CLOUD.items():
        yield f"| `{name}` | none | {why} |"


def _kinds() -> Iterator[str]:
    yield "| resource | role in the project | |"
    yield "|---|---|---|"
    for kind in KINDS:
        yield f"| {kind.name} | {roles(kind.roles)} | {kind.why} |"
