#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# Programs of verbs between two network namespaces, as between hosts: rdma-core's pingpong with its data checked, perftest and qperf, on
# both devices, by LID and by GID; and with the drop-in instead of the preload.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh" "$@"
# shellcheck source=tests/clients/netns.sh
. "$(dirname "$0")/netns.sh"
# shellcheck source=tests/clients/verbs.sh
. "$(dirname "$0")/verbs.sh"
need ip ss ibv_rc_pingpong ib_send_lat qperf

# at 0|1 SECONDS program…: runs it there; how: preload or drop-in
how=preload
at() {
	local host=$1 seconds=$2
	shift 2
	case $how in
	preload) over "$transport" "$seconds" ip netns exec "${names[$host]}" "$@" ;;
	drop-in) within "$host" env HEDDLE_TRANSPORT="$transport" LD_LIBRARY_PATH="$BUILD/compat" timeout -k 5 "$seconds" "$@" ;;
	esac
}

listens() {
	local i
	for ((i = 0; i < 400; i++)); do
		! within 0 ss -Hltn "sport = :$port_last" | grep -q . || return 0
		kill -0 "$1" 2>/dev/null || return 1
		sleep 0.05
	done
	return 1
}

# ends program args…: the client's output in $scratch/log, and the status of the end that ended badly
ends() {
	local server status
	free_port
	at 0 120 "$@" -p "$port_last" >"$scratch/server" 2>&1 &
	server=$!
	if listens $server && at 1 120 "$@" -p "$port_last" "${address[0]}" >"$scratch/log" 2>&1; then status=0; else status=$?; fi
	wait $server || { status=$? && sed 's/^/server: /' "$scratch/server" >>"$scratch/log"; }
	return $status
}

# pingpong PATTERN program args…: passes when the client prints that, and no complaint, and both end well
pingpong() {
	ends "${@:2}" && grep -qE "$1" "$scratch/log" && ! grep -qE 'invalid data|[Cc]ouldn.t|Completion with' "$scratch/log"
	judge "${*:2} between hosts, $transport, $how" "it ended badly, or says something else"
}

# perftest LINES program args…
perftest() {
	local why=
	ends "${@:2}" -F && why=$(figures "$scratch/log" "$1")
	judge "${*:2} between hosts, $transport, $how" "${why:-it ended badly}"
}

# qperf's second argument is the server
qperfs() {
	local server test
	free_port
	at 0 120 qperf -lp "$port_last" >"$scratch/server" 2>&1 &
	server=$!
	listens $server
	for test in "$@"; do
		at 1 60 qperf -lp "$port_last" -t 1 "${address[0]}" "$test" >"$scratch/log" 2>&1 &&
			awk '$2 == "=" { n++; if ($3 + 0 <= 0) bad = 1 } END { exit !n || bad }' "$scratch/log"
		judge "qperf $test between hosts, $transport" "no figures"
	done
	at 1 20 qperf -lp "$port_last" "${address[0]}" quit >"$scratch/log" 2>&1
	wait $server
}

if ! make 2>"$scratch/log"; then
	skip "verbs between hosts" "$(needs_namespaces)"
	finish
fi
transport=tcp
pingpong 'iters in' ibv_rc_pingpong -c -e -n 200
perftest 1 ib_write_bw -d heddle1 -x 0 -n 200
if [ "$fast" = no ]; then
	for kind in rc uc ud srq; do
		pingpong 'iters in' ibv_${kind}_pingpong -c -n 200
		pingpong 'iters in' ibv_${kind}_pingpong -e -n 200
	done
	pingpong '^success$' ibv_xsrq_pingpong -n 200
	pingpong '^success$' ibv_xsrq_pingpong -o -e -n 200 -d heddle1 -g 0
	pingpong 'iters in' ibv_rc_pingpong -c -d heddle1 -g 0 -i 1 -n 200
	for program in ib_send_lat ib_send_bw ib_write_lat ib_read_lat ib_read_bw ib_atomic_lat ib_atomic_bw; do
		perftest 1 $program -n 200 -i 1
		perftest 1 $program -n 200 -d heddle1 -x 0
	done
	perftest 23 ib_send_bw -a -n 20
	perftest 23 ib_write_bw -a -n 20
	perftest 23 ib_read_bw -a -n 20
	perftest 1 ib_send_bw -b -q 4 -n 200
	perftest 1 ib_send_bw -c UC -n 200
	perftest 1 ib_write_lat -c UC -n 200
	perftest 1 ib_send_bw -c UD -n 200
	perftest 1 ib_write_bw -c XRC -n 200
	perftest 1 ib_send_lat -c XRC -e -n 200
	perftest 1 ib_send_lat -c UD -n 200
	perftest 1 ib_send_bw --use-srq -e -n 200
	qperfs rc_lat rc_bw ud_lat rc_rdma_write_bw ver_rc_compare_swap ver_rc_fetch_add
	transport=auto # left to itself it finds out that memory cannot be shared here
	pingpong 'iters in' ibv_rc_pingpong -c -n 200
	perftest 1 ib_write_bw -n 200
	transport=tcp how=drop-in
	pingpong 'iters in' ibv_rc_pingpong -c -n 200
fi
finish
