#!/usr/bin/env bash
# The scenario by orca commands, which share one cached token per user; expects and writes what scenario.sh does.
# orca takes ids in the place of names, and has no option for a floating IP's address or project: curl allocates those.
set -euo pipefail

export OS_AUTH_URL=${AUTH_URL%/v3} OS_USER_DOMAIN_NAME=Default OS_PROJECT_DOMAIN_NAME=Default # orca appends /v3
export OS_USERNAME=admin OS_PASSWORD=$ADMIN_PASSWORD OS_PROJECT_NAME=admin OS_REGION_NAME=regionOne
unset OS_CLOUD OS_CLIENT_CONFIG_FILE # orca reads clouds.yaml only in this folder and in ~/.config/openstack

id() { # id KIND NAME
    orca "$1" list -f value | awk -v name="$2" '$2 == name {print $1}'
}

orca project create --description "OpenShift 4 lab" ocp-tenant
# shellcheck disable=SC2153 # not a misspelled OS_PASSWORD
orca user create --password "$OCP_PASSWORD" ocp-user
project=$(id project ocp-tenant)
user=$(id user ocp-user)
admin=$(id user admin)
roles=$(orca role list -f value)
for role in member admin swiftoperator; do
    orca role add --project "$project" --user "$user" "$(awk -v name=$role '$2 == name {print $1}' <<<"$roles")"
done
orca role add --project "$project" --user "$admin" "$(awk '$2 == "admin" {print $1}' <<<"$roles")"

orca quota set --project "$project" --cores 40 --ram 102400 --security-groups 40 --security-group-rules 500

orca flavor create --ram 16384 --vcpus 4 --disk 25 master

external=$(id network external)
token=$(orca token issue -f value | sed -n 1p)
network=$(orca catalog list -f value | awk '$2 == "network" && $3 == "public" {print $5}')
for address in 192.168.122.164 192.168.122.180; do
    body="{\"floatingip\": {\"floating_network_id\": \"$external\", \"floating_ip_address\": \"$address\","
    body="$body \"project_id\": \"$project\"}}"
    curl -fsS -H "X-Auth-Token: $token" -H "Content-Type: application/json" -d "$body" "$network/v2.0/floatingips"
done

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
export OS_USERNAME=ocp-user OS_PASSWORD=$OCP_PASSWORD OS_PROJECT_NAME=ocp-tenant

orca object account set --property "Temp-URL-Key=$TEMP_URL_KEY"
orca image create --disk-format qcow2 --container-format bare --file rhcos.qcow2 rhcos
