#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# What becomes of verbs programs that are killed, and of what they leave: verbs.sh [--tap] [--fast]. Other people's programs, and e2e-leaver.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/../clients/lib.sh" "$@"
# shellcheck source=tests/clients/netns.sh
. "$(dirname "$0")/../clients/netns.sh"
# shellcheck source=tests/clients/services.sh
. "$(dirname "$0")/../clients/services.sh"
need ib_write_bw ibv_rc_pingpong rping ss
leaver=$BUILD/tests/e2e/e2e-leaver

# start_server TRANSPORT program args…: it listens at $port_last; its pid is $server
start_server() {
	free_port
	start_again "$@"
}

start_again() {
	over "$1" 60 "${@:2}" -p "$port_last" >"$scratch/server" 2>&1 &
	server=$!
	wait_listen "$port_last" $server
}

# program_of PID: the program itself, behind the shells and "timeout" that run it
program_of() {
	local pid=$1 child
	while child=$(pgrep -P "$pid" | head -n 1) && [ -n "$child" ]; do pid=$child; done
	echo "$pid"
}

# meets PID: until the program behind it has a link
meets() {
	local i
	for ((i = 0; i < 400; i++)); do
		! "$BUILD/heddle" info | awk -v pid="$(program_of "$1")" '$1 == pid { found = 1 } END { exit !found }' || return 0
		kill -0 "$1" 2>/dev/null || return 1
		sleep 0.05
	done
	return 1
}

# end_of PID SECONDS: its exit status; 99 when it has not ended by then
end_of() {
	local i
	for ((i = 0; i < $2 * 20; i++)); do
		kill -0 "$1" 2>/dev/null || break
		sleep 0.05
	done
	! kill -0 "$1" 2>/dev/null || { kill -KILL "$(program_of "$1")" "$1" 2>/dev/null; wait "$1" 2>/dev/null; return 99; }
	wait "$1"
}

# killed_server TRANSPORT program args…: the client is busy when its server is killed, and must end in an error by itself
killed_server() {
	local t=$1 name="${*:2}, its server killed, $1" client status
	shift
	start_server "$t" "$@" -F || { fail "$name" "the server does not listen"; return; }
	over "$t" 60 "$@" -F -p "$port_last" 127.0.0.1 >"$scratch/log" 2>&1 &
	client=$!
	meets $client
	kill -KILL "$(program_of $server)"
	wait $server 2>/dev/null
	end_of $client 20
	status=$?
	[ $status -ne 0 ] && [ $status -ne 99 ] && grep -qiE 'status|error|fail' "$scratch/log"
	judge "$name" "the client ended with status $status"
}

# restart TRANSPORT: within few ports; the next server of the same name takes its client at once
restart() {
	local t=$1
	ports_take || return
	port_last=$((ports_first + 5))
	export HEDDLE_PORTS=$ports_first-$port_last
	start_server "$t" ibv_rc_pingpong -e -n 100000000
	over "$t" 60 ibv_rc_pingpong -e -n 100000000 -p "$port_last" 127.0.0.1 >"$scratch/log" 2>&1 &
	local client=$!
	meets $client
	kill -KILL "$(program_of $server)" "$(program_of $client)"
	wait $server $client 2>/dev/null
	start_again "$t" ibv_rc_pingpong -c -e -n 100 && over "$t" 30 ibv_rc_pingpong -c -e -n 100 -p "$port_last" 127.0.0.1 >"$scratch/log" 2>&1 &&
		wait $server
	judge "ibv_rc_pingpong again, at the same ports, $t" "it does not work after kill -9"
	unset HEDDLE_PORTS
}

# restart_cm TRANSPORT: the same for a service of rdma_cm
restart_cm() {
	local t=$1
	free_port
	port=$port_last
	for round in killed again; do
		over "$t" 30 rping -s -C 3 -a 127.0.0.1 -p "$port" >"$scratch/server" 2>&1 &
		server=$!
		wait_service $server
		[ $round != killed ] || { kill -KILL "$(program_of $server)" && wait $server 2>/dev/null; }
	done
	over "$t" 30 rping -c -V -C 3 -a 127.0.0.1 -p "$port" >"$scratch/log" 2>&1 && wait $server
	judge "rping again, at the same port, $t" "the service is not there after kill -9"
}

# own_malloc TRANSPORT: programs whose malloc is their own, without an aligned_alloc
own_malloc() {
	local t=$1 status
	free_port
	LD_PRELOAD=$BUILD/tests/e2e/own-malloc.so over "$t" 30 ibv_rc_pingpong -c -e -n 100 -p "$port_last" >"$scratch/server" 2>&1 &
	server=$!
	wait_listen "$port_last" $server
	LD_PRELOAD=$BUILD/tests/e2e/own-malloc.so over "$t" 30 ibv_rc_pingpong -c -e -n 100 -p "$port_last" 127.0.0.1 >"$scratch/log" 2>&1
	status=$?
	cat "$scratch/server" >>"$scratch/log"
	wait $server && [ $status -eq 0 ]
	judge "programs whose malloc is their own, $t" "the client ended with status $status"
}

for t in "${transports[@]}"; do
	own_malloc "$t"
	killed_server "$t" ib_send_bw -D 50
	if [ "$fast" = no ]; then
		killed_server "$t" ib_write_bw -D 50
		killed_server "$t" ib_read_bw -D 50
		killed_server "$t" ib_atomic_bw -D 50
	fi
	killed_server "$t" ib_send_bw -e -n 100000000
	restart "$t"
	restart_cm "$t"
done

# What is to be seen of programs in a network namespace of their own, and in folders that all share.
traces() {
	within 0 ss -Hltnu
	within 0 cat /proc/net/unix | awk 'NR > 1 && $NF ~ /^@/'
	find /dev/shm /tmp /run -maxdepth 1 -name '*heddle*' 2>/dev/null | sort
	pgrep -x e2e-leaver
}

if ! make 2>"$scratch/log"; then
	skip "nothing is left behind" "$(needs_namespaces)"
	finish
fi
before=$(traces)
for t in "${transports[@]}"; do
	for device in heddle0 heddle1; do
		for how in exit _exit kill; do
			within 0 "$BUILD/heddle" run "--transport=$t" -- "$leaver" $device $how >"$scratch/log" 2>&1
			status=$?
			[ $status -eq "$([ $how = kill ] && echo 137 || echo 0)" ] && grep -q '^leaver: left$' "$scratch/log"
			judge "a program that destroys nothing, $device, $how, $t" "exit status $status"
		done
	done
done
after=$(traces)
diff <(echo "$before") <(echo "$after") >"$scratch/log"
judge "nothing is left behind" "there is more than before"
finish
