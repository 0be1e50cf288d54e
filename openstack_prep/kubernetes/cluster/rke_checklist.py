"""The order in which a person brings up the clusters of a spec, and what is normal at each step.

Sources: the documentation of RKE2 and RKE; MetalLB's ("Installation": its webhook must answer before pools exist);
Cilium's ("Cluster Mesh").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from openstack_prep.base import shell
from openstack_prep.kubernetes import cilium, cluster_yml, rke2
from openstack_prep.kubernetes.cilium import Member
from openstack_prep.kubernetes.cluster import rke_files, rke_parameters
from openstack_prep.kubernetes.cluster.rke_related import RkeFields

STATUS = "cilium clustermesh status"
METALLB_CHART = "https://metallb.github.io/metallb"
BALANCERS = {
    rke_files.METALLB: "MetalLB's webhook checks metallb.yaml, so kubectl refuses it until MetalLB's controller runs",
    "cilium-load-balancer.yaml": "Cilium serves cilium-load-balancer.yaml, so nothing else is installed",
    "kube-vip.yaml": "kube-vip.yaml needs kube-vip with svc_enable and its cloud provider: install both first",
}
"""The files of load balancers, and what is normal or needed for them."""


@dataclass(frozen=True)
class ChecklistStep:
    """A step: what it does, its commands, and what is normal then."""

    title: str
    commands: tuple[str, ...]
    normal: str


def steps(clusters: Sequence[RkeFields], spec: str, entry: tuple[str, str] | None = None) -> tuple[ChecklistStep, ...]:
    """Return the steps for the clusters of a spec, which are resolved; ``spec`` is the path of its file.

    ``entry`` are the clouds.yaml file and the name of the project's own entry, if the spec writes one.
    """
    path, folders = shell.quote(spec), {cluster.name: shell.quote(cluster.directory) for cluster in clusters}
    found = [
        ChecklistStep(
            "Create the stacks",
            (f"openstack-prep apply {path}",),
            "apply waits until all nodes have sent their signals",
        )
    ]
    found += list(_start(clusters, folders))
    found += list(_network(clusters))
    command = "openstack-prep"
    if entry is not None:
        file, name = map(shell.quote, entry)
        command = f"OS_CLIENT_CONFIG_FILE={file} openstack-prep --os-cloud {name}"
    found += list(_balance(clusters, folders, f"{command} address-pairs sync {path}"))
    found += list(_mesh(clusters, path))
    return (*found, _validate(clusters, path))


def _start(clusters: Sequence[RkeFields], folders: dict[str, str]) -> Iterator[ChecklistStep]:
    rke = [cluster for cluster in clusters if cluster.distribution == "rke"]
    if rke:
        up = tuple(f"rke up --config {folders[cluster.name]}/cluster.yml" for cluster in rke)
        yield ChecklistStep("Install RKE", up, "nodes stay NotReady until the network plugin runs")
    files = {"rke": "kube_config_cluster.yml", "rke2": "kubeconfig"}
    paths = ":".join(f"{folders[cluster.name]}/{files[cluster.distribution]}" for cluster in clusters)
    commands = [f"export KUBECONFIG={paths}"]
    if len(rke) < len(clusters):
        commands = [*_fetch(clusters, folders), *commands]
    commands += [f"{_kubectl(cluster.name, clusters)} get nodes" for cluster in clusters]
    normal = "all nodes are listed; they may be NotReady until the network plugin runs"
    yield ChecklistStep("Fetch the kubeconfigs", tuple(commands), normal)


def _fetch(clusters: Sequence[RkeFields], folders: dict[str, str]) -> Iterator[str]:
    """Yield the commands that fetch the kubeconfigs of RKE2; apply knows their addresses."""
    yield "# Replace SERVER and API; apply prints these commands with their addresses."
    for each in (cluster for cluster in clusters if cluster.distribution == "rke2"):
        path, user = f"{folders[each.name]}/kubeconfig", each.user or cluster_yml.DEFAULT_USER
        yield rke2.kubeconfig_hint(user, "SERVER", "API", path, name=each.name).partition("\n")[0]


def _kubectl(name: str, clusters: Sequence[RkeFields]) -> str:
    """Return kubectl for a cluster; contexts are named like clusters, and a single one is the current one."""
    return f"kubectl --context {name}" if len(clusters) > 1 else "kubectl"


def _members(clusters: Sequence[RkeFields]) -> list[Member]:
    return [rke_files.member(cluster) for cluster in clusters if cluster.cilium]


def _network(clusters: Sequence[RkeFields]) -> Iterator[ChecklistStep]:
    members = _members(clusters)
    if not members:
        return
    shared = [line for line in cilium.hint(members).splitlines() if not line.startswith("#")]
    commands = [each for each in shared if not each.startswith(STATUS)]
    installed = {member.name for member in members if shared and member.cilium.mesh == "clustermesh-apiserver"}
    for member in members:
        context = member.name if len(clusters) > 1 else ""
        commands += [] if member.name in installed else [cilium.install(member, context)]
    for member in members:
        kubectl = _kubectl(member.name, clusters)
        commands.append(f"{kubectl} -n {member.cilium.namespace} rollout status daemonset/cilium")
    own = "RKE2 has started Cilium with default values, so its pods restart; "
    normal = "nodes become Ready within minutes; until then, pods of CoreDNS are Pending"
    normal = own * any(member.cluster.distribution == "rke2" for member in members) + normal
    yield ChecklistStep("Install Cilium", tuple(commands), normal)


def _balance(clusters: Sequence[RkeFields], folders: dict[str, str], sync: str) -> Iterator[ChecklistStep]:
    commands: list[str] = []
    needs: list[str] = []
    for cluster in clusters:
        kubectl, files = _kubectl(cluster.name, clusters), rke_files.names(cluster)
        if cluster.metallb:
            context = f"--kube-context {cluster.name} " if len(clusters) > 1 else ""
            if "cis" in ((cluster.config or {}).get("profile"), rke_parameters.value_of(cluster, "profile")):
                commands += _privileged(kubectl, cluster.metallb.namespace)
            helm = f"helm {context}upgrade --install metallb metallb --repo {METALLB_CHART}"
            commands.append(f"{helm} --namespace {cluster.metallb.namespace} --create-namespace --wait")
        for name in [name for name in files if name in BALANCERS]:
            commands.append(f"{kubectl} apply -f {folders[cluster.name]}/{name}")
            needs.append(BALANCERS[name])
    if commands:
        normal = f"until then, Services of type LoadBalancer are <pending>; {'; '.join(dict.fromkeys(needs))}"
        yield ChecklistStep("Install the load balancer", (*commands, sync), normal)


def _privileged(kubectl: str, namespace: str) -> Iterator[str]:
    """Yield the commands that let MetalLB's speakers run, which need the network of their node.

    Sources: rancher/rke2 v1.35.7+rke2r1, pkg/rke2/psa.go: with profile cis all namespaces but its own are restricted;
    metallb/metallb 7938d3f, config/manifests/metallb-frr.yaml: labels that Helm's --create-namespace does not set.
    """
    yield f"{kubectl} create namespace {namespace} --dry-run=client -o yaml | {kubectl} apply -f -"
    labels = (f"pod-security.kubernetes.io/{mode}=privileged" for mode in ("enforce", "audit", "warn"))
    yield f"{kubectl} label --overwrite namespace {namespace} {' '.join(labels)}"


def _mesh(clusters: Sequence[RkeFields], spec: str) -> Iterator[ChecklistStep]:
    meshed = [member for member in _members(clusters) if member.cilium.mesh != "none"]
    if len(meshed) < 2:
        return
    status = [line for line in cilium.hint(meshed).splitlines() if line.startswith(STATUS)]
    normal = "rke mesh reports no problems; cilium waits until the Services of the mesh have addresses"
    yield ChecklistStep("Join the clusters", (f"openstack-prep rke mesh {spec}", *status), normal)


def _validate(clusters: Sequence[RkeFields], spec: str) -> ChecklistStep:
    commands = [f"{_kubectl(cluster.name, clusters)} get nodes" for cluster in clusters]
    for member in _members(clusters):
        context = f" --context {member.name}" if len(clusters) > 1 else ""
        commands.append(f"cilium status{context} -n {member.cilium.namespace} --wait")
        kubectl = f"kubectl{context} -n {member.cilium.namespace}"
        commands.append(f"{kubectl} exec daemonset/cilium -- cilium-dbg node list")
    commands.append(f"openstack-prep plan {spec}")
    listed = "cilium-dbg lists the nodes of all clusters, as CLUSTER/NODE; " if len(_members(clusters)) > 1 else ""
    normal = f"all nodes are Ready; {listed}plan lists nothing but what is unchanged"
    return ChecklistStep("Validate", tuple(commands), normal)
