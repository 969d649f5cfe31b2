#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# qperf: latency, bandwidth, and its own checks of atomic operations. It exits with 0 and prints zeros when nothing has moved, so each figure
# is looked at.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh" "$@"
# shellcheck source=tests/clients/verbs.sh
. "$(dirname "$0")/verbs.sh"
need qperf ss

tests=(rc_lat rc_bw ud_lat rc_rdma_write_bw ver_rc_compare_swap ver_rc_fetch_add)
[ "$fast" = yes ] || tests+=(rc_bi_bw rc_rdma_read_bw rc_rdma_read_lat rc_rdma_write_lat rc_rdma_write_poll_lat uc_lat uc_bw
	uc_rdma_write_bw uc_rdma_write_lat ud_bw rc_compare_swap_mr rc_fetch_add_mr)

# figures FILE: "latency = 1.2 us", "bw = 1 GB/sec", "msg_rate = …": at least one, none of them zero
figures() {
	awk '
		$2 == "=" { rows++; if ($3 + 0 <= 0) bad = $0 }
		/[Ff]ailed|[Ee]rror|mismatch/ { bad = $0 }
		END {
			if (bad != "") print bad
			else if (!rows) print "no figure"
			exit bad != "" || !rows
		}' "$1"
}

for t in "${transports[@]}"; do
	free_port
	over "$t" 300 qperf -lp "$port_last" >"$scratch/server" 2>&1 &
	server=$!
	wait_listen "$port_last" $server || { fail "qperf server $t" "does not listen"; continue; }
	for test in "${tests[@]}"; do
		name="qperf $test $t"
		if ! over "$t" 60 qperf -lp "$port_last" -t 1 127.0.0.1 "$test" >"$scratch/log" 2>&1; then
			fail "$name" "bad exit status"
		elif why=$(figures "$scratch/log"); then
			pass "$name"
		else
			fail "$name" "$why"
		fi
	done
	over "$t" 20 qperf -lp "$port_last" 127.0.0.1 quit >/dev/null 2>&1 # a signal would reach the shell that runs it
	wait $server
done
finish
