"""Names of a cluster for whoever must find it: hosts files, dnsmasq, BIND.  Text out; one function writes.

Source: OpenShift installer docs/source, "Failure modes users hit": api and *.apps must resolve.
hosts(5) knows no wildcards, so it gets the routes of a default install one by one.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from openstack_prep.base.errors import Mistake, PrepError, SpecError
from openstack_prep.base.private_file import write_shared

ROUTES = (
    "console-openshift-console",
    "oauth-openshift",
    "downloads-openshift-console",
    "canary-openshift-ingress-canary",
    "alertmanager-main-openshift-monitoring",
    "prometheus-k8s-openshift-monitoring",
    "thanos-querier-openshift-monitoring",
)
"""First labels below ``apps`` of what a default install serves."""

TTL = 300


@dataclass(frozen=True, kw_only=True)
class Names:
    """The names of one cluster and the addresses behind them."""

    cluster_name: str
    """Name in install-config.yaml."""
    base_domain: str
    """Domain in install-config.yaml; the cluster's own is ``CLUSTER_NAME.BASE_DOMAIN``."""
    api: str
    """Address of the API, as those see it who ask."""
    ingress: str
    """Address of the routers."""
    api_int: str | None = None
    """Address of the API within the cluster; its name is left out without one."""
    routes: tuple[str, ...] = ROUTES
    """Names below ``apps`` for where there are no wildcards."""

    @property
    def domain(self) -> str:
        return f"{self.cluster_name}.{self.base_domain.rstrip('.')}"

    def servers(self) -> Iterator[tuple[str, str]]:
        """Yield address and name of what is no route."""
        yield self.api, f"api.{self.domain}"
        if self.api_int:
            yield self.api_int, f"api-int.{self.domain}"


# --- hosts files --------------------------------------------------------------------------


def hosts_lines(names: Names) -> list[str]:
    """Return the lines of a hosts file, one a name."""
    routes = ((names.ingress, f"{route}.apps.{names.domain}") for route in names.routes)
    return [f"{address} {name}" for address, name in (*names.servers(), *routes)]


def put_block(path: Path, label: str, lines: Sequence[str]) -> bool:
    """Put lines into a file, between marks that carry a label; tell whether that changed it.

    Everything outside the marks stays to the letter, and so do the file's mode and owner.  Without
    lines the block is taken out.  Raises SpecError that names the line of a mark without its partner.
    """
    old = content(path)
    new = with_block(old, label, lines, str(path))
    if new == old:
        return False
    write_shared(path, new)
    return True


def content(path: Path) -> str:
    """Return the text of a file to the letter, "" if there is none; raises SpecError, PrepError."""
    if not path.exists():
        return ""
    if not path.is_file():  # nobody may ever write into a pipe
        raise SpecError([Mistake(str(path), "is no regular file", "name another")])
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")  # line ends and other bytes stay
    except OSError as error:
        raise PrepError(f"{path} cannot be read: {error}") from error


def with_block(text: str, label: str, lines: Sequence[str], where: str = "hosts") -> str:
    """Return a text with the block of a label in it, in its old place or at the end."""
    begin, end = f"# BEGIN openstack-prep {label}", f"# END openstack-prep {label}"
    block = "".join(f"{line}\n" for line in [begin, *lines, end]) if lines else ""
    old = text.splitlines(keepends=True)
    place = _place(old, begin, end, where)
    if place is None:
        glue = "\n" if text and block and not text.endswith("\n") else ""
        return text + glue + block
    first, last = place
    return "".join([*old[:first], block, *old[last + 1 :]])


def _place(lines: Sequence[str], begin: str, end: str, where: str) -> tuple[int, int] | None:
    """Return the first and last line of a block."""
    marks = [(number, line.strip()) for number, line in enumerate(lines) if line.strip() in (begin, end)]
    if not marks:
        return None
    if [mark for _, mark in marks] == [begin, end]:
        return marks[0][0], marks[1][0]
    wanted = (begin, end)
    wrong = next((number for at, (number, mark) in enumerate(marks) if at > 1 or mark != wanted[at]), marks[0][0])
    what = f"{lines[wrong].strip()!r} has no partner, or stands in the wrong place"
    raise SpecError([Mistake(f"{where}:{wrong + 1}", what, "leave one pair of these marks, or none")])


# --- name servers -------------------------------------------------------------------------


def dnsmasq_lines(names: Names) -> list[str]:
    """Return lines for dnsmasq: exact names for the API, everything below ``apps`` for the routers."""
    exact = [f"host-record={name},{address}" for address, name in names.servers()]
    return [*exact, f"address=/apps.{names.domain}/{names.ingress}"]


def zone(names: Names, *, server: str, today: date, old: str = "") -> str:
    """Return the cluster's domain as a zone for BIND, served by the host ``server``.

    The serial is ``YYYYMMDDnn`` and always higher than that of the ``old`` zone (RFC 1982).  If nothing else
    differs, the old zone is returned with its serial.
    """
    found = re.search(r"\bSOA\s+\S+\s+\S+\s*\(?\s*(\d+)", old)
    serial = int(found[1]) if found else 0
    if old == _zone(names, server, serial):
        return old
    return _zone(names, server, max(int(f"{today:%Y%m%d}00"), serial + 1) % 2**32 or 1)


def _zone(names: Names, server: str, serial: int) -> str:
    server = f"{server.rstrip('.')}."
    records = [(name.removesuffix(f".{names.domain}"), address) for address, name in names.servers()]
    return "\n".join(
        [
            f"$ORIGIN {names.domain}.",
            f"$TTL {TTL}",
            f"@ IN SOA {server} hostmaster.{names.domain}. ( {serial} 3600 600 604800 {TTL} )",
            f"@ IN NS {server}",
            *(f"{name} IN {_type(address)} {address}" for name, address in (*records, ("*.apps", names.ingress))),
            "",
        ]
    )


def _type(address: str) -> str:
    return "A" if ipaddress.ip_address(address).version == 4 else "AAAA"
