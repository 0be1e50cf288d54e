#!/bin/sh
# Tell Heat when this node of rke2-cluster.yaml is ready, at every boot: Heat then goes on with the next node.
# "failed REASON" reports a failure instead.  Heat fills in what stands in <% %>.
set -eu
umask 077
role='<%role%>' node_too='<%node%>' insecure='<%insecure%>'
cd /var/lib/rke2-node

# A signal's id: the server, and the size with which it runs, so that a resize needs a new one.
name_boot() {
    url=http://169.254.169.254/openstack/latest/meta_data.json
    curl --fail --silent --max-time 10 --retry 3 --output metadata "$url" || read_config_drive || true
    flavor=$(sed -n 's/.*"node_flavor": *"\([^"]*\)".*/\1/p' metadata 2>/dev/null || true)
    [ -z "$flavor" ] || echo "$flavor" >flavor
    echo "$(cat /var/lib/cloud/data/instance-id)/$(cat flavor)"
}

read_config_drive() {
    mkdir -p drive
    mount -o ro -L config-2 drive
    cp drive/openstack/latest/meta_data.json metadata
    umount drive
}

field() { sed -n "s/.*\"$1\": \"\([^\"]*\)\".*/\1/p" handle; }

signal() { # id, status, reason
    auth=$(field auth_url)
    auth=${auth%/}
    cat >login <<LOGIN
{"auth": {"identity": {"methods": ["password"],
 "password": {"user": {"id": "$(field user_id)", "password": "$(field password)"}}},
 "scope": {"project": {"id": "$(field project_id)"}}}}
LOGIN
    json='Content-Type: application/json'
    curl $insecure --fail --silent --show-error --retry 10 --header "$json" --data-binary @login \
        --dump-header answer --output /dev/null "${auth%/v3}/v3/auth/tokens"
    { echo "$json"; tr -d '\r' <answer | sed -n 's/^[Xx]-[Ss]ubject-[Tt]oken:/X-Auth-Token:/p'; } >headers
    printf '{"id": "%s", "status": "%s", "reason": "%s"}' "$1" "$2" "$(hostname): $3" |
        curl $insecure --fail --silent --show-error --retry 10 --header @headers --data-binary @- "$(field alarm_url)"
    rm -f login answer headers
}

is_ready() {
    systemctl is-active --quiet "rke2-$role" || return 1
    kubectl=/var/lib/rancher/rke2/bin/kubectl
    kubelet="$kubectl --kubeconfig /var/lib/rancher/rke2/agent/kubelet.kubeconfig --request-timeout 10s"
    if [ "$role" = server ]; then # its own API server, which includes etcd
        $kubectl --kubeconfig /etc/rancher/rke2/rke2.yaml --request-timeout 10s get --raw /readyz >/dev/null || return 1
    fi
    [ "$node_too" = true ] || return 0
    name=$($kubelet auth whoami --output 'jsonpath={.status.userInfo.username}') || return 1
    ready='jsonpath={.status.conditions[?(@.type=="Ready")].status}'
    voter='jsonpath={.status.conditions[?(@.type=="EtcdIsVoter")].status}'
    [ "$($kubelet get node "${name#system:node:}" --output "$ready")" = True ] || return 1
    [ "$role" = agent ] || [ "$($kubelet get node "${name#system:node:}" --output "$voter")" != False ]
}

if [ "${1-}" = failed ]; then # Heat has seen it after two minutes; a successor must not inherit it
    signal failure FAILURE "$2"
    sleep 120
    signal failure SUCCESS "the failure was reported"
    exit
fi

until is_ready; do
    sleep 5
done
signal "$(name_boot)" SUCCESS ready
