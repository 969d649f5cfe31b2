#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# NetPIPE's NPopenmpi over Open MPI's libfabric transport: figures, and its own integrity check.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh" "$@"
# shellcheck source=tests/clients/mpi.sh
. "$(dirname "$0")/mpi.sh"
need mpirun NPopenmpi

# Every line of the figures has a size above the last one's, a rate above zero and a time above zero.
figures() {
	awk -v upto="$1" '
		NF == 3 {
			if ($1 <= last || $2 <= 0 || $3 <= 0) bad = bad " " $1
			last = $1
			rows++
		}
		END {
			if (rows < 10) print "only " rows + 0 " lines"
			if (last < upto) print "the sizes end at " last + 0
			if (bad != "") print "wrong figures at" bad
			exit rows < 10 || last < upto || bad != ""
		}' "$2"
}

netpipe() {
	local name="NetPIPE $1 bytes, $2${3:+, ${*:3}}" why
	rm -f "$scratch/np.out"
	if ! mpi "$2" 240 -np 2 NPopenmpi -u "$1" -n 20 -o "$scratch/np.out" "${@:3}" >"$scratch/log" 2>&1; then
		fail "$name" "it failed"
	elif why=$(figures $(($1 / 2)) "$scratch/np.out"); then
		pass "$name"
	else
		fail "$name" "$why"
	fi
}

# The integrity check prints a line for each size and complains on an error; it writes no figures.
integrity() {
	local name="NetPIPE integrity check, $1" lines
	mpi "$1" 240 -np 2 NPopenmpi -i -u 100000 -n 5 -o "$scratch/np.out" >"$scratch/log" 2>&1 || { fail "$name" "it failed"; return; }
	lines=$(grep -ciE 'integrity check passed' "$scratch/log")
	if [ "$lines" -ge 10 ] && ! grep -qi 'integrity check failed\|incorrect' "$scratch/log"; then
		pass "$name"
	else
		fail "$name" "$lines sizes passed"
	fi
}

for t in "${transports[@]}"; do
	netpipe 65536 "$t"
	integrity "$t"
	[ "$fast" = no ] || continue
	netpipe 4194304 "$t"
	netpipe 262144 "$t" -a
	netpipe 262144 "$t" -a -2 # without -a both ends send before either receives, which ends where messages are no longer buffered
	netpipe 65536 "$t" -z
done
finish
