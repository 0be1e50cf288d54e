"""The choice of a running cluster, by a kubeconfig and one of its contexts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from openstack_prep.kubernetes.api import kubeconfig
from openstack_prep.kubernetes.api.api_server import ApiServer


@dataclass(frozen=True)
class Cluster:
    """A running cluster; nothing is read before it is opened, and everything is read again each time."""

    kubeconfig: Path
    context: str | None = None
    """Default: the current context of the kubeconfig."""

    def __str__(self) -> str:
        return f"context {self.context} of {self.kubeconfig}" if self.context else str(self.kubeconfig)

    @contextmanager
    def open(self) -> Iterator[ApiServer]:
        """Connect; raises SpecError and ConfigError for a kubeconfig that cannot work."""
        server = ApiServer(kubeconfig.read(self.kubeconfig, self.context))
        try:
            yield server
        finally:
            server.close()
