#!/bin/sh
# What a node of rke2-cluster.yaml does at its first boot; Heat fills in what stands in <% %>, and %index%.
set -eu
role='<%role%>' api='<%api%>' url='<%url%>' sum='<%sum%>' profile='<%profile%>'
script=/var/lib/rke2-node/install
case $api in *:*) api="[$api]" ;; esac

[ ! -f /var/lib/rke2-node/secrets-volume ] || /var/lib/rke2-node/secrets "$(cat /var/lib/rke2-node/secrets-volume)"
[ ! -f /var/lib/rke2-node/volume ] || sh /var/lib/rke2-node/mount-volume "$(cat /var/lib/rke2-node/volume)"

# The first server starts the cluster, unless there is one: then this server has been made again.
if [ "$role" = agent ] || [ %index% != 0 ] ||
        curl --insecure --silent --max-time 10 --output /dev/null "https://$api:9345/cacerts"; then
    mkdir -p /etc/rancher/rke2/config.yaml.d
    echo "server: https://$api:9345" >/etc/rancher/rke2/config.yaml.d/10-join.yaml
fi

# RKE2 does not start with a profile that the host does not meet (RKE2 1.36, pkg/cli/cmds/profile_linux.go).
if [ "$profile" = cis ]; then
    printf '%s\n' vm.panic_on_oom=0 vm.overcommit_memory=1 kernel.panic=10 kernel.panic_on_oops=1 \
        >/etc/sysctl.d/60-rke2-cis.conf
    sysctl --load=/etc/sysctl.d/60-rke2-cis.conf
fi
if [ -n "$profile" ] && [ "$role" = server ] && ! id etcd >/dev/null 2>&1; then
    useradd --system --user-group --no-create-home --shell /sbin/nologin --comment "etcd user" etcd
fi

curl --fail --silent --show-error --location --retry 10 --output "$script" "$url"
[ -z "$sum" ] || echo "$sum  $script" | sha256sum --check
INSTALL_RKE2_TYPE=$role INSTALL_RKE2_CHANNEL='<%channel%>' INSTALL_RKE2_VERSION='<%version%>' sh "$script"

systemctl enable "rke2-$role"
tries=0
until systemctl start "rke2-$role"; do # the first server may not answer yet
    tries=$((tries + 1))
    [ "$tries" -lt 60 ]
    sleep 10
done
