#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# heddle info: info.sh HEDDLE FAKE_NODE STATIC_PROGRAM
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"
heddle=$1 fake_node=$2
export LC_ALL=C

# beside KIND COMMAND…: runs the command while a process holds a page of that kind; PID is the process's.
beside() {
	local status=0
	coproc NODE { exec "$fake_node" "$1"; }
	local reader=${NODE[0]} writer=${NODE[1]} pid=$NODE_PID
	read -r <&"$reader"
	PID=$pid "${@:2}" || status=$?
	exec {writer}>&-
	wait "$pid" || true
	return $status
}

# The rows of that process alone: other programs of this machine may use Heddle too.
links_of_fake() {
	"$heddle" info | sed -n '/^Links/,$p' | awk -v pid="$PID" '$1 == pid'
}

json_query() {
	"$heddle" info --json | python3 -c "import json, os, sys; d = json.load(sys.stdin); pid = int(os.environ.get('PID', 0)); print($1)"
}

nothing_shown() {
	[ -z "$(links_of_fake)" ]
}

check_status "info ends well" 0 "$heddle" info
check_status "an argument is refused" 125 "$heddle" info something
check_output "prints help" '^Usage: heddle info ' "$heddle" info --help
check_output "says that nothing is sealed" '^  tcp +on .*; not sealed: HEDDLE_KEY_FILE is empty$' env -u HEDDLE_KEY_FILE -u HEDDLE_TRANSPORT "$heddle" info
check_output "lists a setting with value and default" 'HEDDLE_EAGER_SHM +48K \[32K\] from FI_HEDDLE_EAGER_SHM' \
	env FI_HEDDLE_EAGER_SHM=48K "$heddle" info
check_output "a bad value is warned of" 'HEDDLE_EAGER_SHM="x" is not understood' env HEDDLE_EAGER_SHM=x "$heddle" info
check_output "once" '^1$' env HEDDLE_EAGER_SHM=x sh -c "$heddle info 2>&1 >/dev/null | wc -l"
check_output "a misspelt variable too" 'HEDDLE_ADRR is no setting: is it HEDDLE_ADDR[?]' env HEDDLE_ADRR=lo "$heddle" info
check_output "with FI_ in front as well" 'FI_HEDDLE_EAGER_SMH is no setting: is it FI_HEDDLE_EAGER_SHM[?]$' \
	env FI_HEDDLE_EAGER_SMH=1K "$heddle" info
check_output "one that nobody knows" 'HEDDLE_HOME is no setting: the nearest is HEDDLE_' env HEDDLE_HOME=/ "$heddle" info
check_output "once too" '^1$' env HEDDLE_HOME=/ sh -c "$heddle info 2>&1 >/dev/null | wc -l"
check_output "an interface that there is not" 'HEDDLE_ADDR="eth77,lo": there is no interface eth77:' env HEDDLE_ADDR=eth77,lo "$heddle" info
check_output "once" '^1$' bash -c 'HEDDLE_ADDR=eth77,lo "$0" info 2>&1 | grep -c "there is no interface eth77"' "$heddle"
check_output "a subnet of LIDs that is none is not in force" 'HEDDLE_LID_SUBNET +[(]empty[)] [[](empty|[(]empty[)])[]]$' env HEDDLE_LID_SUBNET=abc "$heddle" info
check_output "and warned of once" '^1$' bash -c 'HEDDLE_LID_SUBNET=abc "$0" info 2>&1 | grep -c "HEDDLE_LID_SUBNET=.abc. is not understood"' "$heddle"
check_output "of EAGER what is in force" 'HEDDLE_EAGER_TCP +1G [[]64K[]] from HEDDLE_EAGER_TCP; in force: 64K$' env HEDDLE_EAGER_TCP=1G "$heddle" info
check_output "an address that there is not" 'this host has no address 192[.]0[.]2[.]251:' env HEDDLE_ADDR=lo,192.0.2.251 "$heddle" info
check_output "a subnet is shown with an example" 'Takes an IPv4 subnet such as 10[.]1[.]0[.]0/16[.]' "$heddle" info
# with_files COMMAND…: where these are the files of rsockets
with_files() {
	# shellcheck disable=SC2016
	unshare --user --map-root-user --mount bash -c 'd=/etc/rdma/rsocket; mount -t tmpfs none /etc && mkdir -p $d || exit
		echo 1000000 >$d/mem_default; echo abc >$d/wmem_default; echo 99999 >$d/iomap_size; echo 0 >$d/wake_up_interval; exec "$@"' with_files "$@"
}

check_output "shows what rsockets have" 'sqsize_default +384 \[384\]$' "$heddle" info
if unshare --user --map-root-user --mount true 2>/dev/null; then
	check_output "and the file that it is from" 'mem_default +1000000 \[131072\] from /etc/rdma/rsocket/mem_default$' with_files "$heddle" info
	check_output "more than the most is the most" 'iomap_size +4096 \[0\] from /etc/rdma/rsocket/iomap_size$' with_files "$heddle" info
	check_output "what is no number is warned of" 'wmem_default: "abc" is not understood: it takes bytes from 1 to 2147483647' with_files "$heddle" info
	check_output "and the default is in force" 'wmem_default +131072 \[131072\]$' with_files "$heddle" info
	check_output "what is less than the least too" 'wake_up_interval: "0" is not understood: it takes milliseconds from 1' with_files "$heddle" info
else
	skip "files of rsockets" "allow user namespaces (sysctl user.max_user_namespaces)"
fi
check_output "a transport that is not used is off" '^  shm +off' env HEDDLE_TRANSPORT=tcp "$heddle" info
check_output "says why there are no direct copies" 'shm.*HEDDLE_DIRECT_COPY is off' env HEDDLE_DIRECT_COPY=no "$heddle" info
check_status "fails when it cannot write" 125 sh -c "$heddle info >/dev/full"

check_output "lists the addresses that endpoints listen on" '^  127\.0\.0\.1 +lo$' "$heddle" info
check_output "and those alone that HEDDLE_ADDR names" '^\[.127\.0\.0\.1.\]$' env HEDDLE_ADDR=127.0.0.1 bash -c \
	"$heddle info --json | python3 -c 'import json, sys; print([a[\"address\"] for a in json.load(sys.stdin)[\"addresses\"]])'"
check_output "says when it names none" 'no program can use Heddle here' env HEDDLE_ADDR=nonsense0 "$heddle" info
check_output "does not show its own node" '^True$' json_query "all(n['interface'] != 'info' for n in d['nodes'])"

check_output "JSON is valid and names every setting" '^True$' json_query "all(s['name'].startswith('HEDDLE_') for s in d['settings'])"
check_output "JSON escapes what is in a value" '^a"\\b$' env HEDDLE_ADDR='a"\b' bash -c \
	"$heddle info --json | python3 -c 'import json, sys; print(next(s[\"value\"] for s in json.load(sys.stdin)[\"settings\"] if s[\"name\"] == \"HEDDLE_ADDR\"))'"

shm_row='fake_node +libfabric +shm +pid 4711, 10\.1\.2\.3:4000 +yes +no: Operation not permitted'
check_output "a link over shared memory is shown" "$shm_row" beside good links_of_fake
check_output "one over TCP too" 'fake_node +libfabric +tcp +\[2001:db8::7\]:5000 +- +-' beside good links_of_fake
check_output "each once" '^2$' beside good bash -c "$(declare -f links_of_fake); heddle=$heddle; links_of_fake | wc -l"
check_output "JSON has them" "^2 shm 4711 Operation not permitted$" beside good json_query \
	"next(' '.join(map(str, [len(n['links']), n['links'][0]['transport'], n['links'][0]['peer_pid'], n['links'][0]['direct_in']['reason']])) for n in d['nodes'] if n['pid'] == pid)"
check_output "a forked child's copy is not shown again" '^1$' beside forked bash -c "$heddle info | grep -c ' shm  *pid 4711,'"
for kind in magic version rows pid short; do
	check "a page with a bad $kind is left out" beside $kind nothing_shown
done
check_status "a page full of junk does no harm" 0 beside junk "$heddle" info
check "nor reaches the terminal" beside junk bash -c "! $heddle info | grep -q '[^[:print:][:space:]]'"
check_output "and JSON stays valid" '^True$' beside junk json_query "any(n['pid'] == pid for n in d['nodes'])"
finish
