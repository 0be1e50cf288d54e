#!/usr/bin/env bash
# The scenario by hand: one openstack command after the other, as the administrator of OS_CLOUD.
# Expects rhcos.qcow2 here, OCP_PASSWORD, TEMP_URL_KEY, AUTH_URL; writes clouds.yaml here.
set -euo pipefail

openstack project create --description "OpenShift 4 lab" ocp-tenant
openstack user create --password "$OCP_PASSWORD" ocp-user
openstack role add --project ocp-tenant --user ocp-user member
openstack role add --project ocp-tenant --user ocp-user admin
openstack role add --project ocp-tenant --user ocp-user swiftoperator
openstack role add --project ocp-tenant --user admin admin

openstack quota show --default ocp-tenant
openstack quota set --cores 40 --ram 102400 --secgroups 40 --secgroup-rules 500 ocp-tenant

openstack flavor create --ram 16384 --vcpus 4 --disk 25 master

openstack floating ip create --project ocp-tenant --floating-ip-address 192.168.122.164 external
openstack floating ip create --project ocp-tenant --floating-ip-address 192.168.122.180 external

(
    umask 077
    cat >clouds.yaml <<END
clouds:
  ocp-tenant:
    region_name: regionOne
    identity_api_version: 3
    auth:
      auth_url: $AUTH_URL
      username: ocp-user
      password: $OCP_PASSWORD
      project_name: ocp-tenant
      user_domain_name: Default
      project_domain_name: Default
END
)
export OS_CLIENT_CONFIG_FILE=$PWD/clouds.yaml OS_CLOUD=ocp-tenant

openstack object store account set --property "Temp-URL-Key=$TEMP_URL_KEY"
openstack image create --disk-format qcow2 --container-format bare --file rhcos.qcow2 rhcos
