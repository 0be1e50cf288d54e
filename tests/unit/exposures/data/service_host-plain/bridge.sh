#!/bin/bash
# Creates a bridge on an interface of this machine with NetworkManager, all changes in one go.
# The address moves along. Without 'confirm', everything is undone. See: bash bridge.sh help
set -euo pipefail
BRIDGE=br0
NIC=enp3s0
WITHIN=60

usage() {
    cat <<END
usage: bash $0 apply|confirm|undo|status [--yes]

  apply    put $NIC into the bridge $BRIDGE, which takes over its address; undone by itself after $WITHIN seconds
           unless confirmed, also when this session is lost or the machine reboots
  confirm  keep the changes
  undo     restore $NIC as it was
  status   print what is in place; exit 0: confirmed, 3: not confirmed yet, 1: not applied
  --yes    do not ask, even if $NIC is this machine's only network interface
END
}

umask 077
PROFILE="openstack-prep-$BRIDGE"
PORT="openstack-prep-$BRIDGE-port"
UNIT="openstack-prep-bridge-$BRIDGE"
PENDING="/run/openstack-prep/$BRIDGE"     # gone after a reboot, like connections that were not saved
KEPT="/var/lib/openstack-prep/$BRIDGE"
PROPERTIES="
    connection.zone
    ipv4.method ipv4.addresses ipv4.gateway ipv4.routes ipv4.route-metric ipv4.dns ipv4.dns-search ipv4.dns-options
    ipv4.dns-priority ipv4.ignore-auto-dns ipv4.ignore-auto-routes ipv4.never-default ipv4.may-fail
    ipv4.dhcp-client-id ipv4.dhcp-hostname ipv4.dhcp-send-hostname ipv4.dhcp-timeout
    ipv6.method ipv6.addresses ipv6.gateway ipv6.routes ipv6.route-metric ipv6.dns ipv6.dns-search ipv6.dns-options
    ipv6.dns-priority ipv6.ignore-auto-dns ipv6.ignore-auto-routes ipv6.never-default ipv6.may-fail
    ipv6.addr-gen-mode ipv6.ip6-privacy ipv6.token ipv6.dhcp-duid ipv6.dhcp-hostname ipv6.dhcp-send-hostname
"

fail() {
    echo "$1" >&2
    exit "${2:-2}"
}

# --- what NetworkManager says ---------------------------------------------------------------

device() { nmcli --escape no --get-values "$1" device show "$2" 2>/dev/null; }
property() { nmcli --escape no --get-values "$1" connection show uuid "$2" 2>/dev/null; }
uuid_of() { nmcli --get-values connection.uuid connection show id "$1" 2>/dev/null; }
addresses() { device IP4.ADDRESS,IP6.ADDRESS "$1" | tr '|' '\n' | sed 's/ //g; /^fe80:/d; /^$/d' | tr '\n' ' '; }
is_up() { [[ $(device GENERAL.STATE "$BRIDGE") == 100* ]]; }

other_nics() {
    nmcli --terse --fields DEVICE,TYPE,STATE device |
        awk -F: -v nic="$NIC" '$1 != nic && $2 ~ /^(ethernet|wifi|bond|team|infiniband)$/ && $3 ~ /^connected/ {print $1}'
}

# --- state: one directory before confirmation, another one after it -------------------------

write() { printf '%s\n' "$3" >"$1/.$2" && mv -f "$1/.$2" "$1/$2"; }
read_state() { cat "$1/$2" 2>/dev/null || true; }
state() { read_state "$PENDING" state; }
is_state() { [[ $(state) == "$1" ]]; }
is_pending() { [[ $(state) == changing || $(state) == waiting ]]; }
is_kept() { [[ -e $KEPT/bridge && $(property connection.id "$(read_state "$KEPT" bridge)") ]]; }

# Waits as long as a condition holds; the detached process sets the state, however slow NetworkManager is.
await() {
    local end=$((SECONDS + 400))
    while "$@"; do
        ((SECONDS < end)) || fail "the changes take too long; see: systemctl status $UNIT" 1
        sleep 0.2
    done
}

# --- checks and questions -------------------------------------------------------------------

check() {
    [[ $EUID == 0 ]] || fail "run this as root"
    command -v nmcli >/dev/null || fail "nmcli does not exist; install NetworkManager"
    [[ $(nmcli --get-values RUNNING general status 2>/dev/null) == running ]] || fail "NetworkManager does not run; start it"
}

check_devices() {
    local type
    type=$(device GENERAL.TYPE "$NIC") || fail "interface $NIC does not exist; see: nmcli device"
    [[ $type == ethernet || $type == veth ]] || fail "interface $NIC is of type $type; choose an Ethernet interface"
    [[ ! -e /sys/class/net/$NIC/master ]] || fail "interface $NIC belongs to another interface; choose another one"
    [[ ! -e /sys/class/net/$BRIDGE ]] || fail "interface $BRIDGE exists and is not managed by this script; choose another name"
    local name
    for name in "$PROFILE" "$PORT"; do
        [[ -z $(uuid_of "$name") ]] || fail "connection $name exists and is not managed by this script; delete or rename it"
    done
}

check_connection() {
    [[ -n $1 ]] || return 0
    [[ $(property connection.type "$1") == 802-3-ethernet ]] || fail "the connection of $NIC is not a plain Ethernet one"
    [[ -z $(property 802-1x.eap "$1") ]] || fail "the connection of $NIC logs in by 802.1X, which a port of a bridge cannot"
}

ask() {
    echo "$1"
    if [[ -z $(other_nics) ]]; then
        echo "WARNING: $NIC is the only connected network interface of this machine."
        echo "         If the new configuration does not work, the machine cannot be reached until it is undone."
    elif ! ip -o route show default | grep -qE "dev ($NIC|$BRIDGE) "; then
        return 0
    else
        echo "WARNING: the default route of this machine leads over $NIC."
    fi
    [[ $YES != yes ]] || return 0
    [[ -t 0 ]] || fail "not a terminal; pass --yes to confirm"
    local answer
    read -r -p "Continue? [y/N] " answer
    [[ $answer == [yY]* ]] || fail "nothing was changed" 1
}

# --- apply ----------------------------------------------------------------------------------

apply() {
    mkdir -p "${PENDING%/*}"
    exec 9>"$PENDING.lock"
    flock --nonblock 9 || fail "another run of this script is at work"
    if is_pending; then
        echo "$BRIDGE waits for confirmation: bash $0 confirm"
        return 0
    fi
    if is_kept; then
        echo "$BRIDGE is in place; nothing to do"
        return 0
    fi
    check_devices
    local old
    old=$(device GENERAL.CON-UUID "$NIC")
    check_connection "$old"
    ask "$NIC becomes a port of the bridge $BRIDGE, which takes over: $(addresses "$NIC")"
    rm -rf "$PENDING"
    mkdir "$PENDING"
    cp -- "${BASH_SOURCE[0]}" "$PENDING/bridge.sh"
    write "$PENDING" old "$old"
    write "$PENDING" autoconnect "$([[ -z $old ]] || property connection.autoconnect "$old")"
    detach change || { rm -rf "$PENDING"; fail "systemd-run failed; nothing was changed" 1; }
    exec 9>&-
    follow
}

# Runs a step outside of this session. Whatever ends that process, ExecStopPost undoes what was not confirmed.
detach() {
    systemd-run --quiet --collect --unit="$UNIT" --property="ExecStopPost=/bin/bash $PENDING/bridge.sh settle" \
        /bin/bash "$PENDING/bridge.sh" "$1" 9>&-
}

follow() {
    await is_state "" # until the process is there
    await is_state changing
    [[ $(state) == waiting ]] || fail "$(state)" 1
    echo "$BRIDGE is up: $(addresses "$BRIDGE")"
    echo "Log in once more from outside, then confirm within $WITHIN seconds: bash $0 confirm"
}

change() {
    write "$PENDING" state changing
    trap settle EXIT
    trap 'exit 143' TERM INT HUP
    local old
    old=$(read_state "$PENDING" old)
    create "$old"
    nmcli --wait 0 connection up uuid "$(read_state "$PENDING" bridge)" >/dev/null
    nmcli --wait 60 connection up uuid "$(read_state "$PENDING" port)" >/dev/null
    local end=$((SECONDS + 60))
    until is_up; do
        ((SECONDS < end)) || { write "$PENDING" reason "$BRIDGE got no address within 60 seconds"; exit 1; }
        sleep 0.5
    done
    write "$PENDING" deadline "$(($(date +%s) + WITHIN))"
    write "$PENDING" state waiting
    write "$PENDING" reason "not confirmed within $WITHIN seconds"
    end=$((SECONDS + WITHIN))
    while ((SECONDS < end)); do
        [[ ! -e $PENDING/undo ]] || { write "$PENDING" reason "undone on request"; exit 0; }
        [[ ! -e $PENDING/confirm ]] || { keep; exit 0; }
        sleep 0.2
    done
}

# Connections are not saved before confirmation, and the former one remains unchanged, so that a reboot undoes all.
create() {
    local old=$1 name value
    local bridge=(ipv4.method disabled ipv6.method disabled) port=()
    if [[ -n $old ]]; then
        bridge=()
        for name in $PROPERTIES; do
            value=$(property "$name" "$old") || continue # older releases lack some of them
            [[ -z $value ]] || bridge+=("$name" "$value")
        done
        value=$(property 802-3-ethernet.mtu "$old")
        [[ ${value:-auto} == auto || $value == 0 ]] || port+=(802-3-ethernet.mtu "$value")
    fi
    nmcli connection add save no type bridge ifname "$BRIDGE" con-name "$PROFILE" connection.autoconnect yes \
        connection.autoconnect-priority 999 bridge.stp no bridge.mac-address "$(device GENERAL.HWADDR "$NIC")" \
        "${bridge[@]}" "${port[@]}" >/dev/null
    write "$PENDING" bridge "$(uuid_of "$PROFILE")"
    nmcli connection add save no type ethernet ifname "$NIC" con-name "$PORT" connection.autoconnect yes \
        connection.autoconnect-priority 999 master "$BRIDGE" slave-type bridge "${port[@]}" >/dev/null
    write "$PENDING" port "$(uuid_of "$PORT")"
}

keep() {
    local file old
    mkdir -p "$KEPT"
    for file in old autoconnect port bridge; do write "$KEPT" "$file" "$(read_state "$PENDING" "$file")"; done
    nmcli connection modify uuid "$(read_state "$KEPT" bridge)" connection.autoconnect yes # saves it
    nmcli connection modify uuid "$(read_state "$KEPT" port)" connection.autoconnect yes
    old=$(read_state "$KEPT" old)
    [[ -z $old ]] || nmcli connection modify uuid "$old" connection.autoconnect no # or it returns if the bridge fails
    write "$PENDING" state confirmed
}

settle() {
    trap - EXIT
    is_pending || return 0
    rm -rf "$KEPT"
    local reason
    reason=$(cat "$PENDING/reason" 2>/dev/null || echo "nmcli failed; see: journalctl -u $UNIT")
    if restore_stubbornly "$PENDING"; then
        write "$PENDING" state "undone: $reason"
    else
        write "$PENDING" state "not completely undone ($reason); see: journalctl -u $UNIT"
    fi
}

# --- confirm, undo, status ------------------------------------------------------------------

confirm() {
    if ! is_pending; then
        is_kept || fail "nothing to confirm; $(state)" 1
        echo "$BRIDGE is confirmed already"
        return 0
    fi
    [[ $(state) == waiting ]] || fail "$BRIDGE is not up yet; see: bash $0 status" 1
    touch "$PENDING/confirm"
    await is_pending
    [[ $(state) == confirmed ]] || fail "$(state)" 1
    echo "$BRIDGE is kept"
}

undo() {
    if is_pending; then
        touch "$PENDING/undo"
        await is_pending
        state
        return 0
    fi
    is_kept || { echo "nothing to undo"; return 0; }
    local old
    old=$(read_state "$KEPT" old)
    [[ -z $old || -n $(property connection.id "$old") ]] || fail "the former connection of $NIC was deleted ($old); \
create one with the address of $BRIDGE, then write its UUID to $KEPT/old"
    ask "$NIC gets its former connection, and the bridge $BRIDGE is deleted."
    mkdir -p "$PENDING"
    cp -- "${BASH_SOURCE[0]}" "$PENDING/bridge.sh"
    write "$PENDING" state undoing
    detach restore_kept || fail "systemd-run failed; nothing was changed" 1
    await is_state undoing
    state
}

restore_kept() {
    if restore_stubbornly "$KEPT"; then
        rm -rf "$KEPT"
        write "$PENDING" state "undone: on request"
    else
        write "$PENDING" state "not completely undone; see: journalctl -u $UNIT, then repeat undo"
    fi
}

restore_stubbornly() {
    restore "$@" || { sleep 5 && restore "$@"; } || { sleep 15 && restore "$@"; }
}

# Gives the interface its own connection with its former autoconnect, and deletes the two connections by their ids.
restore() {
    local from=$1 old uuid autoconnect failed=0
    old=$(read_state "$from" old)
    if [[ -n $old ]]; then
        autoconnect=$(read_state "$from" autoconnect)
        [[ $(property connection.autoconnect "$old") == "$autoconnect" ]] ||
            nmcli connection modify uuid "$old" connection.autoconnect "$autoconnect" || failed=1
        nmcli --wait 60 connection up uuid "$old" ifname "$NIC" >/dev/null || failed=1
    fi
    for uuid in "$(read_state "$from" port)" "$(read_state "$from" bridge)"; do
        [[ -z $uuid || -z $(property connection.id "$uuid") ]] || nmcli connection delete uuid "$uuid" >/dev/null || failed=1
    done
    return "$failed"
}

status() {
    local address
    address=$(addresses "$BRIDGE" || true)
    if is_pending; then
        echo "$BRIDGE: $(state), $(($(read_state "$PENDING" deadline) - $(date +%s))) seconds left: $address"
        return 3
    fi
    is_kept || { echo "$BRIDGE: not applied; $(state)"; return 1; }
    echo "$BRIDGE: in place: $address"
}

YES=no
[[ ${2:-} != --yes ]] || YES=yes
if (($# < 1 || $# > 2)) || { (($# == 2)) && [[ $YES == no ]]; }; then
    usage >&2
    exit 2
fi
case $1 in
    apply | confirm | undo | status)
        check
        "$1"
        ;;
    change | settle | restore_kept) "$1" ;; # of the detached process
    -h | --help | help) usage ;;
    *)
        usage >&2
        exit 2
        ;;
esac
