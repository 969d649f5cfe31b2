#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# Debian's fi_pingpong -e rdm over every size it knows, tagged and untagged, with and without data checks.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh" "$@"
need fi_pingpong ss

# The sizes of -S all, as fi_pingpong prints them.
sizes() {
	local k
	echo 0
	for k in 1 2 3 4 6 8 12 16 24 32 48 64 96 128 192 256 384 512 768; do echo $k; done
	for k in 1 1.5 2 3 4 6 8 12 16 24 32 48 64 96 128 192 256 384 512 768; do echo ${k}k; done
	for k in 1 1.5 2 3 4 6; do echo ${k}m; done
}

# table FILE: is it all there?  A line for each size, in order, with all messages sent and acknowledged, and
# figures above zero (fi_pingpong prints times to the nearest hundredth of a second, and rates likewise).
table() {
	awk -v want="$(sizes | tr '\n' ' ')" -v iterations="$iterations" '
		BEGIN { n = split(want, size, " ") }
		$1 == "bytes" { next }
		NF == 8 {
			rows++
			if ($1 != size[rows] || $2 != iterations || $3 != "=" iterations) bad = bad " " $1
			if ($7 + 0 <= 0 || ($1 ~ /[km]$/ && $6 + 0 <= 0)) bad = bad " " $1 "(figures)"
		}
		END {
			if (rows != n) print rows + 0 " lines, not " n
			if (bad != "") print "wrong lines:" bad
			exit rows != n || bad != ""
		}' "$1"
}

# both TRANSPORT ADDRESS args…: server and client; the client's table is in $scratch/log
both() {
	local transport=$1 address=$2 server status
	shift 2
	free_port
	over "$transport" "$seconds" fi_pingpong -p "$PROVIDER" -e rdm -B "$port_last" -I "$iterations" "$@" \
		>"$scratch/server" 2>&1 &
	server=$!
	wait_listen "$port_last" $server || { kill $server 2>/dev/null; cp "$scratch/server" "$scratch/log"; return 1; }
	over "$transport" "$seconds" fi_pingpong -p "$PROVIDER" -e rdm -P "$port_last" -I "$iterations" "$@" \
		"$address" >"$scratch/log" 2>&1
	status=$?
	wait $server || { status=$? && cat "$scratch/server" >>"$scratch/log"; }
	return $status
}

run() {
	local name=$1 why
	both "${@:2}" || { fail "$name" "exit status $?"; return; }
	if why=$(table "$scratch/log") && why=$(table "$scratch/server"); then
		pass "$name"
	else
		fail "$name" "$why"
	fi
}

# Checking its data takes fi_pingpong far longer than moving it: the short selection checks one mode of each.
seconds=120 iterations=10
for t in "${transports[@]}"; do
	if [ "$fast" = yes ]; then
		if [ "$t" = shm ]; then mode=tagged other=msg; else mode=msg other=tagged; fi
		run "fi_pingpong $mode -c $t" "$t" 127.0.0.1 -S all -m $mode -c
		run "fi_pingpong $other $t" "$t" 127.0.0.1 -S all -m $other
		continue
	fi
	run "fi_pingpong msg -c $t" "$t" 127.0.0.1 -S all -m msg -c
	run "fi_pingpong tagged -c $t" "$t" 127.0.0.1 -S all -m tagged -c
	run "fi_pingpong msg $t" "$t" 127.0.0.1 -S all -m msg
	run "fi_pingpong tagged $t" "$t" 127.0.0.1 -S all -m tagged
	run "fi_pingpong ipv6 $t" "$t" ::1 -6 -S all -m tagged -c
	iterations=500
	run "fi_pingpong 500 iterations $t" "$t" 127.0.0.1 -S all -m tagged
	iterations=10
done
finish
