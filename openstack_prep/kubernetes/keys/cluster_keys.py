"""Every key of RKE's cluster.yml.

Source: the types that RKE 1.7 decodes it into (rancher/rke, types/rke_types.go and the backup types).
Members without a YAML name of their own are read under their Go name in small letters (s3backupconfig,
tolerationseconds), but for update strategies and what belongs to the ingress, which RKE reads as JSON.
"""

from __future__ import annotations

from openstack_prep.kubernetes.keys.cloud_provider_keys import CLOUD_PROVIDER
from openstack_prep.kubernetes.keys.language import ANY, NUMBER, PRIVATE, REAL, SECRET, TEXT, TRUTH, Each, Tree, words

TAINT: Tree = {**words("key value effect"), "timeAdded": ANY}

NODE: dict[str, Tree] = {
    **words("nodeName address internal_address port user"),
    "role": [TEXT],
    **words("hostname_override docker_socket"),
    "ssh_agent_auth": TRUTH,
    "ssh_key": SECRET,
    **words("ssh_key_path ssh_cert ssh_cert_path"),
    "labels": Each(TEXT),
    "taints": [TAINT],
}

BASTION: Tree = {
    **words("address port user"),
    **words("ssh_agent_auth ignore_proxy_env_vars", TRUTH),
    "ssh_key": SECRET,
    **words("ssh_key_path ssh_cert ssh_cert_path"),
}

TOLERATIONS: Tree = [{**words("key operator value effect"), "tolerationseconds": NUMBER}]
UPDATE_STRATEGY: Tree = {"strategy": TEXT, "rollingUpdate": words("maxUnavailable maxSurge")}

# --- services -----------------------------------------------------------------------------

SERVICE: dict[str, Tree] = {
    "image": TEXT,
    **words("extra_args win_extra_args", Each(TEXT)),
    **words("extra_args_array win_extra_args_array", Each([TEXT])),
    **words("extra_binds extra_env win_extra_binds win_extra_env", [TEXT]),
}

BACKUP: Tree = {
    "enabled": TRUTH,
    **words("interval_hours retention timeout", NUMBER),
    "safe_timestamp": TRUTH,
    "s3backupconfig": {
        **words("access_key bucket_name region endpoint custom_ca folder"),
        "secret_key": SECRET,
    },
}

SERVICES: Tree = {
    "etcd": {
        **SERVICE,
        "external_urls": [TEXT],
        **words("ca_cert cert path retention creation"),
        "key": SECRET,
        **words("uid gid", NUMBER),
        "snapshot": TRUTH,
        "backup_config": BACKUP,
    },
    "kube-api": {
        **words("service_cluster_ip_range service_node_port_range pod_security_configuration"),
        "always_pull_images": TRUTH,
        "secrets_encryption_config": {"enabled": TRUTH, "custom_config": PRIVATE},
        "audit_log": {
            "enabled": TRUTH,
            "configuration": {**words("max_age max_backup max_size", NUMBER), **words("path format"), "policy": ANY},
        },
        "admission_configuration": ANY,
        "event_rate_limit": {"enabled": TRUTH, "configuration": ANY},
        **SERVICE,
    },
    "kube-controller": {**words("cluster_cidr service_cluster_ip_range"), **SERVICE},
    "scheduler": SERVICE,
    "kubelet": {
        **words("cluster_domain cluster_dns_server infra_container_image"),
        **words("fail_swap_on generate_serving_certificate", TRUTH),
        **SERVICE,
    },
    "kubeproxy": SERVICE,
}

# --- network, add-ons -----------------------------------------------------------------------

ACI: Tree = {
    **words("token apic_user_key kafka_client_key", SECRET),
    **words("apic_hosts l3out_external_networks kafka_brokers", [TEXT]),
    **words("service_graph_endpoint_add_services node_snat_redirect_exclude", [Each(TEXT)]),
    **words(
        """
        system_id apic_user_name apic_user_crt apic_refresh_time vmm_domain vmm_controller encap_type node_subnet
        mcast_range_start mcast_range_end aep vrf_name vrf_tenant l3out extern_dynamic extern_static node_svc_subnet
        kube_api_vlan service_vlan infra_vlan tenant ovs_memory_limit ovs_memory_request image_pull_policy
        image_pull_secret service_monitor_interval pbr_tracking_non_snat install_istio istio_profile drop_log_enable
        controller_log_level host_agent_log_level opflex_log_level use_aci_cni_priority_class no_priority_class
        max_nodes_svc_graph snat_contract_scope pod_subnet_chunk_size enable_endpoint_slice snat_namespace
        ep_registry opflex_mode snat_port_range_start snat_port_range_end snat_ports_per_node opflex_client_ssl
        use_privileged_container use_host_netns_volume use_opflex_server_volume subnet_domain_name kafka_client_crt
        capic use_aci_anywhere_crd overlay_vrf_name gbp_pod_subnet run_gbp_container run_opflex_server_container
        opflex_server_port duration_wait_for_network disable_wait_for_network apic_subscription_delay
        apic_refresh_ticker_adjust disable_periodic_snat_global_info_sync opflex_device_delete_timeout mtu_head_room
        node_pod_if_enable sriov_enable multus_disable use_cluster_role no_wait_for_service_ep_readiness
        add_external_subnets_to_rdconfig service_graph_endpoint_add_delay hpp_optimization
        sleep_time_snat_global_info_sync opflex_agent_opflex_asyncjson_enabled opflex_agent_ovs_asyncjson_enabled
        opflex_agent_policy_retry_delay_timer aci_multipod opflex_device_reconnect_wait_timeout aci_multipod_ubuntu
        dhcp_renew_max_retry_count dhcp_delay use_system_node_priority_class aci_containers_controller_memory_request
        aci_containers_controller_memory_limit aci_containers_host_memory_request aci_containers_host_memory_limit
        mcast_daemon_memory_request mcast_daemon_memory_limit opflex_agent_memory_request opflex_agent_memory_limit
        aci_containers_memory_request aci_containers_memory_limit opflex_agent_statistics
        add_external_contract_to_default_epg enable_opflex_agent_reconnect opflex_openssl_compat toleration_seconds
        disable_hpp_rendering apic_connection_retry_limit taint_not_ready_node drop_log_disable_events
        drop_log_opflex_redirect_drop_logs opflex_startup_enabled opflex_startup_policy_duration
        opflex_startup_resolve_aft_conn opflex_switch_sync_delay opflex_switch_sync_dynamic
        unknown_mac_unicast_action enable_hpp_direct opflex_agent_reset_wait_delay proactive_conf
        epg_resolve_prioritize force_ep_undeclares enable_apic_request_retry_delay apic_request_retry_delay
        """
    ),
}

NETWORK: Tree = {
    "plugin": TEXT,
    "options": Each(TEXT),
    "mtu": NUMBER,
    "enable_br_netfilter": TRUTH,
    "calico_network_provider": words("cloudprovider"),
    "canal_network_provider": words("iface blackhole_route"),
    "flannel_network_provider": words("iface"),
    "weave_network_provider": {"password": SECRET},
    "aci_network_provider": ACI,
    "node_selector": Each(TEXT),
    "update_strategy": UPDATE_STRATEGY,
    "tolerations": TOLERATIONS,
}

INGRESS: Tree = {
    **words("provider network_mode dns_policy"),
    **words("options node_selector extra_args", Each(TEXT)),
    **words("http_port https_port", NUMBER),
    **words("extra_envs extra_volumes extra_volume_mounts", [ANY]),
    **words("default_backend default_ingress_class", TRUTH),
    **words("default_http_backend_priority_class_name nginx_ingress_controller_priority_class_name"),
    "update_strategy": UPDATE_STRATEGY,
    "tolerations": TOLERATIONS,
}

DNS: Tree = {
    "provider": TEXT,
    **words("options node_selector", Each(TEXT)),
    **words("upstreamnameservers reversecidrs", [TEXT]),
    "stubdomains": Each([TEXT]),
    "nodelocal": {
        **words("ip_address node_local_dns_priority_class_name"),
        "node_selector": Each(TEXT),
        "update_strategy": UPDATE_STRATEGY,
    },
    "update_strategy": UPDATE_STRATEGY,
    "linear_autoscaler_params": {
        **words("cores_per_replica nodes_per_replica", REAL),
        **words("min max", NUMBER),
        "prevent_single_point_failure": TRUTH,
    },
    "tolerations": TOLERATIONS,
}

MONITORING: Tree = {
    **words("provider metrics_server_priority_class_name"),
    **words("options node_selector", Each(TEXT)),
    "replicas": NUMBER,
    "update_strategy": UPDATE_STRATEGY,
    "tolerations": TOLERATIONS,
}

SYSTEM_IMAGES: Tree = words(
    """
    etcd alpine nginx_proxy cert_downloader kubernetes_services_sidecar kubedns dnsmasq kubedns_sidecar
    kubedns_autoscaler coredns coredns_autoscaler nodelocal kubernetes flannel flannel_cni calico_node calico_cni
    calico_controllers calico_ctl calico_flexvol canal_node canal_cni canal_controllers canal_flannel canal_flexvol
    weave_node weave_cni pod_infra_container ingress ingress_backend ingress_webhook metrics_server
    windows_pod_infra_container aci_cni_deploy_container aci_host_container aci_opflex_container
    aci_mcast_container aci_ovs_container aci_controller_container aci_gbp_server_container
    aci_opflex_server_container
    """
)

# --- the whole ------------------------------------------------------------------------------

REGISTRY: Tree = {
    **words("url user"),
    "password": SECRET,
    "is_default": TRUTH,
    "ecr_credential_plugin": {
        "aws_access_key_id": TEXT,
        **words("aws_secret_access_key aws_session_token", SECRET),
    },
}

UPGRADE_STRATEGY: Tree = {
    **words("max_unavailable_worker max_unavailable_controlplane"),
    "drain": TRUTH,
    "node_drain_input": {
        **words("force ignore_daemonsets delete_local_data", TRUTH),
        **words("grace_period timeout", NUMBER),
    },
}

CLUSTER: dict[str, Tree] = {
    **words("cluster_name kubernetes_version"),
    "nodes": [NODE],
    **words("ssh_key_path ssh_cert_path"),
    "ssh_agent_auth": TRUTH,
    "bastion_host": BASTION,
    "private_registries": [REGISTRY],
    **words("enable_cri_dockerd ignore_docker_version", TRUTH),
    **words("cri_dockerd_stream_server_address cri_dockerd_stream_server_port"),
    "network": NETWORK,
    "services": SERVICES,
    "authentication": {
        "strategy": TEXT,
        "sans": [TEXT],
        "webhook": {"config_file": SECRET, "cache_timeout": TEXT},
    },
    "authorization": {"mode": TEXT, "options": Each(TEXT)},
    "cloud_provider": CLOUD_PROVIDER,
    "ingress": INGRESS,
    "dns": DNS,
    "monitoring": MONITORING,
    "addon_job_timeout": NUMBER,
    "addons": SECRET,  # manifests, Secrets among them
    "addons_include": [TEXT],
    "upgrade_strategy": UPGRADE_STRATEGY,
    "restore": {"restore": TRUTH, "snapshot_name": TEXT},
    "rotate_certificates": {"cacertificates": TRUTH, "services": [TEXT]},
    "rotate_encryption_key": TRUTH,
    **words("prefix_path win_prefix_path"),
    "system_images": SYSTEM_IMAGES,
}
