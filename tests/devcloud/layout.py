"""Where a devcloud lives: its ports, its directories, the addresses of its services."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"
REGION = "regionOne"
PASSWORD = "devcloud"  # of every account; nothing listens beyond loopback
DEFAULT_BASE = 20000
PROGRAMS = "programs"

REPOSITORY = Path(__file__).resolve().parents[2]

OFFSETS = {  # the projects' usual port numbers, added to the base
    "keystone": 5000,
    "glance": 9292,
    "placement": 8778,
    "nova": 8774,
    "neutron": 9696,
    "cinder": 8776,
    "heat": 8004,
    "designate": 9001,
    "octavia": 9876,
    "swift-proxy": 8080,
    "swift-account": 6202,
    "swift-container": 6201,
    "swift-object": 6200,
}
MDNS_OFFSET = 5354  # where Designate's own name server listens, within its process


def with_designate() -> bool:
    """Whether the cloud has Designate, which few tests need."""
    return os.environ.get("OPENSTACK_PREP_DEVCLOUD_DESIGNATE") == "1"


def with_octavia() -> bool:
    """Whether the cloud has Octavia, which needs OVN."""
    return os.environ.get("OPENSTACK_PREP_DEVCLOUD_OCTAVIA") == "1"


_LEFT_OUT = {name for name, there in (("designate", with_designate()), ("octavia", with_octavia())) if not there}
SERVICES = tuple(name for name in OFFSETS if name not in _LEFT_OUT)
SWIFT = tuple(name for name in SERVICES if name.startswith("swift-"))
HOSTED = tuple(name for name in SERVICES if name not in SWIFT)  # those that server/host.py runs

FIRST_EPHEMERAL_PORT = 32768  # the kernel hands out ports from here on to whoever asks
HIGHEST_BASE = FIRST_EPHEMERAL_PORT - 1 - max(OFFSETS[name] for name in SERVICES)


class DevcloudError(Exception):
    """Something that the user of the devcloud has to know; the message says what to do."""


def default_root() -> Path:
    """The one directory that holds everything the devcloud writes."""
    chosen = os.environ.get("OPENSTACK_PREP_DEVCLOUD_DIR")
    return Path(chosen).resolve() if chosen else REPOSITORY / ".devcloud"


def with_packets() -> bool:
    """Whether the cloud carries traffic (data_plane.py)."""
    return os.environ.get("OPENSTACK_PREP_DEVCLOUD_PACKETS") == "1"


def ovn_root() -> str:
    """Below which folder OVN's programs are installed; empty for a cloud without OVN."""
    return str(default_root() / PROGRAMS) if with_packets() else os.environ.get("OPENSTACK_PREP_DEVCLOUD_OVN", "")


@dataclass(frozen=True)
class Layout:
    """One cloud: the port numbers above ``base``, the files below ``root/base``."""

    base: int = DEFAULT_BASE
    root: Path = REPOSITORY / ".devcloud"

    def __post_init__(self) -> None:
        if not 0 <= self.base <= HIGHEST_BASE:
            raise DevcloudError(
                f"port base {self.base} will not do: it must lie between 0 and {HIGHEST_BASE}, "
                f"so that every port stays below the ephemeral ones ({FIRST_EPHEMERAL_PORT})"
            )

    @property
    def venv(self) -> Path:
        """The servers' virtual environment, shared by the clouds of all bases."""
        return self.root / "venv"

    @property
    def programs(self) -> Path:
        """Programs of the data plane, shared like ``venv``."""
        return self.root / PROGRAMS

    @property
    def home(self) -> Path:
        return self.root / str(self.base)

    @property
    def etc(self) -> Path:
        return self.home / "etc"

    @property
    def db(self) -> Path:
        return self.home / "db"

    @property
    def log(self) -> Path:
        return self.home / "log"

    @property
    def run(self) -> Path:
        return self.home / "run"

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def pristine(self) -> Path:
        """A copy of db and data as they were when the cloud had just been built."""
        return self.home / "pristine"

    @property
    def clouds_file(self) -> Path:
        return self.home / "clouds.yaml"

    @property
    def ovn(self) -> Path:
        """OVN's databases and sockets."""
        return self.data / "neutron/ovn"

    @property
    def faults_file(self) -> Path:
        return self.run / "faults.json"

    def access_log(self, service: str) -> Path:
        return self.log / f"access-{service}.log"

    def begun_log(self, service: str) -> Path:
        """What a service was asked for, when it was asked, and when that ended."""
        return self.log / f"begun-{service}.log"

    def service_log(self, service: str) -> Path:
        return self.log / f"{service}.log"

    def port(self, service: str) -> int:
        return self.base + OFFSETS[service]

    def url(self, service: str) -> str:
        """Address of a service, without a path."""
        return f"http://{HOST}:{self.port(service)}"

    @property
    def mdns_port(self) -> int:
        """Where Designate's own name server answers, by UDP and TCP."""
        return self.base + MDNS_OFFSET

    @property
    def auth_url(self) -> str:
        return f"{self.url('keystone')}/v3"
