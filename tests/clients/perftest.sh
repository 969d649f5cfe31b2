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

# table FILE LINES: so many lines of figures (a size, iterations, then numbers above zero), and no complaint
table() {
	awk -v lines="$2" '
		$1 ~ /^[0-9]+$/ && $2 ~ /^[0-9]+$/ && NF >= 5 {
			rows++
			if ($NF + 0 <= 0 || $2 + 0 <= 0 || (rows > 1 && $1 + 0 <= last + 0)) bad = bad " " $1
			last = $1
		}
		/[Cc]ouldn.t|[Ff]ailed|[Ee]rror|Completion with/ { complaint = $0 }
		END {
			if (complaint != "") print complaint
			else if (rows != lines) print rows + 0 " lines of figures, not " lines
			else if (bad != "") print "wrong lines:" bad
			exit complaint != "" || rows != lines || bad != ""
		}' "$1"
}

# run TRANSPORT LINES program args…
run() {
	local t=$1 lines=$2 name why
	name="${*:3} $t"
	pair "$name" "$t" 400 "${@:3}" -F || return
	if why=$(table "$scratch/log" "$lines"); then pass "$name"; else fail "$name" "$why"; fi
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
		continue
	fi
	for op in send write read; do
		# both ends of ib_write_lat keep a processor each for memory alone: on a busy machine, each write waits for another round of all
		n=100
		[ $op = write ] && n=20
		run "$t" 23 ib_${op}_lat -a -n $n
		run "$t" 23 ib_${op}_bw -a -n 100
		run "$t" 1 ib_${op}_bw -n 1000 -b
		[ $op = write ] || run "$t" 1 ib_${op}_bw -n 1000 -e # which it does not have for writes
		run "$t" 1 ib_${op}_bw -n 1000 -q 4
		run "$t" 1 ib_${op}_lat -n 1000 -d heddle1 -x 0
		[ $op = read ] || run "$t" 23 ib_${op}_lat -a -n $n -c UC
		[ $op = read ] || run "$t" 23 ib_${op}_bw -a -n 100 -c UC
	done
	for p in ib_send_lat ib_read_lat ib_atomic_lat; do
		run "$t" 1 $p -n 1000 -e
	done
	run "$t" 1 ib_send_lat -n 1000 -c UD
	run "$t" 1 ib_send_bw -n 1000 -c UD
	# groups; of more than this a socket's buffer may lose something, for which the program would wait
	run "$t" 1 ib_send_lat -n 500 -c UD -g -d heddle1 -x 0 -M 0:0:0:0:0:0:0:0:0:0:255:255:239:255:72:80
	run "$t" 1 ib_send_bw -n 100 -s 64 -c UD -g -d heddle1 -x 0 -M 0:0:0:0:0:0:0:0:0:0:255:255:239:255:72:81
	run "$t" 1 ib_send_bw -n 1000 -c XRC
	run "$t" 1 ib_send_lat -n 1000 -c XRC
	run "$t" 1 ib_write_bw -n 1000 -c XRC
	run "$t" 1 ib_read_lat -n 200 -c XRC
	run "$t" 1 ib_atomic_lat -n 200 -c XRC -d heddle1 -x 0
	run "$t" 1 ib_send_bw -n 1000 --use-srq
	run "$t" 1 ib_send_lat -n 1000 --use-srq
	run "$t" 1 ib_send_bw -n 1024 -s 8 -l 16
	for a in FETCH_AND_ADD CMP_AND_SWAP; do
		run "$t" 1 ib_atomic_lat -n 1000 -A $a
		run "$t" 1 ib_atomic_bw -n 1000 -A $a
	done
done
finish
