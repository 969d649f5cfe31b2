#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# Two processes in unusual circumstances: refused direct copies, another user, strangers, floods, signals, kills, and
# what is missing on small machines: faults.sh [--fast], the short selection. HD_BUILD is the build folder.
set -uo pipefail
cd "$(dirname "$0")" || exit 1
# shellcheck source=tests/tap.sh
. ../tap.sh

build=${HD_BUILD:?the build folder}
fast=no
[ "${1:-}" != --fast ] || fast=yes
peer=$build/tests/e2e/e2e-peer
run=("$build/heddle" run --)
export HEDDLE_LOG=${HEDDLE_LOG:-warn}
scratch=$(mktemp -d)
chmod 755 "$scratch"
servers=()
trap 'kill "${servers[@]}" 2>/dev/null; rm -rf "$scratch" "$tap_scratch"' EXIT

# start_server NAME [PREFIX…] -- [OPTIONS…]: starts one and sets $ip, $port, $server (its pid)
start_server() {
	local name=$1 prefix=()
	shift
	while [ "$1" != -- ]; do prefix+=("$1") && shift; done
	shift
	server_log=$scratch/$name.${#servers[@]} # a name of its own: what another has said must not be read
	"${prefix[@]}" "${run[@]}" "$peer" serve "$@" >"$server_log" 2>&1 </dev/null &
	server=$!
	servers+=("$server")
	address_in "$server_log" "$server" || ip=127.0.0.1 port=1
}

# server_ends STATUS: the server that was started last ends with this status
server_ends() {
	local status=0
	for _ in $(seq 600); do
		kill -0 "$server" 2>/dev/null || break
		sleep 0.1
	done
	kill -9 "$server" 2>/dev/null # it hangs: 137
	wait "$server" || status=$?
	[ "$status" -eq "$1" ] || { cat "$server_log" && return 1; }
}

value() { awk -v k="$1" '$1 == k { print $2 }' "$2"; }

call() { timeout 120 "${run[@]}" "$peer" call "$ip" "$port" "$@"; }

converse() { # NAME TRANSPORT "server options" "client options"
	local server_options client_options
	read -ra server_options <<<"$3"
	read -ra client_options <<<"$4"
	export HEDDLE_TRANSPORT=$2
	start_server c -- "${server_options[@]}"
	check "$1 ($2): the caller is content" call "${client_options[@]}"
	check "$1 ($2): the server is content" server_ends 0
	unset HEDDLE_TRANSPORT
}

for transport in shm tcp; do
	converse "plain messages" $transport "" "--count 2000 --size 100"
	converse "long messages" $transport "" "--count 20 --size 3000000"
	converse "interrupted by signals" $transport "--alarms" "--alarms --count 60 --size 1000000"
	converse "flooding each other" $transport "--both --delay 200" "--both --count 20000 --size 8"
done

# What both ends have done is in their last lines: these 20 messages and a last one that says their number, and its answer.
past() { # NAME TRANSPORT SIZE WHAT-THE-CALLER-SENT
	export HEDDLE_TRANSPORT=$2 HEDDLE_LOG=info
	start_server past --
	check_output "$1 ($2): the caller says what it sent" "by $2: sent 21 messages and requests, $4.*; took in 1, 8 B in packets" \
		call --count 20 --size "$3"
	server_ends 0
	check_output "$1 ($2): the server says what came" "by $2: sent 1 messages and requests, 8 B in packets.*; took in 21, $4" cat "$server_log"
	unset HEDDLE_TRANSPORT
	HEDDLE_LOG=warn
}
for transport in shm tcp; do
	past "messages of 50 bytes" $transport 50 "1.0 kB in packets"
	past "messages of 5000 bytes" $transport 5000 "100.0 kB in packets"
done
past "messages of a megabyte" tcp 1000000 "20.0 MB in packets"
past "messages of a megabyte" shm 1000000 "32 B in packets"

# Direct copies that the kernel refuses: same results.
converse "direct copies refused to the receiver" shm "--forbid" "--count 10 --size 2000000"
converse "direct copies refused to the sender" shm "" "--forbid --count 10 --size 2000000"
converse "direct copies refused to both" shm "--forbid" "--forbid --count 10 --size 2000000"
HEDDLE_LOG=debug
converse "direct copies refused midway to both" shm "--forbid-mid" "--forbid-mid --count 40 --size 2000000"
check_output "the log says which messages come in frames instead, and why" \
	'debug engine: rdm 0: no direct copy of 2000000 bytes from peer [0-9a-f]{8}, but frames: Operation not permitted$' cat "$server_log"
HEDDLE_LOG=warn

# A flood into a receiver that posts nothing stays under the cap; nothing is lost.
flood() { # NAME TRANSPORT COUNT SIZE
	export HEDDLE_TRANSPORT=$2 HEDDLE_UNEXPECTED_MAX=16M HEDDLE_UNEXPECTED_PEER=16M
	start_server flood -- --delay 1500
	check "$1 ($2): nothing is lost" call --count "$3" --size "$4"
	check "$1 ($2): the server has them all" server_ends 0
	check "$1 ($2): memory stays below the cap and what a process needs anyway" \
		test "$(value rss_kib "$server_log")" -lt $((16 * 1024 + 24 * 1024))
	unset HEDDLE_TRANSPORT HEDDLE_UNEXPECTED_MAX HEDDLE_UNEXPECTED_PEER
}
for transport in shm tcp; do
	flood "a flood of small messages" $transport 300000 64
	[ $fast = no ] || continue
	flood "a flood of empty messages" $transport 300000 0
	flood "a flood of requests to send" $transport 3000 200000
done

# Another user gets TCP, not shared memory.
links_of() { "$build/heddle" info | awk -v pid="$1" '$1 == pid && $3 == "libfabric" { print $4 }'; }
# wait_link PID [TRANSPORT]: until it has a link, over that one
wait_link() {
	for _ in {1..200}; do
		[[ $(links_of "$1") != *${2:-[a-z]}* ]] || return 0
		sleep 0.05
	done
	return 1
}
if [ "$(id -u)" -eq 0 ]; then
	start_server other --
	install -m 755 "$peer" "$build/heddle" "$build/libheddle-fi.so" "$scratch"
	check "another user is served" timeout 60 setpriv --reuid 65534 --regid 65534 --clear-groups \
		env FI_PROVIDER_PATH="$scratch" FI_PROVIDER=heddle "$scratch/e2e-peer" call "$ip" "$port" --count 10 --size 300000
	check "the server of another user is content" server_ends 0
	start_server other -- --delay 20000
	setpriv --reuid 65534 --regid 65534 --clear-groups env FI_PROVIDER_PATH="$scratch" FI_PROVIDER=heddle \
		"$scratch/e2e-peer" call "$ip" "$port" >/dev/null 2>&1 &
	wait_link "$server" tcp
	check "another user's link is TCP" test "$(links_of "$server")" = tcp
	kill -USR1 "$server"
	check "and it is served over that" server_ends 0
else
	skip "another user" "run it as root: only root can become another user"
fi

# Strangers get nothing.
export HEDDLE_ALLOW=203.0.113.0/24
start_server stranger --
unset HEDDLE_ALLOW
check_status "an address outside HEDDLE_ALLOW is turned away" 3 call
check_output "and the server says what to do" 'HEDDLE_ALLOW' cat "$server_log"
kill "$server"

# Nobody there, no ports, no descriptors: errors, not hangs or crashes.
ip=127.0.0.1 port=1
check_status "a call to nobody ends in an error" 3 call
start_server port --
export HEDDLE_PORTS=$port
check_output "a range of ports that are taken is a clear error" 'widen HEDDLE_PORTS' timeout 20 "${run[@]}" "$peer" serve
unset HEDDLE_PORTS
kill "$server"
numbers=(6 8 10 12 14 16 18)
[ $fast = no ] || numbers=(8 14)
for n in "${numbers[@]}"; do
	check_output "with $n descriptors there is a clear error or success" '^error .*|^address ' \
		bash -c "ulimit -n $n; exec timeout -k 1 2 \"\$@\"" - env FI_PROVIDER_PATH="$build" FI_PROVIDER=heddle "$peer" serve
done

# kill -9: what remains, and what comes after.
for transport in shm tcp; do
	export HEDDLE_TRANSPORT=$transport
	before=$(find /dev/shm /tmp -maxdepth 1 -name '*heddle*' ! -name 'heddle' 2>/dev/null | sort)
	start_server killed -- --delay 3000
	call --count 1000000 --size 100000 >"$scratch/call" 2>&1 &
	caller=$!
	wait_link "$server"
	kill -9 "$server"
	started=$(date +%s%N)
	status=0
	wait "$caller" || status=$?
	took=$((($(date +%s%N) - started) / 1000000))
	check "kill -9 of the server ($transport): the caller gets an error" test "$status" -eq 3
	check "kill -9 of the server ($transport): soon ($took ms)" test "$took" -lt 5000
	after=$(find /dev/shm /tmp -maxdepth 1 -name '*heddle*' ! -name 'heddle' 2>/dev/null | sort)
	check "kill -9 of the server ($transport): nothing is left behind" test "$before" = "$after"
	converse "after kill -9" $transport "" "--count 10 --size 100000"
done
finish
