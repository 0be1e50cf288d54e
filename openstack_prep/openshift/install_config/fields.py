"""The fields of an install-config in each release: the table that this package is built on.

Source: the OpenShift installer's types (platform.go, machinepool.go, installconfig.go) of each release,
and the pull requests that changed them.  ``releases`` has the rules that come and go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from openstack_prep.base.raw import Raw, Values
from openstack_prep.openshift.install_config.releases import NEVER, OLDEST

OPENSTACK = "platform.openstack"


@dataclass(frozen=True)
class Form:
    """The form of a value in the file: ``write`` converts to it, ``read`` converts back."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


@dataclass(frozen=True)
class Spelling:
    """A way to write a field: its ``path``, with ``[]`` after lists, and the releases that accept it.

    From ``until`` on it is deprecated or ignored.  ``single``: it has one value where a newer spelling has a list.
    ``gated``: it requires a feature set of previews.
    """

    path: str
    since: int = OLDEST
    until: int = NEVER
    form: Form | None = None
    single: bool = False
    gated: bool = False

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2].removesuffix("[]")

    def shaped(self, value: Any) -> Any:
        value = value[0] if self.single else value
        value = self.form.write(value) if self.form else value
        return list(value) if isinstance(value, tuple) else value

    def given(self, value: object) -> object:
        """Return the value of a written form; raises AttributeError, KeyError, TypeError, ValueError for others."""
        value = self.form.read(value) if self.form else value
        return [value] if self.single else value


@dataclass(frozen=True)
class Field:
    """A field with all its spellings; the first that a release accepts is written.

    ``of`` is its name in a spec; "" for a field that is known but never written.
    """

    of: str
    spellings: tuple[Spelling, ...]

    def spelling(self, release: int, *, previews: bool = False) -> Spelling | None:
        """Return the spelling of a release, with or without its previews; None if the release lacks the field."""
        current = (each for each in self.spellings if each.since <= release < each.until)
        return next((each for each in current if previews or not each.gated), None)


# --- forms --------------------------------------------------------------------------------
#
# ``read`` returns JSON values by names of a spec; the model validates their types.


def _reference(value: Any) -> dict[str, str]:
    return {name: given for name in ("id", "name") if (given := getattr(value, name))}


def _named(value: Raw, *names: str) -> Values:
    """Return the members by name; Go matches names in any case."""
    by_letters = {str(name).lower(): each for name, each in value.items()}
    return {name: by_letters[name.lower()] for name in names if by_letters.get(name.lower()) is not None}


def _referred(value: Raw) -> Values:
    """Return the ID and the name of a resource; the installer asks Neutron for one with both (cloudinfo.go)."""
    return {name: given for name, given in _named(value, "id", "name").items() if given}


def _mirrored(value: Raw) -> Values:
    """Return a source and its mirrors; without mirrors, it is its own."""
    found = _named(value, "source", "mirrors")
    return found if found.get("mirrors") else found | {"mirrors": [found.get("source")]}


def _truth(value: object) -> bool | None:
    """Return what a text means, None if nothing; the installer takes any text, and asks the cloud itself.

    Source: OpenShift installer 4.2, types/openstack/platform.go and docs/user/openstack/customization.md.
    """
    if not isinstance(value, str):
        raise TypeError(value)
    return {"0": False, "false": False, "1": True, "true": True}.get(value.lower())


CIDRS = Form(
    lambda values: [{"cidr": value} for value in values],
    lambda values: [_named(value, "cidr")["cidr"] for value in values],
)
DIGIT = Form(lambda value: str(int(value)), _truth)
JOINED = Form(",".join, lambda value: [name for each in value.split(",") if (name := each.strip())])
REFERENCE = Form(_reference, _referred)
FIXED_IPS = Form(
    lambda values: [{"subnet": _reference(value)} for value in values],
    lambda values: [_referred(_named(value, "subnet")["subnet"]) for value in values],
)
REST_OF_32 = Form(lambda value: 32 - int(value), lambda value: 32 - int(value))
"""Bits of the addresses of a machine's part, where hostPrefix has those of its network (types/conversion, 4.1)."""
ID = Form(lambda value: str(value.id) if value.id else None, lambda value: {"id": value})
MIRRORS = Form(
    lambda values: [{"source": value.source, "mirrors": list(value.mirrors)} for value in values],
    lambda values: [_mirrored(value) for value in values],
)


# --- the table, in the order in which it is written ---------------------------------------


def _one(of: str, path: str, since: int = OLDEST, until: int = NEVER, form: Form | None = None) -> Field:
    return Field(of, (Spelling(path, since, until, form),))


def _gated(of: str, path: str, preview: int, since: int, form: Form | None = None) -> Iterator[Field]:
    """Yield a field that was a preview before it was generally available."""
    yield Field(of, (Spelling(path, since, form=form), Spelling(path, preview, since, form, gated=True)))


def _machines(of: str, path: str) -> Iterator[Field]:
    """Yield the fields of machines, in either pool or for both."""
    yield _one(f"{of}.zones", f"{path}.zones", 6)
    yield _one(f"{of}.root_volume.size", f"{path}.rootVolume.size")
    yield Field(
        f"{of}.root_volume.types",
        (
            Spelling(f"{path}.rootVolume.types", 14),  # #7300
            Spelling(f"{path}.rootVolume.type", until=14, single=True),
        ),
    )
    yield _one(f"{of}.root_volume.zones", f"{path}.rootVolume.zones", 8)
    yield _one(f"{of}.server_group_policy", f"{path}.serverGroupPolicy", 9)  # #5003
    yield _one(f"{of}.additional_networks", f"{path}.additionalNetworkIDs", 5)
    yield _one(f"{of}.additional_security_groups", f"{path}.additionalSecurityGroupIDs", 5)


def _pool(of: str, path: str) -> Iterator[Field]:
    yield _one(f"{of}.name", f"{path}.name")
    yield _one(f"{of}.replicas", f"{path}.replicas")
    yield _one(f"{of}.flavor", f"{path}.{OPENSTACK}.type")
    yield from _machines(of, f"{path}.{OPENSTACK}")
    yield from (_one("", f"{path}.{name}") for name in ("architecture", "hyperthreading"))


FIELDS: tuple[Field, ...] = (
    _one("api_version", "apiVersion"),
    _one("base_domain", "baseDomain"),
    _one("cluster_name", "metadata.name"),
    *_pool("control_plane", "controlPlane"),
    *_pool("compute", "compute[]"),
    Field("network_type", (Spelling("networking.networkType"), Spelling("networking.type", until=OLDEST))),
    Field(
        "machine_networks",
        (
            Spelling("networking.machineNetwork", 4, form=CIDRS),  # #2896
            Spelling("networking.machineCIDR", until=4, single=True),
        ),
    ),
    Field(
        "cluster_networks",
        (Spelling("networking.clusterNetwork"), Spelling("networking.clusterNetworks", until=OLDEST)),
    ),
    Field(
        "service_networks",
        (Spelling("networking.serviceNetwork"), Spelling("networking.serviceCIDR", until=OLDEST, single=True)),
    ),
    _one("ovn_join_subnet", "networking.ovnKubernetesConfig.ipv4.internalJoinSubnet", 18),  # 1c01b067f4
    _one("cloud", f"{OPENSTACK}.cloud"),
    _one("region", f"{OPENSTACK}.region", until=6),
    _one("external_network", f"{OPENSTACK}.externalNetwork"),
    _one("external_dns", f"{OPENSTACK}.externalDNS", 4),  # #2132
    Field(
        "api_floating_ip",
        (Spelling(f"{OPENSTACK}.apiFloatingIP", 7), Spelling(f"{OPENSTACK}.lbFloatingIP", until=7)),  # #4244
    ),
    _one("ingress_floating_ip", f"{OPENSTACK}.ingressFloatingIP", 6),  # #3855
    Field(  # #3366, #5798
        "api_vips", (Spelling(f"{OPENSTACK}.apiVIPs", 12), Spelling(f"{OPENSTACK}.apiVIP", 5, 12, single=True))
    ),
    Field(
        "ingress_vips",
        (Spelling(f"{OPENSTACK}.ingressVIPs", 12), Spelling(f"{OPENSTACK}.ingressVIP", 5, 12, single=True)),
    ),
    *_gated("machines_network", f"{OPENSTACK}.controlPlanePort.network", 14, 15, REFERENCE),
    Field(  # #3398, #6797; GA 0d91813e2a
        "machines_subnets",
        (
            Spelling(f"{OPENSTACK}.controlPlanePort.fixedIPs", 15, form=FIXED_IPS),
            Spelling(f"{OPENSTACK}.controlPlanePort.fixedIPs", 14, 15, form=FIXED_IPS, gated=True),
            Spelling(f"{OPENSTACK}.machinesSubnet", 5, 15, form=ID, single=True),
        ),
    ),
    *_gated("load_balancer", f"{OPENSTACK}.loadBalancer.type", 13, 14),  # #6812; GA 0321c41943
    _one("cluster_os_image", f"{OPENSTACK}.clusterOSImage", 4),
    _one("cluster_os_image_properties", f"{OPENSTACK}.clusterOSImageProperties", 7),
    _one("trunks", f"{OPENSTACK}.trunkSupport", until=6, form=DIGIT),
    _one("octavia", f"{OPENSTACK}.octaviaSupport", until=6, form=DIGIT),
    Field(  # both are known before 4.7, but computeFlavor is required
        "machines.flavor",
        (Spelling(f"{OPENSTACK}.computeFlavor", until=7), Spelling(f"{OPENSTACK}.defaultMachinePlatform.type")),
    ),
    *_machines("machines", f"{OPENSTACK}.defaultMachinePlatform"),
    _one("publish", "publish", 3),
    _one("fips", "fips", 3),  # #2594, after publish
    _one("proxy.http", "proxy.httpProxy"),
    _one("proxy.https", "proxy.httpsProxy"),
    _one("proxy.exceptions", "proxy.noProxy", form=JOINED),
    Field(
        "image_mirrors",
        (
            Spelling("imageDigestSources", 14, form=MIRRORS),  # #6235
            Spelling("imageContentSources", until=14, form=MIRRORS),
        ),
    ),
    _one("capabilities.baseline", "capabilities.baselineCapabilitySet", 11),  # release notes of 4.11
    _one("capabilities.additional", "capabilities.additionalEnabledCapabilities", 11),
    _one("cpu_partitioning", "cpuPartitioningMode", 13),  # #6430
    _one("feature_set", "featureSet", 12),  # 8b942f2dc1
    _one("feature_gates", "featureGates", 14),  # validateCustomFeatureGates
    *_gated("os_image_stream", "osImageStream", 22, 23),
    _one("additional_trust_bundle", "additionalTrustBundle"),
    _one("additional_trust_bundle_policy", "additionalTrustBundlePolicy", 12),  # #6232
    _one("pull_secret", "pullSecret"),
    _one("ssh_key", "sshKey"),
)

OBJECT_META = (  # k8s.io/apimachinery pkg/apis/meta/v1, ObjectMeta; the name is in FIELDS
    *("annotations", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers"),
    *("generateName", "generation", "labels", "managedFields", "namespace", "ownerReferences", "resourceVersion"),
    *("selfLink", "uid"),
)

INNER: tuple[Field, ...] = (
    *(_one("", f"metadata.{name}") for name in OBJECT_META),
    _one("", "kind"),
    _one("", "networking.machineNetwork[].cidr"),
    *(_one("", f"networking.{name}[].cidr") for name in ("clusterNetwork", "clusterNetworks")),
    *(
        Field(
            "",
            (
                Spelling(f"networking.{name}[].hostPrefix"),
                Spelling(f"networking.{name}[].hostSubnetLength", until=OLDEST, form=REST_OF_32),
            ),
        )
        for name in ("clusterNetwork", "clusterNetworks")
    ),
    *(_one("", f"{OPENSTACK}.controlPlanePort.network.{name}") for name in ("id", "name")),
    *(_one("", f"{OPENSTACK}.controlPlanePort.fixedIPs[].subnet.{name}") for name in ("id", "name")),
    *(_one("", f"{sources}[].source") for sources in ("imageDigestSources", "imageContentSources")),
    *(_one("", f"{sources}[].mirrors") for sources in ("imageDigestSources", "imageContentSources")),
)
"""Further known fields: parts of values that are written as a whole, and fields that are never written."""
