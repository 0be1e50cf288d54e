#!/bin/sh
# What a node of rke2-cluster.yaml does at its first boot; Heat fills in what stands in <% %>, and %index%.
set -eu
role='<%role%>' api='<%api%>' url='<%url%>' sum='<%sum%>'
script=/var/lib/rke2-node/install

# The first server starts the cluster, unless there is one: then this server has been made again.
if [ "$role" = agent ] || [ %index% != 0 ] ||
        curl --insecure --silent --max-time 10 --output /dev/null "https://$api:9345/cacerts"; then
    mkdir -p /etc/rancher/rke2/config.yaml.d
    echo "server: https://$api:9345" >/etc/rancher/rke2/config.yaml.d/10-join.yaml
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
