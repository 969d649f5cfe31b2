#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# Debian's fi_pingpong over every size it knows, tagged and untagged, with and without data checks, connected
# (-e msg), and as it is without options: -e dgram, with all modes that it can.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh" "$@"
need fi_pingpong ss

# The sizes that it goes through, as it prints them: -S all up to the longest datagram, or those of no -S.
type=rdm
sizes() {
	local k
	case $type in
	dgram)
		type=rdm sizes | sed '/^16k$/q'
		return
		;;
	default)
		printf '%s\n' 64 256 1k 4k
		return
		;;
	esac
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
	local transport=$1 address=$2 server status ping=(fi_pingpong -p "$PROVIDER" -I "$iterations")
	shift 2
	[ "$type" = default ] || ping+=(-e "$type")
	free_port
	over "$transport" "$seconds" "${ping[@]}" -B "$port_last" "$@" >"$scratch/server" 2>&1 &
	server=$!
	wait_listen "$port_last" $server || { kill $server 2>/dev/null; cp "$scratch/server" "$scratch/log"; return 1; }
	over "$transport" "$seconds" "${ping[@]}" -P "$port_last" "$@" "$address" >"$scratch/log" 2>&1
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
		type=default
		run "fi_pingpong $t" "$t" 127.0.0.1
		type=msg
		run "fi_pingpong -e msg -c $t" "$t" 127.0.0.1 -S all -c
		type=rdm
		continue
	fi
	run "fi_pingpong msg -c $t" "$t" 127.0.0.1 -S all -m msg -c
	run "fi_pingpong tagged -c $t" "$t" 127.0.0.1 -S all -m tagged -c
	run "fi_pingpong msg $t" "$t" 127.0.0.1 -S all -m msg
	run "fi_pingpong tagged $t" "$t" 127.0.0.1 -S all -m tagged
	run "fi_pingpong ipv6 $t" "$t" ::1 -6 -S all -m tagged -c
	type=default
	run "fi_pingpong $t" "$t" 127.0.0.1
	type=msg
	run "fi_pingpong -e msg -c $t" "$t" 127.0.0.1 -S all -c
	run "fi_pingpong -e msg tagged -c $t" "$t" 127.0.0.1 -S all -m tagged -c
	type=dgram
	run "fi_pingpong dgram -c $t" "$t" 127.0.0.1 -S all -c
	type=rdm
	iterations=100 seconds=900 # more than there are places; each of 4,600 exchanges may have to wait for a processor
	run "fi_pingpong 100 iterations $t" "$t" 127.0.0.1 -S all -m tagged
	iterations=10 seconds=120
done
finish
