"""What a conversion produces: config.yaml and further files, and for each key of cluster.yml what became of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.base.raw import Raw, Values
from openstack_prep.base.secret import Secret, masked
from openstack_prep.kubernetes.keys.schema import hide

FOLDER = "/etc/rancher/rke2"
"""Where RKE2 reads config.yaml and registries.yaml, and where the files lie that config.yaml names."""


ENABLED = "enable-admission-plugins"
CHART_SINCE = {
    ("rke2-ingress-nginx", "controller.hostPort"): 19,
    ("rke2-ingress-nginx", "controller.ingressClassResource"): 19,
    ("rke2-ingress-nginx", "defaultBackend"): 19,
    ("rke2-coredns", "nodelocal"): 20,
    ("rke2-canal", "flannel.vni"): 24,
    ("rke2-canal", "flannel.backendPort"): 24,
    ("rke2-flannel", "flannel.backendPort"): 27,
    ("rke2-metrics-server", "updateStrategy"): 27,
}
"""The first minor version of RKE2 whose chart has a value, by the beginning of its path."""
NO_POLICIES = 25
"""Since Kubernetes 1.25, kube-apiserver refuses to start with the admission plugin PodSecurityPolicy."""


@dataclass(frozen=True)
class ConvertedKey:
    """One key of cluster.yml: the key or file of RKE2 that it becomes, if any, and a remark."""

    key: str
    becomes: str | None
    note: str = ""


@dataclass(frozen=True)
class ChartConfig:
    """A manifest that sets Helm values of one of RKE2's charts, with secrets as ``Secret``."""

    chart: str
    values: Raw

    def document(self, *, openly: bool) -> Raw:
        """Return the manifest; its values are a text, with asterisks for secrets unless ``openly``."""
        return {
            "apiVersion": "helm.cattle.io/v1",
            "kind": "HelmChartConfig",
            "metadata": {"name": self.chart, "namespace": "kube-system"},
            "spec": {"valuesContent": dump(self.values if openly else cast("Raw", masked(self.values)))},
        }


Content: TypeAlias = str | Secret | Sequence[Raw] | ChartConfig
"""A text, a text with secrets, the documents of a YAML file with secrets as ``Secret``, or a manifest for a chart."""


@dataclass
class Draft:
    """A conversion at work; ``minor`` is N of the Kubernetes 1.N of the new cluster."""

    data: Raw
    minor: int
    config: Values = field(default_factory=dict)
    charts: dict[str, Values] = field(default_factory=dict)
    """Helm values by the name of RKE2's chart."""
    files: dict[str, Content] = field(default_factory=dict)
    entries: list[ConvertedKey] = field(default_factory=list)
    admission: list[str] = field(default_factory=lambda: ["NodeRestriction"])
    """Admission plugins of kube-apiserver; the first one is RKE2's own."""
    external: bool = False
    """Whether a cloud controller manager will run."""

    def note(self, key: str, becomes: str | None, note: str = "") -> None:
        """Record what became of a key."""
        entry = ConvertedKey(key, becomes, note)
        if entry not in self.entries:
            self.entries.append(entry)

    def set(self, key: str, name: str, value: object, note: str = "") -> None:
        """Write a key of config.yaml."""
        self.config[name] = hide(value, name)
        self.note(key, name, note)

    def add(self, key: str, name: str, value: str | Secret, note: str = "") -> None:
        """Append to a list in config.yaml."""
        items: list[object] = self.config.setdefault(name, [])
        if (hidden := hide(value)) not in items:
            items.append(hidden)
        self.note(key, name, note)

    def admit(self, key: str, *plugins: str) -> None:
        """Enable admission plugins: one flag for all, because the last one counts."""
        old = {"PodSecurityPolicy"} if self.minor >= NO_POLICIES else set()
        if old & {*plugins}:
            self.note(key, None, "PodSecurityPolicy: Kubernetes 1.25 and later do not have it")
        self.admission += [plugin for plugin in plugins if plugin and plugin not in (*self.admission, *old)]
        self.note(key, "kube-apiserver-arg", ENABLED)

    def file(self, key: str, name: str, content: Content, note: str = "") -> None:
        """Write a file."""
        self.files[name] = cast("Content", content if isinstance(content, Secret) else hide(content))
        self.note(key, name, note)

    def chart(self, key: str, chart: str, path: str, value: object, note: str = "") -> None:
        """Write a Helm value at a dotted path."""
        since = next((each for (of, start), each in CHART_SINCE.items() if of == chart and path.startswith(start)), 0)
        if self.minor < since:
            self.note(key, None, f"the chart {chart} has {path} since RKE2 1.{since}")
            return
        *parents, last = path.split(".")
        values = self.charts.setdefault(chart, {})
        for name in parents:
            values = values.setdefault(name, {})
        values[last] = hide(value, last)
        self.note(key, f"{chart}-config.yaml: {path}", note)


Handler: TypeAlias = Callable[[Draft, str, Any], None]
"""Converts the value of one key."""


def to(name: str, note: str = "") -> Handler:
    """Return the handler of a key that has another name in config.yaml."""
    return lambda draft, key, value: draft.set(key, name, value, note)


def into(chart: str, path: str, note: str = "") -> Handler:
    """Return the handler of a key that is a Helm value."""
    return lambda draft, key, value: draft.chart(key, chart, path, value, note)


def lost(why: str) -> Handler:
    """Return the handler of a key that has no counterpart."""
    return lambda draft, key, value: draft.note(key, None, why)
