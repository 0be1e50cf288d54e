"""The sections of a spec for what OpenStack itself has, and the files that lead to it."""

from __future__ import annotations

from openstack_prep.extensions import Extension, FileForm, Scan, Section

_HERE = "openstack_prep.resources"
_OWN = f"{_HERE}.lists.ownership"
_CASCADES = f"{_HERE}.cascades"

EXTENSION = Extension(
    name="openstack",
    sections=(
        Section(
            "project",
            f"{_HERE}.identity.project:Project",
            "The project; default: the project that the cloud entry is scoped to.",
            many=False,
        ),
        Section(
            "users",
            f"{_HERE}.identity.user:User",
            "Users; the first with a password and a role in the project does the project's own work.",
        ),
        Section("role_assignments", f"{_HERE}.identity.role_assignment:RoleAssignment", "Role assignments."),
        Section("quota", f"{_HERE}.compute.quota:Quota", "Quotas of the project.", many=False),
        Section("flavors", f"{_HERE}.compute.flavor:Flavor", "Sizes of servers."),
        Section("images", f"{_HERE}.image.image:Image", "Images to upload."),
        Section("keypairs", f"{_HERE}.compute.keypair:Keypair", "SSH public keys."),
        Section("networks", f"{_HERE}.network.network:Network", "Networks."),
        Section("subnets", f"{_HERE}.network.subnet:Subnet", "Subnets."),
        Section("routers", f"{_HERE}.network.router:Router", "Routers."),
        Section("security_groups", f"{_HERE}.network.security_group:SecurityGroup", "Security groups and their rules."),
        Section("ports", f"{_HERE}.network.declared_port:Port", "Ports, such as those that reserve virtual addresses."),
        Section("server_groups", f"{_HERE}.compute.server_group:ServerGroup", "Server groups."),
        Section("floating_ips", f"{_HERE}.addresses.floating_ip:FloatingIP", "Floating IPs."),
        Section(
            "floating_ip_attachments",
            f"{_HERE}.addresses.floating_ip_attachment:FloatingIPAttachment",
            "Floating IPs on existing ports.",
        ),
        Section(
            "address_pools",
            f"{_HERE}.addresses.address_pool:AddressPool",
            "Addresses that are reserved for load balancers of clusters.",
        ),
        Section("recordsets", f"{_HERE}.dns.recordset:Recordset", "DNS records in zones of Designate."),
        Section(
            "address_pairs",
            f"{_HERE}.addresses.address_pairs:AddressPairs",
            "Addresses that ports may use besides their own.",
        ),
        Section("stacks", f"{_HERE}.orchestration.stack:Stack", "Heat stacks."),
        Section(
            "object_store",
            f"{_HERE}.storage.object_store:ObjectStore",
            "The project's account in the object store.",
            many=False,
        ),
        Section(
            "application_credentials",
            f"{_HERE}.credentials.application_credential:ApplicationCredential",
            "Application credentials, each with the clouds.yaml entry that stores its secret.",
        ),
        Section(
            "clouds_yaml",
            f"{_HERE}.files.clouds_entry:CloudsEntry",
            "Entries to write to clouds.yaml files.",
            in_files=True,
        ),
        Section(
            "env_file",
            f"{_HERE}.files.env_file:EnvFile",
            "A file of shell variables to write.",
            many=False,
            in_files=True,
        ),
    ),
    acronyms=("IP",),
    forms=(
        FileForm("a saved plan", "apply --plan {}", find="openstack_prep.resources.file_forms:find_saved_plan"),
        FileForm("a spec of openstack-prep", "validate {}", find="openstack_prep.resources.file_forms:find_spec"),
        FileForm("a template of Heat", keys=("heat_template_version",)),
        FileForm("a clouds.yaml", find="openstack_prep.resources.file_forms:find_clouds"),
    ),
    scans=(
        Scan(f"{_HERE}.identity.project:Project"),
        Scan(f"{_HERE}.identity.user:User"),
        Scan(f"{_HERE}.identity.role_assignment:RoleAssignment"),
        Scan(f"{_HERE}.compute.quota:Quota", has_tag=False),
        Scan(f"{_HERE}.compute.flavor:Flavor", tagged=f"{_OWN}:has_flavors", of_cloud=True),
        Scan(f"{_HERE}.image.image:Image", tagged=f"{_HERE}.image.glance:has_tagged"),
        Scan(f"{_HERE}.compute.keypair:Keypair", tagged=f"{_HERE}.identity.user:has_keypairs"),
        Scan(f"{_HERE}.network.network:Network", tagged=f"{_OWN}:has_networks"),
        Scan(f"{_HERE}.network.subnet:Subnet", tagged=f"{_OWN}:has_subnets", on_networks=True),
        Scan(f"{_HERE}.network.router:Router", tagged=f"{_OWN}:has_routers", on_networks=True),
        Scan(f"{_HERE}.network.security_group:SecurityGroup", tagged=f"{_OWN}:has_security_groups"),
        Scan(f"{_HERE}.network.security_group:SecurityGroupRules", tagged=f"{_OWN}:has_rules"),
        Scan(f"{_HERE}.network.declared_port:Port", tagged=f"{_OWN}:has_ports"),
        Scan(f"{_HERE}.compute.server_group:ServerGroup", has_tag=False),
        Scan(f"{_HERE}.addresses.floating_ip:FloatingIP", tagged=f"{_OWN}:has_floating_ips"),
        Scan(
            f"{_HERE}.addresses.floating_ip_attachment:FloatingIPAttachment",
            tagged=f"{_OWN}:has_attachments",
        ),
        Scan(
            f"{_HERE}.addresses.address_pool:AddressPool",
            tagged=f"{_HERE}.network.reserved_ports:has_tagged",
            on_networks=True,
        ),
        Scan(
            f"{_HERE}.addresses.address_pairs:AddressPairs",
            tagged=f"{_HERE}.addresses.port_pairs:has_tagged",
            on_networks=True,
        ),
        Scan(f"{_HERE}.dns.recordset:Recordset", tagged=f"{_HERE}.dns.recordsets:has_tagged"),
        Scan(f"{_HERE}.storage.object_store:ObjectStore", has_tag=False),
        Scan(f"{_HERE}.orchestration.stack:Stack", tagged=f"{_HERE}.heat.stacks:has_tagged"),
        Scan(
            f"{_HERE}.credentials.application_credential:ApplicationCredential",
            tagged=f"{_HERE}.credentials.credential_record:has_tagged",
        ),
    ),
    cascades={
        "project": f"{_CASCADES}.project:PROJECT",
        "user": f"{_CASCADES}.identity:USER",
        "role_assignment": f"{_CASCADES}.identity:ROLE_ASSIGNMENT",
        "flavor": f"{_CASCADES}.compute:FLAVOR",
        "image": f"{_CASCADES}.compute:IMAGE",
        "server": f"{_CASCADES}.compute:SERVER",
        "server_group": f"{_CASCADES}.compute:SERVER_GROUP",
        "network": f"{_CASCADES}.network:NETWORK",
        "router": f"{_CASCADES}.network:ROUTER",
        "security_group": f"{_CASCADES}.network:SECURITY_GROUP",
        "port": f"{_CASCADES}.network:PORT",
        "floating_ip": f"{_CASCADES}.network:FLOATING_IP",
        "stack": f"{_HERE}.orchestration.losses:STACK",
    },
    codes="openstack_prep.base",
)
