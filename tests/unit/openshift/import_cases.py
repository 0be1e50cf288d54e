"""Install-configs in the shapes that people have on OpenStack, for 4.2 to 5.0: what they have beside the common part.

Each shape is modelled after what public repositories have at its release, and written anew.
"""

from __future__ import annotations

from tests.unit.openshift.install_config.parsable import CERTIFICATE, ECDSA

HEAD = """\
apiVersion: v1
baseDomain: example.com
metadata: {name: ocp}
"""
TAIL = f"""\
pullSecret: '{{"auths": {{"quay.io": {{"auth": "Zm9vOmJhcg=="}}}}}}'
sshKey: |
  {ECDSA}
"""
OLD_PLATFORM = "cloud: lab, region: one, computeFlavor: m1.xlarge, externalNetwork: public, lbFloatingIP: 192.0.2.9"
OWN_ID = "8f1c2d3e-4b5a-4c6d-9e7f-001122334455"
BUNDLE = "additionalTrustBundle: |\n" + "".join(f"  {line}\n" for line in CERTIFICATE.splitlines())
SHAPES: dict[str, tuple[str, str]] = {
    "oldest": (
        "4.2",
        f"""\
metadata: {{name: ocp, creationTimestamp: null}}
compute: [{{hyperthreading: Enabled, name: worker, platform: {{}}, replicas: 3}}]
controlPlane: {{hyperthreading: Enabled, name: master, platform: {{}}, replicas: 3}}
networking:
  clusterNetwork: [{{cidr: 10.128.0.0/14, hostPrefix: 23}}]
  machineCIDR: 10.0.0.0/16
  networkType: OpenShiftSDN
  serviceNetwork: [172.30.0.0/16]
platform: {{openstack: {{{OLD_PLATFORM}, trunkSupport: false, octaviaSupport: "0"}}}}
""",
    ),
    "older names": (
        "4.3",
        f"""\
apiVersion: v1beta4
networking:
  clusterNetworks: [{{cidr: 10.132.0.0/14, hostSubnetLength: 8}}]
  serviceCIDR: 172.31.0.0/16
  type: OpenShiftSDN
platform: {{openstack: {{{OLD_PLATFORM}}}}}
""",
    ),
    "Kuryr with Octavia": (
        "4.4",
        f"""\
compute: [{{name: worker, platform: {{openstack: {{type: big, rootVolume: {{size: 30, type: performance}}}}}}}}]
networking: {{networkType: Kuryr, serviceNetwork: [172.30.0.0/16], machineNetwork: [{{cidr: 10.196.0.0/16}}]}}
platform: {{openstack: {{{OLD_PLATFORM}, octaviaSupport: "1", trunkSupport: "1", externalDNS: [192.0.2.53]}}}}
""",
    ),
    "subnet of the user": (
        "4.5",
        f"""\
networking: {{machineNetwork: [{{cidr: 192.168.25.0/24}}]}}
platform:
  openstack: {{{OLD_PLATFORM}, machinesSubnet: {OWN_ID}, apiVIP: 192.168.25.5, ingressVIP: 192.168.25.7}}
""",
    ),
    "additional networks": (
        "4.6",
        f"""\
compute:
- name: worker
  replicas: 2
  platform:
    openstack: {{type: big, additionalNetworkIDs: [{OWN_ID}], additionalSecurityGroupIDs: [{OWN_ID}], zones: [az1]}}
controlPlane: {{name: master, replicas: 3, platform: {{openstack: {{type: bigger, zones: [az1, az2, az3]}}}}}}
platform:
  openstack: {{{OLD_PLATFORM}, ingressFloatingIP: 192.0.2.10, externalDNS: [192.0.2.53, 192.0.2.54]}}
""",
    ),
    "image to upload": (
        "4.7",
        """\
platform:
  openstack:
    cloud: lab
    externalNetwork: public
    apiFloatingIP: 192.0.2.9
    defaultMachinePlatform: {type: m1.xlarge}
    clusterOSImage: http://mirror.example.com/rhcos.qcow2.gz?sha256=f79b
    clusterOSImageProperties: {hw_scsi_model: virtio-scsi, hw_disk_bus: scsi}
""",
    ),
    "without an external network": (
        "4.8",
        f"""\
compute: [{{name: worker, replicas: 0, platform: {{}}}}]
platform: {{openstack: {{cloud: lab, computeFlavor: big, machinesSubnet: {OWN_ID}, apiVIP: 10.0.0.5}}}}
""",
    ),
    "zones and volumes": (
        "4.9",
        """\
compute:
- name: worker
  platform:
    openstack: {type: big, zones: [a, b], rootVolume: {size: 100, type: tripleo, zones: [a, b]}}
controlPlane: {name: master, platform: {openstack: {type: big, serverGroupPolicy: anti-affinity}}}
platform: {openstack: {cloud: lab, externalNetwork: public}}
""",
    ),
    "proxy and bundle": (
        "4.10",
        f"""\
proxy: {{httpProxy: "http://proxy.example.com:3128", httpsProxy: "http://proxy.example.com:3128", noProxy: ".a.b,c.d"}}
{BUNDLE}platform: {{openstack: {{cloud: lab, externalNetwork: public, defaultMachinePlatform: {{type: big}}}}}}
""",
    ),
    "mirror": (
        "4.11",
        f"""\
imageContentSources:
- {{mirrors: ["mirror.example.com:5000/ocp4/openshift4"], source: quay.io/openshift-release-dev/ocp-release}}
- {{mirrors: ["mirror.example.com:5000/ocp4/openshift4"], source: quay.io/openshift-release-dev/ocp-v4.0-art-dev}}
{BUNDLE}capabilities: {{baselineCapabilitySet: None, additionalEnabledCapabilities: [marketplace]}}
platform: {{openstack: {{cloud: lab, externalNetwork: public, defaultMachinePlatform: {{type: big}}}}}}
""",
    ),
    "fips": (
        "4.12",
        """\
fips: yes
publish: External
platform:
  openstack: {cloud: lab, externalNetwork: public, apiVIPs: [10.0.0.5], ingressVIPs: [10.0.0.7],
    clusterOSImage: rhcos-4.12, defaultMachinePlatform: {type: big}}
""",
    ),
    "preview": (
        "4.14",
        """\
featureSet: TechPreviewNoUpgrade
networking: {machineNetwork: [{cidr: 192.168.25.0/24}]}
platform:
  openstack:
    cloud: lab
    defaultMachinePlatform: {type: big}
    controlPlanePort: {network: {name: machines}, fixedIPs: [{subnet: {name: machines-v4}}]}
""",
    ),
    "balancer of the user": (
        "4.16",
        """\
networking: {machineNetwork: [{cidr: 192.168.25.0/24}]}
platform:
  openstack:
    cloud: lab
    defaultMachinePlatform: {type: big}
    loadBalancer: {type: UserManaged}
    apiVIPs: [192.168.25.10]
    ingressVIPs: [192.168.25.10]
    controlPlanePort:
      network: {id: 8f1c2d3e-4b5a-4c6d-9e7f-001122334455, name: machines}
      fixedIPs: [{subnet: {id: 8f1c2d3e-4b5a-4c6d-9e7f-001122334466, name: machines-v4}}]
""",
    ),
    "two stacks": (
        "4.17",
        """\
networking:
  networkType: OVNKubernetes
  machineNetwork: [{cidr: 192.168.25.0/24}, {cidr: "fd2e:6f44:5dd8:c956::/64"}]
  clusterNetwork: [{cidr: 10.128.0.0/14, hostPrefix: 23}, {cidr: "fd01::/48", hostPrefix: 64}]
  serviceNetwork: [172.30.0.0/16, "fd02::/112"]
platform:
  openstack:
    cloud: lab
    externalNetwork: public
    defaultMachinePlatform: {type: big}
    apiVIPs: [192.168.25.5, "fd2e:6f44:5dd8:c956::5"]
    ingressVIPs: [192.168.25.7, "fd2e:6f44:5dd8:c956::7"]
    controlPlanePort: {network: {name: machines}, fixedIPs: [{subnet: {name: v4}}, {subnet: {name: v6}}]}
""",
    ),
    "IPv6 alone": (
        "4.18",
        """\
networking:
  machineNetwork: [{cidr: "fd2e:6f44:5dd8:c956::/64"}]
  clusterNetwork: [{cidr: "fd01::/48", hostPrefix: 64}]
  serviceNetwork: ["fd02::/112"]
platform:
  openstack:
    cloud: lab
    defaultMachinePlatform: {type: big}
    apiVIPs: ["fd2e:6f44:5dd8:c956::5"]
    ingressVIPs: ["fd2e:6f44:5dd8:c956::7"]
    controlPlanePort: {fixedIPs: [{subnet: {name: v6}}]}
""",
    ),
    "several types of volumes": (
        "4.20",
        """\
compute: [{architecture: amd64, hyperthreading: Enabled, name: worker, replicas: 3, platform: {}}]
controlPlane: {architecture: amd64, hyperthreading: Enabled, name: master, replicas: 3, platform: {}}
imageDigestSources: [{source: quay.io/openshift-release-dev/ocp-release, mirrors: [mirror.example.com/ocp]}]
cpuPartitioningMode: AllNodes
platform:
  openstack:
    cloud: lab
    externalNetwork: public
    defaultMachinePlatform:
      type: big
      zones: [a, b, c]
      rootVolume: {size: 120, types: [x, y, z], zones: [a, b, c]}
""",
    ),
    "newest": (
        "5.0",
        """\
featureSet: CustomNoUpgrade
featureGates: ["OSStreams=true"]
osImageStream: rhel-9
additionalTrustBundlePolicy: Proxyonly
networking: {ovnKubernetesConfig: {ipv4: {internalJoinSubnet: 100.68.0.0/16}}}
platform: {openstack: {cloud: lab, externalNetwork: public, defaultMachinePlatform: {type: "big ${x}"}}}
""",
    ),
}
"""By what is special: the release, and the YAML of the middle part."""


def text_of(name: str) -> str:
    """Return the whole file of a shape; its keys replace those of the common part."""
    middle = SHAPES[name][1]
    named = {line.partition(":")[0] for line in middle.splitlines()}
    head = "".join(line for line in HEAD.splitlines(keepends=True) if line.partition(":")[0] not in named)
    return head + middle + TAIL
