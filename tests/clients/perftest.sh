#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# perftest: ib_{send,write,read}_{lat,bw} and ib_atomic_{lat,bw}. Every size of -a has its line, with figures that are possible.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh" "$@"
# shellcheck source=tests/clients/verbs.sh
. "$(dirname "$0")/verbs.sh"
need ib_send_lat ss

# lacking TRANSPORT MESSAGE program args…: both ends can be told at once that there is none of that here
lacking() {
	local t=$1
	free_port
	over "$t" 60 "${@:3}" -F -p "$port_last" >"$scratch/server" 2>&1 &
	wait_listen "$port_last" $!
	over "$t" 60 "${@:3}" -F -p "$port_last" 127.0.0.1 >"$scratch/log" 2>&1
	[ $? -eq 1 ] && ! wait $! && grep -q "$2" "$scratch/log" && grep -q "$2" "$scratch/server"
	judge "${*:3} $t" "it does not say so"
}

# run TRANSPORT LINES program args…
run() {
	local t=$1 lines=$2 name why
	name="${*:3} $t"
	pair "$name" "$t" 400 "${@:3}" -F || return
	if why=$(figures "$scratch/log" "$lines"); then pass "$name"; else fail "$name" "$why"; fi
}

for t in "${transports[@]}"; do
	if [ "$fast" = yes ]; then
		run "$t" 1 ib_send_lat -n 200
		run "$t" 1 ib_send_bw -n 500 -e
		run "$t" 23 ib_write_bw -a -n 20
		run "$t" 1 ib_write_lat -n 200
		run "$t" 1 ib_read_lat -n 200
		run "$t" 1 ib_read_bw -n 200
		run "$t" 1 ib_atomic_lat -n 200
		run "$t" 1 ib_atomic_bw -n 200
		run "$t" 1 ib_send_lat -c UD -n 200
		run "$t" 1 ib_send_bw -b -q 4 -Q 10 -l 10 -n 200 --report_gbits
		lacking "$t" 'Failed to create QP' ib_write_bw -c DC
		continue
	fi
	for op in send write read; do
		# few of each size: both ends keep a processor each, and on a busy machine each message waits for another round of all
		run "$t" 23 ib_${op}_lat -a -n 20
		run "$t" 23 ib_${op}_bw -a -n 20
		run "$t" 1 ib_${op}_bw -n 1000 -b
		[ $op = write ] || run "$t" 1 ib_${op}_bw -n 1000 -e # which it does not have for writes
		run "$t" 1 ib_${op}_bw -n 1000 -q 4
		run "$t" 1 ib_${op}_lat -n 1000 -d heddle1 -x 0
		[ $op = read ] || run "$t" 1 ib_${op}_lat -n 200 -c UC
		[ $op = read ] || run "$t" 23 ib_${op}_bw -a -n 20 -c UC
	done
	for p in ib_send_lat ib_read_lat ib_atomic_lat; do
		run "$t" 1 $p -n 1000 -e
	done
	run "$t" 1 ib_send_lat -n 1000 -c UD
	run "$t" 1 ib_send_bw -n 1000 -c UD
	# groups; of more than this a socket's buffer may lose something, for which the program would wait
	group=0:0:0:0:0:0:0:0:0:0:255:255:239:255:72
	[ "$t" = shm ] || group=0:0:0:0:0:0:0:0:0:0:255:255:239:255:73 # which may run at the same time
	run "$t" 1 ib_send_lat -n 500 -c UD -g -d heddle1 -x 0 -M $group:80
	run "$t" 1 ib_send_bw -n 100 -s 64 -c UD -g -d heddle1 -x 0 -M $group:81
	run "$t" 1 ib_send_bw -n 1000 -c XRC
	run "$t" 1 ib_send_lat -n 1000 -c XRC
	run "$t" 1 ib_write_bw -n 1000 -c XRC
	run "$t" 1 ib_read_lat -n 200 -c XRC
	run "$t" 1 ib_atomic_lat -n 200 -c XRC -d heddle1 -x 0
	run "$t" 1 ib_send_bw -n 1000 --use-srq
	run "$t" 1 ib_send_lat -n 1000 --use-srq
	run "$t" 1 ib_send_bw -n 1024 -s 8 -l 16
	# as people tune them
	run "$t" 1 ib_send_bw -n 200 -q 16 --mr_per_qp
	run "$t" 1 ib_send_bw -n 20 -q 200 -s 1024
	run "$t" 1 ib_send_bw -n 200 --use-srq -q 8
	run "$t" 1 ib_send_bw -n 200 -t 16 -r 16 -Q 4
	run "$t" 1 ib_send_bw -n 200 -l 8 --recv_post_list=8
	run "$t" 1 ib_send_bw -n 200 -s 100 -I 220 -S 3 -u 10 -m 1024
	run "$t" 1 ib_send_bw -n 200 -s 32 --inline_recv=64 --use_old_post_send
	run "$t" 1 ib_send_bw -n 200 --odp --report_gbits
	run "$t" 1 ib_send_bw -n 200 -c UD -q 4 -s 1024
	run "$t" 1 ib_send_bw -n 200 -c XRC -q 4 -s 1024
	run "$t" 1 ib_send_bw -n 200 -d heddle1 -x 0 --tclass=96
	run "$t" 1 ib_send_bw -n 200 -d heddle1 --ipv6
	run "$t" 1 ib_send_bw -D 1 -b --cpu_util
	run "$t" 1 ib_send_bw -n 200 --reversed
	run "$t" 1 ib_send_bw -n 200 --rate_limit=1 --rate_limit_type=SW
	run "$t" 1 ib_write_bw -n 200 -c UC -q 8 -l 8
	run "$t" 1 ib_write_bw -D 1 -q 2
	run "$t" 1 ib_read_bw -n 200 -o 4
	run "$t" 1 ib_atomic_bw -n 200 -q 4 -b
	run "$t" 1 ib_send_lat -n 200 -s 200 -I 200
	for c in UC UD XRC; do
		run "$t" 1 ib_send_lat -n 200 -c $c -e
		run "$t" 1 ib_send_bw -n 200 -c $c -s 2048 -b -q 2
	done
	# what finds no receive is lost, and perftest waits for it for ever: it makes as many receives as it sends messages by one queue pair, for
	# all queue pairs together
	for c in UC UD; do
		run "$t" 1 ib_send_bw -n 100 -c $c -s 1024 --use-srq
		run "$t" 1 ib_send_lat -n 200 -c $c --use-srq
	done
	run "$t" 12 ib_send_bw -a -n 20 -c UD
	run "$t" 23 ib_send_bw -a -n 20 --use-srq -e
	run "$t" 1 ib_send_bw -n 200 -b --use-srq -q 4 -e
	# queues of one place, long ones, and completions for few requests
	run "$t" 1 ib_send_bw -n 200 -t 1 -r 1
	run "$t" 1 ib_send_bw -n 20000 -t 8192 -r 8192 -s 64
	run "$t" 1 ib_send_bw -n 5000 -t 64 -Q 64 -N
	run "$t" 1 ib_send_bw -n 256 -t 64 -l 64 -s 8 -I 8
	run "$t" 1 ib_send_bw -n 512 --recv_post_list=64 -r 512
	run "$t" 1 ib_read_bw -n 200 -o 1 -q 4 -b
	run "$t" 1 ib_atomic_bw -n 512 -l 8 -q 2 -o 1
	run "$t" 1 ib_write_bw -n 100 -q 1000 -s 64
	run "$t" 1 ib_write_bw -n 100 -q 64 --mr_per_qp
	run "$t" 1 ib_write_bw -n 500 -s 10000 -m 256 -S 7 -u 31
	run "$t" 1 ib_write_bw -n 200 --odp
	run "$t" 1 ib_read_bw -n 200 --odp --perform_warm_up
	run "$t" 1 ib_write_bw -n 200 --ipv6 -d heddle1
	run "$t" 1 ib_write_bw -n 500 -s 64 --rate_limit=10000 --rate_units=p --rate_limit_type=SW
	run "$t" 1 ib_read_bw -n 200 --use_old_post_send --reversed
	run "$t" 1 ib_send_lat -n 200 -U -C
	run "$t" 1 ib_send_bw -D 1 -c UC -q 4
	for op in send write read atomic; do run "$t" 1 ib_${op}_lat -D 1; done
	lacking "$t" 'Failed to create QP' ib_send_bw -c DC
	lacking "$t" 'Failed to create QP' ib_send_bw -c SRD
	for a in FETCH_AND_ADD CMP_AND_SWAP; do
		run "$t" 1 ib_atomic_lat -n 1000 -A $a
		run "$t" 1 ib_atomic_bw -n 1000 -A $a
	done
done
finish
