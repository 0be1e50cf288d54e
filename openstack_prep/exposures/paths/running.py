"""The hop through a running cluster: the Service of an exposure, judged by what the API server lists: pure.

Source: Kubernetes API, Service v1.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from openstack_prep.base.diagnostic import Diagnostic
from openstack_prep.exposures import services
from openstack_prep.exposures.external_ips import manifests
from openstack_prep.exposures.model import PlacedExposure, Way
from openstack_prep.exposures.virtualization import manifests as machines
from openstack_prep.exposures.virtualization.manifests import served
from openstack_prep.kubernetes.services import ServiceRecord
from openstack_prep.openshift.verify.chain import ok

SERVICE = "Service"


@dataclass(frozen=True, kw_only=True)
class Running:
    """The Services of a running cluster, and how commands reach it."""

    services: Mapping[str, ServiceRecord]
    """By namespace/name."""
    kubectl: str = "kubectl"
    """The beginning of commands."""
    cluster: str | None = None
    """Its name in the spec; None: the only exposed cluster."""


def hops(
    placed: PlacedExposure, running: Running, all_placed: Sequence[PlacedExposure], directory: str
) -> Iterator[Diagnostic]:
    """Yield whether the cluster has the Service of an exposure, with the address; nothing if no Service leads there.

    ``all_placed`` are all exposures of the cluster, ``directory`` is the folder of its files.
    """
    if name := service_of(placed):
        same = [each for each in all_placed if _shares_service(each, placed)]
        yield _ServiceHop(placed=placed, name=name, running=running, same=same, directory=directory).judge()


def service_of(placed: PlacedExposure) -> str | None:
    """Return the namespace and name of the Service that leads to the target of an exposure."""
    target = placed.exposure.target
    if target.virtual_machine:
        return f"{target.namespace}/{placed.exposure.name}" if served([placed]) else None
    return target.service


def _shares_service(one: PlacedExposure, other: PlacedExposure) -> bool:
    return (one.exposure.how, one.exposure.target.service) == (other.exposure.how, other.exposure.target.service)


@dataclass(frozen=True, kw_only=True)
class _ServiceHop:
    """The Service of one exposure; ``same`` are the exposures that lead to the same one."""

    placed: PlacedExposure
    name: str
    running: Running
    same: Sequence[PlacedExposure]
    directory: str

    def judge(self) -> Diagnostic:
        found = self.running.services.get(self.name)
        if found is None:
            return self._missing()
        if self._how == "floating-ip":  # leads to a port of OpenStack, whatever the Service is
            return ok(SERVICE, f"{self.name} is of type {found.type}")
        return self._type(found) or self._ports(found) or self._address(found)

    @property
    def _how(self) -> Way:
        return self.placed.exposure.how

    # --- what is wrong ------------------------------------------------------------------------

    def _missing(self) -> Diagnostic:
        fix = f"create it, then {self._change}" if self._is_foreign else self._change
        if self._how == "floating-ip":
            fix = f"create it, or correct the target of exposure {self.placed.exposure.name}"
        return self._diagnostic("kubernetes-service.missing", f"{self.name} does not exist", fix)

    def _type(self, found: ServiceRecord) -> Diagnostic | None:
        types = {"node-port": ("NodePort", "LoadBalancer"), "external-ip": (found.type,)}
        wanted = types.get(self._how, ("LoadBalancer",))
        if found.type in wanted:
            return None
        return self._diagnostic(
            "kubernetes-service.wrong-type", f"{self.name} is of type {found.type}, not {wanted[0]}", self._change
        )

    def _ports(self, found: ServiceRecord) -> Diagnostic | None:
        """Return what is wrong with the ports; node ports matter only if requests go to the nodes."""
        exposure = self.placed.exposure
        lacking = [str(each) for each in exposure.ports if each.key not in found.ports]
        if self._how == "node-port":
            given = (each for each in exposure.ports if each.node_port and each.key in found.ports)
            differing = (each for each in given if found.ports[each.key] != each.node_port)
            lacking += [f"node port {each.node_port} for {each}" for each in differing]
        if not lacking:
            return None
        what = f"{self.name} has {self._shown_ports(found) or 'no ports'}, but not {', '.join(lacking)}"
        foreign = f"correct the ports of the Service, or those of exposure {exposure.name}"
        return self._diagnostic("kubernetes-service.wrong-port", what, foreign if self._is_foreign else self._change)

    def _address(self, found: ServiceRecord) -> Diagnostic:
        address, shown = self.placed.address, f"{self.name} is of type {found.type}"
        if self._how == "node-port":
            return ok(SERVICE, f"{shown} with {self._shown_ports(found)}")
        if address is None:  # which is a hop of its own
            return ok(SERVICE, shown)
        external = self._how == "external-ip"
        has = found.external_ips if external else found.given
        if address in has:
            return ok(SERVICE, f"{shown} and {'has' if external else 'was given'} {address}")
        words = ", ".join(has) or "no address"
        if external:
            return self._diagnostic(
                "kubernetes-service.wrong-address",
                f"{self.name} has {words}, not {address}",
                self._change_external(has),
            )
        if address not in found.requested:
            what = f"{self.name} was given {words}, and does not request {address}"
            return self._diagnostic("kubernetes-service.wrong-address", what, self._change)
        why = f"{self._how} does not run, has no pool with the address, or has given it to another Service"
        namespace, _, bare = self.name.partition("/")
        fix = f"{self.running.kubectl} -n {shlex.quote(namespace)} describe service {shlex.quote(bare)}"
        return self._diagnostic(
            "kubernetes-service.no-address", f"{self.name} requests {address}, and was given {words}", fix, why
        )

    def _shown_ports(self, found: ServiceRecord) -> str:
        by_node = self._how == "node-port"
        return ", ".join(
            f"{number}/{protocol}" + (f" at node port {node_port}" if by_node and node_port else "")
            for (protocol, number), node_port in found.ports.items()
        )

    @staticmethod
    def _diagnostic(code: str, what: str, fix: str, why: str = "") -> Diagnostic:
        return Diagnostic(code=code, where=SERVICE, what=what, why=why, fix=fix)

    # --- commands -----------------------------------------------------------------------------

    @property
    def _is_foreign(self) -> bool:
        """Whether none of the written files creates the Service."""
        return not self.placed.exposure.target.virtual_machine and not any(
            each.exposure.target.selector for each in self.same
        )

    @property
    def _change(self) -> str:
        """The command that gives the Service what the exposure needs."""
        external = self._how == "external-ip"
        if self._is_foreign:
            kubectl = self.running.kubectl
            return manifests.patch(self.same, kubectl) if external else services.patch(self.placed, kubectl)
        if self.placed.exposure.target.virtual_machine:
            return self._apply(machines.SERVICES)
        return self._apply(manifests.SERVICES if external else services.SERVICES)

    def _change_external(self, has: Sequence[str]) -> str:
        """Return the command that gives it the external addresses; others that it has would be lost."""
        others = sorted({*has} - {each.address for each in self.same})
        if not others:
            return self._change
        return f"declare exposures for {', '.join(others)}, or give them up; then {self._change}"

    def _apply(self, name: str) -> str:
        path = os.path.join(self.directory, name)
        near = os.path.relpath(path)
        return f"{self.running.kubectl} apply -f {shlex.quote(path if near.startswith(os.pardir) else near)}"
