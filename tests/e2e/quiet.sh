#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# At the usual level of the log neither a program that ends in order says anything, nor one whose other end is killed: quiet.sh [--tap] [--only T].
# Programs of libfabric, verbs, rdma_cm and uDAPL, ours and other people's.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/../clients/lib.sh" "$@"
# shellcheck source=tests/clients/services.sh
. "$(dirname "$0")/../clients/services.sh"
need ibv_rc_pingpong ib_send_bw rping dtest dapltest stdbuf ss flock
# shellcheck source=tests/tap.sh
. <(sed -n '/^address_in()/,/^}/p' "$root/tests/tap.sh")
unset HEDDLE_LOG FI_LOG_LEVEL
peer=$BUILD/tests/e2e/e2e-peer client='' server='' pids=()
kill_rest() { [ ${#pids[@]} -eq 0 ] || kill -KILL "${pids[@]}" 2>/dev/null; }
cleaners+=(kill_rest)

# begin WHO program args…: in the background, over $t; $who is its process id, and what it prints is in $scratch/WHO
begin() {
	local who=$1
	shift
	: >"$scratch/$who"
	"$BUILD/heddle" run "--transport=$t" -- "$@" >"$scratch/$who" 2>&1 </dev/null &
	printf -v "$who" %s $!
	pids+=($!)
}

# ends PID SECONDS: until it does; one that waits for ever for somebody who has been killed is killed as well
ends() {
	local i
	for ((i = 0; i < $2 * 20; i++)); do
		kill -0 "$1" 2>/dev/null || break
		sleep 0.05
	done
	kill -KILL "$1" 2>/dev/null
	wait "$1" 2>/dev/null
}

# meets PID: until it has a link
meets() {
	local i
	for ((i = 0; i < 400; i++)); do
		! "$BUILD/heddle" info | awk -v pid="$1" '$1 == pid { found = 1 } END { exit !found }' || return 0
		kill -0 "$1" 2>/dev/null || return 1
		sleep 0.05
	done
	return 1
}

# quiet NAME WHO…: nobody of these has written a line of ours
quiet() {
	local name=$1
	shift
	(cd "$scratch" && ! grep -E '^heddle\[[0-9]+\]' "$@" >log)
	judge "$name, $t" "it says something"
}

# each NAME SERVER CLIENT: a conversation that ends; one whose client is killed, and one whose server is
each() {
	local dies patience
	for dies in nobody client server; do
		patience=60
		"$2" $dies && "$3" $dies || { fail "$1: $dies is killed, $t" "it does not begin" && continue; }
		if [ $dies != nobody ]; then
			meets "$client" || { fail "$1: $dies is killed, $t" "they do not meet" && continue; }
			ends "${!dies}" 0
			patience=1
		fi
		ends "$client" $patience
		ends "$server" $patience
		quiet "$1: $dies is killed" client server
	done
}

much() { if [ "$1" = nobody ]; then echo "$2"; else echo "$3"; fi; }

ofi_server() {
	begin server "$peer" serve && address_in "$scratch/server" "$server"
}
ofi_client() { begin client "$peer" call "$ip" "$port" --count "$(much "$1" 100 100000000)"; }

verbs_server() {
	free_port
	begin server ibv_rc_pingpong -p "$port_last" -n "$(much "$1" 1000 100000000)" && wait_listen "$port_last" "$server"
}
verbs_client() { begin client ibv_rc_pingpong -p "$port_last" -n "$(much "$1" 1000 100000000)" 127.0.0.1; }

bw_server() {
	free_port
	begin server ib_send_bw -p "$port_last" -n "$(much "$1" 1000 100000000)" && wait_listen "$port_last" "$server"
}
bw_client() { begin client ib_send_bw -p "$port_last" -n "$(much "$1" 1000 100000000)" 127.0.0.1; }

cm_server() {
	next_port
	begin server rping -s -a 127.0.0.1 -p $port -C "$(much "$1" 10 100000000)" && wait_service "$server"
}
cm_client() { begin client rping -c -a 127.0.0.1 -p $port -C "$(much "$1" 10 100000000)"; }

# dtest for what ends by itself, and dapltest for what goes on
dat_server() {
	free_port
	if [ "$1" = nobody ]; then
		begin server stdbuf -oL dtest -P heddle && await "$scratch/server" 'Server is waiting|Server waiting' "$server"
	else
		begin server stdbuf -oL dapltest -T S -D heddle -n "$port_last" && await "$scratch/server" 'Service Point Ready' "$server"
	fi
}
dat_client() {
	if [ "$1" = nobody ]; then
		begin client dtest -P heddle -h 127.0.0.1
	else
		begin client dapltest -T T -s 127.0.0.1 -D heddle -n "$port_last" -i 100000000 -t 1 -w 1 client SR 64 server SR 64
	fi
}

for t in "${transports[@]}"; do
	each "libfabric, e2e-peer" ofi_server ofi_client
	each "verbs, ibv_rc_pingpong" verbs_server verbs_client
	each "verbs, ib_send_bw" bw_server bw_client
	each "rdma_cm, rping" cm_server cm_client
	one_at_a_time dat each "uDAPL" dat_server dat_client
done
finish
