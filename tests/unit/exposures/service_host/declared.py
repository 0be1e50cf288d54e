"""A services machine as KubeInit's documentation has it, and one with everything else."""

from __future__ import annotations

from datetime import date

from openstack_prep.exposures.endpoint import Exposed, ExposedPort, ExposureTarget, PlacedExposure
from openstack_prep.exposures.service_host import ExternalInterface, KubeInit, MachineGroup, ServiceHost

TODAY = date(2026, 11, 23)
EXTERNAL = ExternalInterface(nic="eno1", gateway="10.19.41.254", prefix_length=24)
OKD = ServiceHost(
    domain="okdcluster.kubeinit.local",
    network="10.0.0.0/24",
    address="10.0.0.100",
    external=EXTERNAL,
    masters=MachineGroup(count=3, first_address="10.0.0.1"),
    workers=MachineGroup(count=2, first_address="10.0.0.6", macs=("52:54:00:10:64:16", "52:54:00:33:75:35")),
    bootstrap=MachineGroup(count=1, first_address="10.0.0.200"),
    forwarders=("192.0.2.53",),
    inside=("172.16.0.0/24",),
    kubeinit=KubeInit(),
)
MACS = {
    "okd-master-01": "52:54:00:00:00:01",
    "okd-master-02": "52:54:00:00:00:02",
    "okd-master-03": "52:54:00:00:00:03",
    "okd-service-01": "52:54:00:00:00:10",
    "okd-bootstrap-01": "52:54:00:00:00:20",
}
API = PlacedExposure(
    exposure=Exposed(
        name="api",
        cluster="okd",
        target=ExposureTarget(host="okd-service-01"),
        ports=(ExposedPort(port=6443), ExposedPort(port=53, protocol="udp"), ExposedPort(port=53)),
        how="service-host",
    ),
    address="10.19.41.157",
    mac="52:54:00:6a:39:ad",
)
APPS = PlacedExposure(
    exposure=Exposed(
        name="apps",
        cluster="okd",
        target=ExposureTarget(service="openshift-ingress/router-default"),
        ports=(ExposedPort(port=80), ExposedPort(port=443), ExposedPort(port=8443, target=443)),
        how="service-host",
        names=("registry.okdcluster.kubeinit.local", "okdcluster.kubeinit.local", "shop.example.com"),
    ),
    address="10.19.41.157",
)
GAME = PlacedExposure(
    exposure=Exposed(
        name="game",
        cluster="plain",
        target=ExposureTarget(service="games/chess"),
        ports=(ExposedPort(port=5000, node_port=30500), ExposedPort(port=8080)),
        how="service-host",
        names=("chess.plain.example.com",),
    ),
    address="2001:db8:1::10",
    public_address="2001:db8:2::10",
)
PLAIN = ServiceHost(
    domain="plain.example.com",
    distribution="k8s",
    network="2001:db8::/64",
    address="2001:db8::100",
    mac="52:54:00:00:01:00",
    external=ExternalInterface(
        nic="enp3s0", bridge="br0", gateway="2001:db8:1::1", prefix_length=64, confirm_within=60
    ),
    masters=MachineGroup(count=1, first_address="2001:db8::1", macs=("52:54:00:00:02:00",)),
    zone_directory="/etc/bind/zones",
    dnssec_validation=False,
    ingress_health_port=None,
)
