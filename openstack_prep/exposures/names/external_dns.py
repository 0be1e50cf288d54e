"""ExternalDNS for Designate: the values of its Helm chart, and names as DNSEndpoint.

Sources: ExternalDNS' chart 1.21.1 (values.yaml, templates/deployment.yaml, CHANGELOG.md) and its CRD
(externaldns.k8s.io/v1alpha1); inovex/external-dns-openstack-webhook 2.3.0: cmd/webhook/main.go has one option,
--domain-filter; internal/designate/client/client.go lists zones whose whole name is the filter;
internal/designate/provider/provider.go reads A, TXT and CNAME alone, so that it would create AAAA records again and
again; clouds.yaml is its only source of credentials.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.exposures.names.model import ExposureNames, ExternalDns

IMAGE = "ghcr.io/inovex/external-dns-openstack-webhook"
VOLUME = "clouds"
RECORD_TYPES = ("A", "CNAME")


def values(settings: ExposureNames, external_dns: ExternalDns) -> str:
    """Return the values of the Helm chart external-dns, which hold no secret: the webhook reads one of Kubernetes."""
    zones = list(settings.zones)
    webhook = {
        "image": {"repository": IMAGE, "tag": external_dns.webhook_release},
        "args": [f"--domain-filter={zone}" for zone in zones],
        "env": [{"name": "OS_CLOUD", "value": external_dns.cloud}],
        "extraVolumeMounts": [{"name": VOLUME, "mountPath": "/etc/openstack", "readOnly": True}],
    }
    return dump(
        {
            "provider": {"name": "webhook", "webhook": webhook},
            "extraVolumes": [{"name": VOLUME, "secret": {"secretName": external_dns.secret}}],
            "sources": ["crd"],
            "domainFilters": zones,
            "managedRecordTypes": list(RECORD_TYPES),
            "policy": "sync",
            "registry": "txt",
            "txtOwnerId": external_dns.owner,
            # the record beside a wildcard would be a-*.apps, which is no name in DNS
            "extraArgs": ["--txt-wildcard-replacement=any"],
        }
    )


def endpoints(external_dns: ExternalDns, names: Mapping[str, Mapping[str, Sequence[str]]]) -> str:
    """Return a DNSEndpoint per exposure: its names, and the addresses of each."""
    documents = [
        {
            "apiVersion": "externaldns.k8s.io/v1alpha1",
            "kind": "DNSEndpoint",
            "metadata": {"name": exposure, "namespace": external_dns.namespace},
            "spec": {
                "endpoints": [
                    {"dnsName": name, "recordTTL": external_dns.ttl, "recordType": "A", "targets": list(targets)}
                    for name, targets in of_exposure.items()
                ]
            },
        }
        for exposure, of_exposure in names.items()
    ]
    return dump(*documents)
