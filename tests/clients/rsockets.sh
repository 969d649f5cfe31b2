#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# Debian's programs of rsockets: rstream, riostream, udpong and rcopy; and programs of plain sockets made ones of rsockets by librspreload. On
# one host, and between two network namespaces. Judged by their figures, and by the data that they compare.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh" "$@"
# shellcheck source=tests/clients/netns.sh
. "$(dirname "$0")/netns.sh"
# shellcheck source=tests/clients/services.sh
. "$(dirname "$0")/services.sh"
need rstream riostream udpong rcopy
[ "$fast" = yes ] || need iperf iperf3
rspreload=/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so
[ -e $rspreload ] || { echo "rsockets.sh: $rspreload is not installed" >&2 && exit 2; }

seconds=120
to=127.0.0.1 # where the client calls
bound=()     # and the server is to be, where it would not listen for both families
where1=(env) # where the client does
waits=wait_service

# For servers that listen by TCP until they are called, as librspreload does in programs that fork.
wait_tcp() {
	wait_listen "$port" "$1"
}

# calls TRANSPORT client…: again, when the server has its port and does not listen yet
calls() {
	local i status
	for ((i = 0; i < 20; i++)); do
		over "$1" "$seconds" "${where1[@]}" "${@:2}" >"$scratch/log" 2>&1
		status=$?
		[ $status -ne 0 ] && grep -q refused "$scratch/log" || return $status
		sleep 0.2
	done
	return $status
}

# both TRANSPORT server… -- client…: their output is in $scratch/server and $scratch/log
both() {
	local transport=$1 server=() pid status
	shift
	while [ "$1" != -- ]; do server+=("$1") && shift; done
	shift
	over "$transport" "$seconds" "${where0[@]}" "${server[@]}" >"$scratch/server" 2>&1 &
	pid=$!
	$waits $pid || { kill "$(pgrep -P $pid)" 2>/dev/null; cp "$scratch/server" "$scratch/log"; return 1; }
	calls "$transport" "$@"
	status=$?
	wait $pid || { status=1 && sed 's/^/server: /' "$scratch/server" >>"$scratch/log"; }
	return $status
}

# figures ROWS: so many lines of them, all above zero, at both ends
figures() {
	local f
	for f in log server; do
		awk -v want="$1" 'NF == 8 && $1 != "name" { n++; if ($7 + 0 < 0 || $8 + 0 <= 0) bad = 1 } END { exit bad || n != want }' "$scratch/$f" ||
			return 1
	done
}

# streams ROWS TRANSPORT program args…: the same at both ends
streams() {
	local rows=$1 transport=$2 status
	shift 2
	next_port
	both "$transport" "$1" "${bound[@]}" -p $port "${@:2}" -- "$1" -s "$to" -p $port "${@:2}" && figures "$rows" && ! grep -qi 'error\|fail\|data.*invalid' "$scratch/log"
	judge "$*, $transport" "not all figures"
}

# copies TRANSPORT BYTES
copies() {
	local size=$2 pid
	next_port
	head -c "$size" /dev/urandom >"$scratch/sent"
	rm -f "$scratch/got"
	over "$1" "$seconds" "${where0[@]}" rcopy -p $port >"$scratch/server" 2>&1 &
	pid=$!
	wait_service $pid && calls "$1" rcopy "$scratch/sent" "$to:$scratch/got" -p $port && cmp "$scratch/sent" "$scratch/got" >>"$scratch/log" 2>&1
	judge "rcopy of $size bytes, $1" "it is not the same"
	kill "$(pgrep -P $pid)" 2>/dev/null # over is a function: its program is a child of $pid
	wait $pid 2>/dev/null
}

# plain TRANSPORT SETTINGS args…: rstream with sockets, which librspreload makes rsockets; the server has no service then but that of rsockets
plain() {
	local transport=$1 settings=$2 rows=1
	shift 2
	next_port
	# a server that forks has its figures in the child
	[[ " $* " != *" -T f "* ]] || rows=
	[ "$settings" != RDMAV_FORK_SAFE=1 ] || waits=wait_tcp
	# shellcheck disable=SC2086
	LD_PRELOAD=$rspreload both "$transport" env $settings rstream -p $port -S 5000 -I 5 -C 10 "$@" -- \
		env $settings rstream -s "$to" -p $port -S 5000 -I 5 -C 10 "$@" && { [ -z "$rows" ] || figures $rows; } && grep -q '^custom' "$scratch/log"
	judge "rstream $* with librspreload and $settings, $transport" "not all figures"
	waits=wait_service
}

# pongs TRANSPORT args…: its server never ends; datagrams that are lost are sent again
pongs() {
	local transport=$1 pid
	shift
	next_port
	space=111
	over "$transport" "$seconds" "${where0[@]}" udpong -b "$to" -p $port "$@" >"$scratch/server" 2>&1 &
	pid=$!
	wait_service $pid && over "$transport" "$seconds" "${where1[@]}" udpong -s "$to" -p $port -S 1000 -C 100 "$@" >"$scratch/log" 2>&1 &&
		grep -qE '^custom +1000 +[12]00' "$scratch/log"
	judge "udpong $*, $transport" "no figures"
	kill "$(pgrep -P $pid)" 2>/dev/null
	wait $pid 2>/dev/null
}

# perfs TRANSPORT args…: iperf3, whose control connection and streams are rsockets. All that was sent has arrived, nothing was sent
# again, and what it prints of the connection is no nonsense. Datagrams may be lost, but not all.
perfs() {
	local transport=$1
	next_port
	LD_PRELOAD=$rspreload both "$transport" iperf3 -s -1 -p $port -- iperf3 -c "$to" -p $port -t 1 -f m "${@:2}" &&
		awk '{ sub(/^(\[[^]]*\])+ */, "") }
			/sender$/ { sent++; if ($3 <= 0 || $5 <= 0 || $7 != 0) bad = 1 }
			/receiver$/ { got++; if ($3 <= 0) bad = 1 }
			/Bytes *$/ && $(NF-1) + 0 > 1000000 { bad = 1 }
			END { exit bad || !sent || sent != got }' "$scratch/log" && ! grep -q 'not available' "$scratch/log"
	judge "iperf3 ${*:2} with librspreload, $transport" "no figures, or nonsense"
}

# iperfs TRANSPORT N: iperf 2, which calls so often before it says anything, so before its server accepts the second one. Its server never ends.
iperfs() {
	local pid
	next_port
	LD_PRELOAD=$rspreload over "$1" "$seconds" "${where0[@]}" iperf -s -p $port >"$scratch/server" 2>&1 &
	pid=$!
	wait_service $pid && LD_PRELOAD=$rspreload calls "$1" iperf -c "$to" -p $port -t 1 -P "$2" && [ "$(grep -c 'bits/sec' "$scratch/log")" -ge "$2" ]
	judge "iperf -P $2 with librspreload, $1" "not all figures"
	kill "$(pgrep -P $pid)" 2>/dev/null
	wait $pid 2>/dev/null
}

# Nobody listens: the client hears of it.
nobodies() {
	next_port
	! over "$1" 20 rstream -s "$to" -p $port -T b >"$scratch/log" 2>&1 && grep -q 'refused' "$scratch/log"
	judge "rstream calls nobody, $1" "it does not hear of it"
}

for t in "${transports[@]}"; do
	streams 1 "$t" rstream -S 64 -I 500 -C 1
	streams 1 "$t" rstream -S 30000 -I 5 -C 20 -T b -T v
	streams 1 "$t" riostream -S 5000 -I 10 -C 10 -T v
	copies "$t" 3000000
	nobodies "$t"
	pongs "$t"
	plain "$t" RS_SQ_SIZE=64 -T s
	[ $fast = no ] || continue
	for mode in "" "-T b" "-T n" "-T a" "-T r" "-T v" "-T n -T v" "-i 500" "-k 5" "-B 2000000"; do
		# shellcheck disable=SC2086
		streams 1 "$t" rstream -S 3000 -I 20 -C 20 $mode
	done
	for size in 64 4096 65536 1048576; do streams 1 "$t" rstream -S $size -I 100 -C 1; done
	# each size and each mode over both transports; each size with each mode over one of them, at least
	odd=0
	[ "$t" = shm ] || odd=1
	for size in 1 1000 16384 16385 1000000; do
		for mode in "-T b" "-T n" "-T a"; do
			odd=$((1 - odd))
			# shellcheck disable=SC2086
			[ $odd = 0 ] || streams 1 "$t" rstream -S $size -I 10 -C 20 -T v $mode
		done
	done
	for mode in "" "-T b" "-T n" "-T a" "-T v"; do
		# shellcheck disable=SC2086
		streams 1 "$t" riostream -S 20000 -I 10 -C 10 $mode
	done
	for mode in "-T b" "-T n" "-T a" "-T e"; do
		# shellcheck disable=SC2086
		pongs "$t" $mode
	done
	for mode in "-T s -T b" "-T s -T n" "-T s -T a"; do
		# shellcheck disable=SC2086
		plain "$t" "RS_SQ_SIZE=64 RS_RQ_SIZE=16 RS_INLINE=128" $mode
	done
	for mode in "" "-R" "-P 3" "--bidir" "-N -w 256K -M 1400 -l 4K" "-S 8" "-u" "-u -R -P 2 -b 20M"; do
		# shellcheck disable=SC2086
		perfs "$t" $mode
	done
	for count in 1 2 4; do iperfs "$t" $count; done
	plain "$t" RDMAV_FORK_SAFE=1 -T s
	plain "$t" RDMAV_FORK_SAFE=1 -T f
	# beside the preload the drop-in stands back
	LD_LIBRARY_PATH=$BUILD/compat streams 1 "$t" rstream -S 4000 -I 10 -C 10
	streams 1 "$t" rstream -f ip -S 5000 -I 10 -C 10
	copies "$t" 1
	copies "$t" 100000000
done

# ---- two hosts ----

if ! make 2>"$scratch/log"; then
	skip "rstream across namespaces" "$(needs_namespaces)"
	finish
fi
where0=(ip netns exec "${names[0]}") where1=(ip netns exec "${names[1]}")
to=${address[0]}
streams 1 auto rstream -S 30000 -I 5 -C 20 -T b -T v
if [ $fast = no ]; then
	streams 1 auto rstream -S 4096 -I 100 -C 1
	pongs auto
	plain auto RS_SQ_SIZE=64 -T s
	streams 1 auto riostream -S 5000 -I 10 -C 10 -T v
	copies auto 30000000
	to=${address6[0]}
	bound=(-b "$to")
	streams 1 auto rstream -f ipv6 -S 30000 -I 5 -C 20 -T v
fi
finish
