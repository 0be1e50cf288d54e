"""Releases of OpenShift, and the rules of the installer that come and go with them: the table for the next release.

A release is its minor number: 18 is OpenShift 4.18; 4.23 and 5.0, which follow 4.22, are 23.  ``fields`` has the names
of the fields.  Source of each boundary: the OpenShift installer at its release branches 4.6 to 4.19 and at its main
branch of 2025-08 (4.20), 2026-01 (4.21), 2026-05 (4.22) and 2026-08 (5.x); the file, and the commit or pull request,
stand beside the rule.  IC is pkg/types/validation/installconfig.go, VALIDATE pkg/validate/validate.go, OS
pkg/types/openstack/validation, CLOUD pkg/asset/installconfig/openstack/validation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from openstack_prep.base.fields import GO_BOOLEANS
from openstack_prep.base.invalid import InvalidValue

OLDEST, NEWEST = 2, 24
NEVER = 1000
OKD = "okd"  # in the name of each release of it
FIRST_OF_5 = 23  # 5.0 and 4.23 are one code with two names (openshift/hypershift support/supportedversion)


def minor(release: str) -> int:
    """Return 18 for "4.18", "4.18.7" and "4.18.0-okd", 23 for "4.23" and "5.0"; raises InvalidValue.

    Releases after NEWEST follow the rules of NEWEST: a newer installer is no reason to refuse a spec.
    """
    found = re.fullmatch(r"([45])\.(\d{1,3})(\.[0-9A-Za-z.+-]+)?", release)
    if not found:
        raise InvalidValue("is not a release of OpenShift", f'write one such as "{name(NEWEST - 4)}", in quotes')
    number = int(found[2]) + (FIRST_OF_5 if found[1] == "5" else 0)
    if number < OLDEST or (found[1] == "4" and number > FIRST_OF_5):
        raise InvalidValue("is not a supported release", f"supported are 4.{OLDEST} to 4.{FIRST_OF_5}, 5.0 and later")
    return number


def name(number: int) -> str:
    """Return "4.18" for 18, "5.0" for 23."""
    return f"4.{number}" if number < FIRST_OF_5 else f"5.{number - FIRST_OF_5}"


def short_name(release: str) -> str:
    """Return "4.18" for "4.18.7", and "4.18.0-okd" for a release of OKD; raises InvalidValue."""
    number = minor(release)
    short = f"4.{number}" if release.startswith("4.") else name(number)
    return f"{short}.0-okd" if OKD in release else short


def is_same(one: str, other: str) -> bool:
    """Whether two names are one release, such as "4.23" and "5.0"."""
    try:
        return minor(one) == minor(other)
    except InvalidValue:
        return one == other


@dataclass(frozen=True)
class Span:
    """The releases in which a rule holds: from ``since`` on, before ``until``."""

    since: int = OLDEST
    until: int = NEVER

    def __contains__(self, release: int) -> bool:
        return self.since <= release < self.until


def enabled_gates(gates: Iterable[str]) -> frozenset[str]:
    """Return the names in featureGates that are switched on, as Go's ParseBool reads them."""
    pairs = (gate.partition("=") for gate in gates)
    return frozenset(name for name, _, value in pairs if GO_BOOLEANS.get(value))


# --- names, files and keys --------------------------------------------------------------------------------

SHORT_NAMES = Span(until=12)  # at most 14 characters (3b3f19f4d2, #6309)
FIPS_HOSTS = Span(15)  # of a FIPS host: first a warning (9b5b235e5f), refused in 4.16 (b261deb2ae; pkg/hostcrypt)
FIPS_KEYS = Span(9)  # RSA and ECDSA only (0db0e1f5f0; IC validateFIPSconfig)
EVERY_SSH_KEY = Span(20)  # each line is a key, and none a comment (1795f39ea2); before, one key suffices
REGISTRIES_ALONE = Span(10)  # a mirror may be a host without a path (dc57d8ca84, 550364c604)
IPV6_WITHOUT_PROXY = Span(13)  # IPv6 addresses in noProxy (f7f778a70a)
NO_BLANKS = Span(7)  # in noProxy (IC validateProxy)
PROXIES_OUTSIDE = Span(8)  # a proxy is not in a network of pods or services (4515f331d6)

# --- networks ---------------------------------------------------------------------------------------------

OVN_SINCE = 12  # the default network type (#6014)
NETWORK_TYPES_GONE = {"openshiftsdn": 15, "kuryr": 15}  # refused (6469f94a5c, c781171412); in any case
SERVICE_LENGTHS = Span(9)  # at least /12, in IPv6 at least /108 (ac4f82b1db; VALIDATE ServiceSubnetCIDR)
OVN_SUBNETS = Span(19)  # no network overlaps OVN-Kubernetes' own (3aace091ca; in 4.19, not in 4.18)
OVN_OWN = (  # VALIDATE OVNIPv4JoinSubnet ...; the first can be moved by ovnKubernetesConfig
    "100.64.0.0/16",
    "100.88.0.0/16",
    "169.254.0.0/17",
    "fd98::/64",
    "fd97::/64",
    "fd69::/112",
)
ONE_HOST_PREFIX = Span(19)  # the same for all IPv4 networks of pods (508b66cd32)
TWO_STACKS = Span(15)  # two subnets and subnets by name take controlPlanePort (#6797; GA 0d91813e2a)
IPV6_FIRST = Span(15)  # dual-stack networks may begin with IPv6 (2748047e75)
ONE_ORDER = Span(20)  # networks and virtual addresses begin with the same family (e5e6a677c5)
IPV6_ALONE = Span(18)  # one IPv6 subnet and none of IPv4 (6bc63c8e4e, #8925; CLOUD platform.go)
IPV6_STAYS_INSIDE = Span(18)  # single-stack IPv6 has no external network (91f709166b; CLOUD platform.go)

OVN_CONFIG = Span(18)  # ovnKubernetesConfig is for OVN-Kubernetes alone (1c01b067f4; IC validateOVNKubernetesConfig)

# --- virtual addresses ------------------------------------------------------------------------------------

VIPS_IN_ANY_NETWORK = Span(12)  # before, only in the first machine network (OS platform.go validateVIP; 0d5ece990c)
VIPS_ELSEWHERE = Span(15)  # with a balancer of one's own: equal, or outside the machine networks (e2eb8473c7)
VIPS_WITH_BALANCER = Span(18)  # own balancer: no default addresses (ae32f27235; in 4.18 since 2025-10, e3d8c21eff)

# --- machines ---------------------------------------------------------------------------------------------

VOLUME_ZONES = Span(14)  # zones and a root volume need zones of volumes (f31a29b738; OS machinepool.go)
DISKS = Span(20)  # diskSetup (types/validation/machinepools.go validateDiskSetup)
SOURCE_POLICIES = Span(21)  # of imageDigestSources (fb1c669263; IC validateImageDigestSources)
ARM = Span(9)  # architecture arm64 (ec42fc1c0a, #4870; types/validation/machinepools.go)
GROUP_MEMBERS_CHECKED = Span(19)  # masters and machine sets (e7187d0c0d; pkg/asset/quota/openstack)

# --- signatures -------------------------------------------------------------------------------------------

SIGNED_PREVIEW = Span(17)  # the policy "openshift" wants signed release images, in previews (openshift-docs #81997)
SIGNED = Span(21)  # in all clusters (openshift-docs #105178, #102375; openshift/cluster-update-keys #89)
SIGNED_AT_BOOT = Span(22)  # from the first boot of each machine on (openshift-docs #118944)

# --- features ---------------------------------------------------------------------------------------------

PREVIEWS = ("TechPreviewNoUpgrade", "DevPreviewNoUpgrade")  # enable what is gated (IC validateFeatureSet)
CUSTOM = "CustomNoUpgrade"  # enables the gates that featureGates names (IC ValidateFeatureSet)
ALWAYS_EXTERNAL = Span(8)  # publish is not Internal (451598baeb)
FEATURE_SETS = {  # openshift/api config/v1 FeatureSets, as each release vendors it
    "TechPreviewNoUpgrade": Span(12),
    "CustomNoUpgrade": Span(12),
    "LatencySensitive": Span(12, 16),
    "DevPreviewNoUpgrade": Span(16),
    "OKD": Span(23),  # of OKD alone (IC ValidateFeatureSet)
}
CAPABILITIES = {  # openshift/api config/v1 ClusterVersionCapabilitySets: the first set that contains each
    "baremetal": 11,
    "marketplace": 11,
    "openshift-samples": 11,
    "Console": 12,
    "CSISnapshot": 12,
    "Insights": 12,
    "Storage": 12,
    "NodeTuning": 13,
    "MachineAPI": 14,
    "Build": 14,
    "DeploymentConfig": 14,
    "ImageRegistry": 14,
    "CloudCredential": 15,
    "OperatorLifecycleManager": 15,
    "CloudControllerManager": 16,
    "Ingress": 16,
    "OperatorLifecycleManagerV1": 18,
    "ClusterAPI": 23,
    "CompatibilityRequirements": 23,
}
IN_ALL_SETS = ("MachineAPI",)  # from its first release on, of older sets as well
LAST_SET = 18  # sets end at v4.18; 4.17 has v4.17 since 4.17.4 (OCPBUGS-41642)
MANDATORY = {"CloudCredential": 15, "CloudControllerManager": 16, "Ingress": 16}  # 02fbbd4e9e, 2dc1ef8720, f40285a4e7
MARKETPLACE_NEEDS = "OperatorLifecycleManager"
MARKETPLACE = Span(15)  # with baseline None (36e0844d21)
MARKETPLACE_OF_SETS = Span(17)  # with any (59a53c7ff0)
BAREMETAL_NEEDS_MACHINES = Span(14, 17)  # with baseline None: baremetal needs MachineAPI

NOT_ON_OPENSTACK = {  # fields that a release knows, and refuses on OpenStack (IC)
    "arbiter": Span(),
    "controlPlane.fencing": Span(),
    "compute.fencing": Span(),
    "credentialsMode": Span(until=21),  # Passthrough since 4.21 (6c83f9f3ef)
    "networking.clusterNetworkMTU": Span(),
    "operatorPublishingStrategy": Span(),
}
WITHOUT_CLOUD_ALSO = ("arbiter", "controlPlane.fencing")
"""Fields that the platforms none and external accept (IC: validateArbiter, validateFencingForPlatform)."""
MANAGEMENT = Span(22)  # machines by Cluster API, which OpenStack does not support (IC validateMachineManagement)


STREAM_GATE = Span(22)  # previews whose gate featureGates can open; those of 4.13 and 4.14 need the feature set


def opens_previews(release: int, feature_set: object, gates: Iterable[str]) -> bool:
    """Whether a feature set, or a gate that it names, opens the previews of a release."""
    if feature_set == CUSTOM:
        return release in STREAM_GATE and GATES["osImageStream"].name in enabled_gates(gates)
    return feature_set in PREVIEWS


@dataclass(frozen=True)
class Gate:
    """A feature gate of a field: the releases that check it, those that enable it, and the values that need it."""

    name: str
    checked: Span
    enabled: Span = Span(NEVER)
    values: tuple[str, ...] = ()


GATES = {  # pkg/types/validation/featuregates.go, OS featuregates.go; openshift/api features
    "controlPlane.diskSetup": Gate("MultiDiskSetup", Span(20)),
    "compute.diskSetup": Gate("MultiDiskSetup", Span(20)),
    "platform.openstack.dnsRecordsType": Gate("OnPremDNSRecords", Span(21), values=("External",)),
    "osImageStream": Gate("OSStreams", Span(23), enabled=Span(23)),  # for all streams but the default
    "pki": Gate("ConfigurablePKI", Span(23)),
}


def is_enabled(gate: Gate, release: int, feature_set: object, gates: Iterable[str]) -> bool:
    """Whether a feature set, one of its gates, or the release alone enables a gate.

    Source: pkg/types/installconfig.go, EnabledFeatureGates.
    """
    if feature_set in PREVIEWS:
        return True
    named = enabled_gates(gates) if feature_set == CUSTOM else frozenset()
    return gate.name in named or (not feature_set and release in gate.enabled)


NEEDED_IN = {  # what a section needs if it is there (IC validateProxy; OS platform.go, machinepool.go)
    "capabilities": (("baselineCapabilitySet", "additionalEnabledCapabilities"), Span(11)),
    "proxy": (("httpProxy", "httpsProxy", "noProxy"), Span()),
    "platform.openstack.loadBalancer": (("type",), Span(13)),
    "platform.openstack.controlPlanePort": (("fixedIPs",), Span(14)),  # refused since 4.17, fails before (d8f4b7e9db)
    **{
        f"{path}.rootVolume": (("type", "types"), Span(14))
        for path in (
            "controlPlane.platform.openstack",
            "compute.platform.openstack",
            "platform.openstack.defaultMachinePlatform",
        )
    },
}

# --- images -----------------------------------------------------------------------------------------------

STREAMS = ("rhel-9", "rhel-10")  # osImageStream (pkg/types/installconfig.go, OSImageStreamValues)
OKD_STREAMS = ("centos-10",)  # the same, built for OKD (#10730)


def streams(release: str) -> tuple[str, ...]:
    """Return the streams of the operating system that an installer knows, by the name of its release."""
    return OKD_STREAMS if OKD in release else STREAMS


def default_stream(release: str) -> str:
    """Return the stream that an installer takes by default, since 4.22 (pkg/rhcos/stream.go)."""
    return streams(release)[0 if release.startswith("4.") else -1]
