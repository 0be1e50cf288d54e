#!/bin/sh
# Mount the volume that keeps this server's etcd when the server is replaced; the argument is the volume's id.
# The volume also keeps the node's password, with which RKE2 recognizes a node (K3s 1.35, pkg/nodepassword).
set -eu
db=/var/lib/rancher/rke2/server/db
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
    mkfs.ext4 -q -L rke2-etcd "$device"
fi

mkdir -p "$db"
grep -q " $db " /etc/fstab || echo "$device $db ext4 defaults,nofail 0 2" >>/etc/fstab
mount "$db"
chmod 0700 "$db"

# without the volume, RKE2 would start an empty etcd
mkdir -p /etc/systemd/system/rke2-server.service.d
printf '[Unit]\nRequiresMountsFor=%s\n' "$db" >/etc/systemd/system/rke2-server.service.d/10-volume.conf
systemctl daemon-reload

mkdir -p "$db/node" /etc/rancher
chmod 0700 "$db/node"
ln -sfn "$db/node" /etc/rancher/node
