#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# rdma-core's ibv_{rc,uc,ud,srq,xsrq}_pingpong: plain, with data checks (-c), sleeping on events (-e), and through the newer calls (-N); on both
# devices. Its figures have to be there, and be possible.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh" "$@"
# shellcheck source=tests/clients/verbs.sh
. "$(dirname "$0")/verbs.sh"
need ibv_rc_pingpong ss

# figures FILE BYTES ITERATIONS: "B bytes in T seconds = R Mbit/sec", "N iters in T seconds = U usec/iter", no complaint
figures() {
	awk -v bytes="$2" -v iterations="$3" '
		/bytes in .* seconds/ { if ($1 == bytes && $7 > 0) ++good }
		/iters in .* seconds/ { if ($1 == iterations && $7 > 0) ++good }
		/invalid data|[Ff]ailed|error/ { bad = $0 }
		END {
			if (bad != "") print bad
			if (good != 2) print good + 0 " of 2 lines with figures"
			exit bad != "" || good != 2
		}' "$1"
}

# run PROGRAM TRANSPORT ITERATIONS BYTES args…: BYTES is what it counts for an iteration
run() {
	local program=$1 t=$2 n=$3 bytes=$4 name why
	name="$program ${*:5} $t"
	pair "$name" "$t" 60 "$program" -n "$n" "${@:5}" || return
	if why=$(figures "$scratch/log" "$((bytes * n))" "$n") && why=$(figures "$scratch/server" "$((bytes * n))" "$n"); then
		pass "$name"
	else
		fail "$name" "$why"
	fi
}

# lacking NAME TRANSPORT MESSAGE program args…: what neither this device nor these options have is said by the program itself, at once
lacking() {
	local name=$1 t=$2
	over "$t" 60 "${@:4}" >"$scratch/log" 2>&1
	[ $? -eq 1 ] && grep -qx "$3" "$scratch/log"
	judge "$name, $t" "it does not say so"
}

# xsrq prints no figures: it says "success" when each of so many messages has been answered
xsrq() {
	local t=$1 name
	name="ibv_xsrq_pingpong ${*:2} $t"
	pair "$name" "$t" 60 ibv_xsrq_pingpong "${@:2}" || return
	if grep -qx success "$scratch/log" && grep -qx success "$scratch/server"; then pass "$name"; else fail "$name" "no success"; fi
}

# clients CLIENTS TRANSPORT args…: so many of them at one server, which answers each by the queue pairs of all others as well
clients() {
	local n=$1 t=$2 name i server status=0 pids=()
	name="ibv_xsrq_pingpong -c $n ${*:3} $t"
	free_port
	over "$t" 60 ibv_xsrq_pingpong -p "$port_last" -c "$n" "${@:3}" >"$scratch/log" 2>&1 &
	server=$!
	wait_listen "$port_last" $server || status=1
	for ((i = 0; i < n; i++)); do
		over "$t" 60 ibv_xsrq_pingpong -p "$port_last" "${@:3}" 127.0.0.1 >"$scratch/client.$i" 2>&1 &
		pids+=($!)
	done
	for i in $server "${pids[@]}"; do wait "$i" || status=1; done
	for ((i = 0; i < n; i++)); do grep -qx success "$scratch/client.$i" || status=1; done
	grep -qx success "$scratch/log" || status=1
	cat "$scratch"/client.* >>"$scratch/log"
	if [ $status -eq 0 ]; then pass "$name"; else fail "$name" "not all of them succeeded"; fi
}

# two messages of this size for each iteration; the SRQ one counts those of all its queue pairs, UD its datagrams
for t in "${transports[@]}"; do
	for kind in rc uc ud srq; do
		p=ibv_${kind}_pingpong
		size=4096
		[ $kind != ud ] || size=1024
		if [ "$fast" = yes ]; then
			run "$p" "$t" 200 $((2 * size)) -c
			run "$p" "$t" 200 $((2 * size)) -e
			continue
		fi
		run "$p" "$t" 1000 $((2 * size))
		run "$p" "$t" 1000 $((2 * size)) -c
		run "$p" "$t" 1000 $((2 * size)) -e
		run "$p" "$t" 1000 $((2 * size)) -c -e
		run "$p" "$t" 1000 $((2 * size)) -d heddle1 -g 0 -c
		[ $kind != rc ] || run "$p" "$t" 1000 $((2 * size)) -N -c
		[ $kind != rc ] || run "$p" "$t" 1000 $((2 * size)) -t
		[ $kind = ud ] || run "$p" "$t" 100 $((2 * 1000000)) -s 1000000 -c
		[ $kind = ud ] || run "$p" "$t" 100 128 -s 64 -c
	done
	# memory on demand, prefetched; of the device; one receive at a time
	run ibv_rc_pingpong "$t" 200 8192 -o -P -c
	run ibv_rc_pingpong "$t" 200 8192 -j -N -c
	run ibv_rc_pingpong "$t" 200 8192 -r 1 -m 256 -l 3
	lacking "ibv_rc_pingpong -O" "$t" "The device doesn't support implicit ODP" ibv_rc_pingpong -O
	lacking "ibv_ud_pingpong -s 5000" "$t" 'Requested size larger than port MTU (4096)' ibv_ud_pingpong -s 5000
	xsrq "$t" -n 200
	xsrq "$t" -n 200 -e
	clients 2 "$t" -n 200 -e
	[ "$fast" = no ] || continue
	run ibv_rc_pingpong "$t" 200 8192 -o
	run ibv_rc_pingpong "$t" 200 8192 -o -N
	run ibv_rc_pingpong "$t" 200 8192 -j -t
	lacking "ibv_rc_pingpong -j -o" "$t" "DM memory region can't be on demand" ibv_rc_pingpong -j -o
	lacking "ibv_srq_pingpong -r 3" "$t" 'rx_depth 3 is too small for 16 QPs -- must have at least one receive per QP.' ibv_srq_pingpong -r 3
	run ibv_uc_pingpong "$t" 200 $((2 * 300000)) -s 300000 -r 1 -m 4096 -l 5 -c
	run ibv_ud_pingpong "$t" 200 $((2 * 4096)) -s 4096 -r 3 -l 5 -c
	run ibv_srq_pingpong "$t" 100 8192 -q 1 -c
	run ibv_srq_pingpong "$t" 100 8192 -q 64 -r 64 -c
	run ibv_srq_pingpong "$t" 100 8192 -o -e -m 2048 -l 2
	xsrq "$t" -n 100 -o -m 256 -l 3
	xsrq "$t" -n 1000 -d heddle1 -g 0
	xsrq "$t" -n 100 -s 1000000
	clients 3 "$t" -n 200
	clients 4 "$t" -n 100 -d heddle1 -g 0 -e
	clients 2 "$t" -n 20 -s 1000000
done
finish
