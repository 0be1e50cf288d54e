#!/bin/sh
# Mount the volume that keeps this server's data when the server is replaced; the argument is the volume's id.
#
# All of RKE2's server directory is on it: etcd alone would lose the certificate authorities of a single server (K3s,
# pkg/cluster/bootstrap.go).  So is the node's password, by which RKE2 recognizes a node (K3s, pkg/nodepassword).
set -eu
server=/var/lib/rancher/rke2/server
id=$(printf %.20s "$1") # Nova gives disks this much of the id as serial number

find_device() { # virtio-ID, or scsi-0QEMU_QEMU_HARDDISK_ID
    for device in /dev/disk/by-id/*"$id"*; do
        [ ! -b "$device" ] || return 0
    done
    return 1
}

tries=0
until find_device; do # the predecessor has it until Heat attaches it here
    tries=$((tries + 1))
    [ "$tries" -lt 180 ] || { echo "volume $1 is not attached: no *$id* in /dev/disk/by-id" >&2; exit 1; }
    sleep 10
done

found=0
blkid --probe "$device" || found=$?
if [ "$found" = 2 ]; then # nothing that blkid knows is on it, or it cannot be read
    dd if="$device" of=/dev/null bs=1M count=1
    mkfs.ext4 -q -L rke2-server "$device"
fi

# cloud-init has written manifests, which replace older ones
mkdir -p "$server"
temporary=$(mktemp -d)
mount "$device" "$temporary"
cp -a "$server/." "$temporary"
mkdir -p "$temporary/node-password"
chmod 0700 "$temporary" "$temporary/node-password"
umount "$temporary"

grep -q " $server " /etc/fstab || echo "$device $server ext4 defaults,nofail 0 2" >>/etc/fstab
mount "$server"
mkdir -p /etc/rancher
ln -sfn "$server/node-password" /etc/rancher/node

# without the volume, RKE2 would start an empty etcd
mkdir -p /etc/systemd/system/rke2-server.service.d
printf '[Unit]\nRequiresMountsFor=%s\n' "$server" >/etc/systemd/system/rke2-server.service.d/10-volume.conf
systemctl daemon-reload
