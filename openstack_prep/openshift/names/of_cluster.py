"""The DNS names of a cluster from its install-config or from options, and the files that resolve them.

Source: the OpenShift installer's defaults for omitted fields (types/defaults,
types/openstack/defaults): machine network 10.0.0.0/16, virtual addresses its 5th and 7th.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Literal

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.dns import entries
from openstack_prep.dns.entries import Edit, change_file, put_block
from openstack_prep.openshift.install_config import InstallConfigValues
from openstack_prep.openshift.install_config.fields import OPENSTACK
from openstack_prep.openshift.install_config.paths import WITHOUT_CLOUD
from openstack_prep.openshift.install_config.rules.names import LABEL
from openstack_prep.openshift.names import hosts
from openstack_prep.openshift.names.hosts import ClusterNames

Form = Literal["hosts", "dnsmasq", "bind"]

MISSING = "is missing"
_MACHINES = ("networking.machineNetwork[].cidr", "networking.machineCIDR")
_NUMBER = {"api": 5, "ingress": 7}  # of the default virtual address in the machine network

Placed = tuple[str, Any]
"""The place of a value, and the value; None if it is missing."""


def names_of(
    install_config: Path | None = None,
    *,
    cluster_name: str | None = None,
    base_domain: str | None = None,
    api: str | None = None,
    ingress: str | None = None,
    api_int: str | None = None,
    internal: bool = False,
) -> ClusterNames:
    """Return the names of a cluster; each argument overrides its install-config.

    The addresses are the floating IPs.  With ``internal``, or without an external network, they are the virtual
    addresses, by default the installer's; ``internal`` also adds api-int.  Raises SpecError with all mistakes.
    """
    given, mistakes = _opened(install_config)
    domain = _domain(given, cluster_name, base_domain)
    addresses = {"api": _address(given, "api", api, internal), "ingress": _address(given, "ingress", ingress, internal)}
    if api_int:
        addresses["api-int"] = ("api-int", api_int)
    elif internal:
        own = given and given.platform not in WITHOUT_CLOUD
        addresses["api-int"] = _address(given, "api", None, internal=True) if own else addresses["api"]
    _raise(mistakes, [*_wrong_domain(domain), *_wrong_addresses(addresses, given)])
    plain = {name: str(ipaddress.ip_address(value)) for name, (_, value) in addresses.items()}
    return ClusterNames(
        cluster_name=domain["cluster-name"][1],
        base_domain=domain["base-domain"][1].rstrip("."),
        api=plain["api"],
        ingress=plain["ingress"],
        api_int=plain.get("api-int"),
        also=_of_other_version(given, [plain["api"], plain["ingress"]]) if given else frozenset(),
    )


def domain_of(
    install_config: Path | None = None, *, cluster_name: str | None = None, base_domain: str | None = None
) -> str:
    """Return the domain of a cluster, such as dev.example.com; raises SpecError with all mistakes."""
    given, mistakes = _opened(install_config)
    domain = _domain(given, cluster_name, base_domain)
    _raise(mistakes, list(_wrong_domain(domain)))
    return f"{domain['cluster-name'][1]}.{domain['base-domain'][1].rstrip('.')}"


# --- reading ------------------------------------------------------------------------------


def _opened(install_config: Path | None) -> tuple[InstallConfigValues | None, list[Mistake]]:
    """Return an install-config, and the mistakes of the file itself."""
    try:
        given = InstallConfigValues(install_config, without_cloud=True) if install_config else None
    except SpecError as error:
        return None, list(error.mistakes)
    return given, given.repeated if given else []


def _raise(of_file: list[Mistake], others: list[Mistake]) -> None:
    """Raise SpecError for all mistakes; of an invalid file, missing values are not reported."""
    mistakes = [*of_file, *(mistake for mistake in others if not of_file or mistake.what != MISSING)]
    if mistakes:
        raise SpecError(mistakes)


def _domain(given: InstallConfigValues | None, cluster_name: str | None, base_domain: str | None) -> dict[str, Placed]:
    return {
        "cluster-name": _placed(given, ["metadata.name"], "cluster-name", cluster_name),
        "base-domain": _placed(given, ["baseDomain"], "base-domain", base_domain),
    }


def _placed(given: InstallConfigValues | None, paths: Sequence[str], name: str, value: str | None) -> Placed:
    if value is not None or given is None:
        return name, value
    found = next((path for path in paths if given.value(path)), paths[0])
    return given.place(found), given.value(found)


def _address(given: InstallConfigValues | None, which: str, value: str | None, internal: bool) -> Placed:
    if value is not None or given is None or given.platform in WITHOUT_CLOUD:
        return which, value
    path, floating = given.field(f"{which}_floating_ip")
    if not internal and (floating or given.value(f"{OPENSTACK}.externalNetwork")):
        return given.place(path), floating
    path, virtual = given.field(f"{which}_vips")
    if isinstance(virtual, list):
        virtual = next(iter(virtual), None)
    if virtual:
        return given.place(path), virtual
    where, network = _placed(given, _MACHINES, which, None)
    try:
        return where, str(ipaddress.ip_network(network or "10.0.0.0/16")[_NUMBER[which]])
    except (ValueError, IndexError):
        return where, network


def _of_other_version(given: InstallConfigValues, chosen: Sequence[str]) -> frozenset[str]:
    """Return the virtual addresses of the other IP version: the names of a cluster with two stacks have both."""
    found: set[str] = set()
    for which in ("api", "ingress"):
        _, virtual = given.field(f"{which}_vips")
        listed = {str(each) for each in virtual} if isinstance(virtual, list) else set()
        found |= listed if listed & {*chosen} else set()
    return frozenset(found - {*chosen})


def _wrong_domain(domain: dict[str, Placed]) -> Iterator[Mistake]:
    pattern = {"cluster-name": LABEL, "base-domain": rf"{LABEL}(\.{LABEL})*\.?"}
    for name, (where, value) in domain.items():
        if value is None:
            yield Mistake(where, MISSING, f"give --{name}, or --install-config FILE")
        elif not isinstance(value, str) or not re.fullmatch(pattern[name], value):
            yield Mistake(where, f"{value!r} is not a DNS name", "use lowercase letters, digits and hyphens")


def _wrong_addresses(addresses: dict[str, Placed], given: InstallConfigValues | None) -> Iterator[Mistake]:
    for name, (where, value) in addresses.items():
        if name == "api-int" and (where, value) == addresses["api"]:
            continue  # reported for api already
        if value is None and given and given.platform in WITHOUT_CLOUD:
            what = f"{MISSING}; a cluster of platform {given.platform} has no address of its own"
            yield Mistake(where, what, f"give --{name} ADDR, that of your load balancer")
            continue
        if value is None:
            or_else = "--internal for the address within the cluster" if given else "--install-config FILE"
            yield Mistake(where, MISSING, f"give --{name} ADDR, or {or_else}")
            continue
        try:
            ipaddress.ip_address(str(value))
        except ValueError:
            yield Mistake(where, f"{value!r} is not an IP address", "write one such as 192.0.2.10")


# --- writing ------------------------------------------------------------------------------


def text_of(names: ClusterNames, form: Form, server: str | None = None, old: str = "") -> str:
    """Return the names in one of the formats; a zone for BIND continues the serials of an old zone.

    ``server`` is the host that serves the zone.  Raises SpecError without it.
    """
    if form == "bind":
        return hosts.zone(names, server=_checked_server(names, server), today=date.today(), old=old)
    return "".join(f"{line}\n" for line in _lines(names, form))


def write(path: Path, names: ClusterNames, form: Form, server: str | None = None, *, replace: bool = False) -> bool:
    """Write the names into a file unless they are up to date; return whether the file was changed.

    In a hosts or dnsmasq file they are a block between two comments with the domain; the rest of the file is left
    untouched.  A line there that gives one of the names another address is refused; with ``replace``, the names are
    removed from it, and a line without others becomes a comment.  A zone is a file of its own; only a zone of the same
    domain is replaced, and none with lines that this function does not write.  Raises SpecError, PrepError.
    """
    if form != "bind":
        edit = _replace(names, form) if replace else _refuse(path, names, form)
        return put_block(path, names.domain, _lines(names, form), edit)

    def zone(old: str) -> str:
        if old and not old.startswith(f"$ORIGIN {names.domain}.\n"):
            what = f"is not the zone of {names.domain}"
            raise SpecError([Mistake(str(path), what, "give another file, or move this one away")])
        if lost := list(hosts.foreign_lines(old)):
            fix = "move it to a file of its own, or delete it"
            raise SpecError([Mistake(f"{path}:{number}", f"{line!r} would be lost", fix) for number, line in lost])
        return text_of(names, form, server, old)

    return change_file(path, zone)


def _replace(names: ClusterNames, form: entries.Form) -> Edit:
    return lambda lines: entries.without_conflicts(lines, names.wanted(), form)


def _refuse(path: Path, names: ClusterNames, form: entries.Form) -> Edit:
    """Return an edit that changes nothing; it raises SpecError with all lines that conflict with the names."""

    def judge(lines: Sequence[str]) -> Sequence[str]:
        found = entries.conflicts(lines, names.wanted(), form)
        mistakes = [
            Mistake(
                f"{path}:{entry.number}",
                f"gives {', '.join(others)} the address {', '.join(entry.addresses)}, outside of the block of "
                f"{names.domain}",
                "add --replace, which removes these names from the line, or correct the line",
            )
            for entry, others in found
        ]
        if mistakes:
            raise SpecError(mistakes)
        return lines

    return judge


def remove(path: Path, domain: str) -> bool:
    """Remove a domain's block from a hosts or dnsmasq file; return whether the file had one."""
    return put_block(path, domain, ())


def _lines(names: ClusterNames, form: Form) -> list[str]:
    return hosts.hosts_lines(names) if form == "hosts" else hosts.dnsmasq_lines(names)


def _checked_server(names: ClusterNames, server: str | None) -> str:
    if server is None:
        raise SpecError([Mistake("server", MISSING, "give --server NAME, the name server of the zone")])
    plain = server.rstrip(".")
    if not re.fullmatch(rf"{LABEL}(\.{LABEL})+", plain):
        raise SpecError(
            [Mistake("server", f"{server!r} is not a fully qualified host name", "write one such as ns.example.com")]
        )
    if f".{plain}".endswith(f".{names.domain}"):
        what = f"{server!r} is a name in the zone itself, which has no address for it"
        raise SpecError([Mistake("server", what, "give a host in another domain")])
    return plain
