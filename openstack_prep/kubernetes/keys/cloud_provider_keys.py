"""The keys of cloud_provider in RKE's cluster.yml.

Source: the types that RKE 1.7 decodes it into (rancher/rke, types/rke_types.go).
"""

from __future__ import annotations

from openstack_prep.kubernetes.keys.language import NUMBER, SECRET, TEXT, TRUTH, Each, Tree, words

OPENSTACK: Tree = {
    "global": {
        **words("auth-url username user-id tenant-id tenant-name trust-id domain-id domain-name region ca-file"),
        "password": SECRET,
    },
    "load_balancer": {
        **words("lb-version subnet-id floating-network-id lb-method lb-provider monitor-delay monitor-timeout"),
        **words("use-octavia create-monitor manage-security-groups", TRUTH),
        "monitor-max-retries": NUMBER,
    },
    "block_storage": {"bs-version": TEXT, **words("trust-device-path ignore-volume-az", TRUTH)},
    "route": words("router-id"),
    "metadata": {"search-order": TEXT, "request-timeout": NUMBER},
}

VSPHERE: Tree = {
    "global": {
        **words("user server port datacenter datacenters datastore working-dir vm-uuid vm-name"),
        "password": SECRET,
        "insecure-flag": TRUTH,
        "soap-roundtrip-count": NUMBER,
    },
    "virtual_center": Each({**words("user port datacenters"), "password": SECRET, "soap-roundtrip-count": NUMBER}),
    "network": words("public-network"),
    "disk": words("scsicontrollertype"),
    "workspace": words("server datacenter folder default-datastore resourcepool-path"),
}

AZURE: Tree = {
    **words(
        """
        cloud tenantId subscriptionId resourceGroup location vnetName vnetResourceGroup subnetName securityGroupName
        securityGroupResourceGroup routeTableName primaryAvailabilitySetName vmType primaryScaleSetName aadClientId
        aadClientCertPath userAssignedIdentityID loadBalancerSku tags
        """
    ),
    **words("aadClientSecret aadClientCertPassword", SECRET),
    **words("cloudProviderBackoff cloudProviderRateLimit useInstanceMetadata", TRUTH),
    **words("useManagedIdentityExtension excludeMasterFromStandardLB", TRUTH),
    **words("cloudProviderBackoffRetries cloudProviderBackoffExponent cloudProviderBackoffDuration", NUMBER),
    **words("cloudProviderBackoffJitter cloudProviderRateLimitQPS cloudProviderRateLimitBucket", NUMBER),
    "maximumLoadBalancerRuleCount": NUMBER,
}

AWS: Tree = {
    "global": {
        **words("zone vpc subnet-id routetable-id role-arn kubernetes-cluster-tag kubernetes-cluster-id"),
        "elb-security-group": TEXT,
        **words("disable-security-group-ingress disable-strict-zone-check", TRUTH),
    },
    "service_override": Each(words("service region url signing-region signing-method signing-name")),
}

CLOUD_PROVIDER: Tree = {
    "name": TEXT,
    "useInstanceMetadataHostname": TRUTH,
    "openstackCloudProvider": OPENSTACK,
    "vsphereCloudProvider": VSPHERE,
    "azureCloudProvider": AZURE,
    "awsCloudProvider": AWS,
    "harvesterCloudProvider": {"cloud_config": SECRET},
    "customCloudProvider": SECRET,
}
