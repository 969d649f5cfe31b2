#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# The programs of Debian's dapl2-utils, which find the provider through libdat2. They exit with 0 whatever happens, and dapltest prints "End of
# Work" when nothing has worked: so each is judged by the line that says that it has passed, by its figures, and by what it complains of.
# Their connection qualifiers and ports are fixed on a host; one run of this script waits for another.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh" "$@"
need dtest dtestcm dtestsrq dtestx dapltest stdbuf flock

ports_lock dat 600 || { echo "dat.sh: another run does not end" >&2 && exit 2; }
seconds=120 said=0
complaint='[Ee]rror|ERROR|FAIL|[Ff]ailed|[Ww]arning|Test Error|bad |mismatch'

# serve PATTERN program args…: starts a server over $t; returns when it prints that, and somebody listens at the TCP port $listens: of some of these
# programs the ends tell each other where they are by a socket that they open after they have said that they wait
serve() {
	local ready=$1
	shift
	: >"$scratch/server" # by this shell: the next line may come to it later than we read, and the last server's words still stand there
	over "$t" $seconds stdbuf -oL "$@" >"$scratch/server" 2>&1 &
	server=$!
	await "$scratch/server" "$ready" $server && { [ -z "${listens:-}" ] || wait_listen "$listens" $server; }
}

# what the server has said before is not looked at again
call() {
	[ ! -f "$scratch/server" ] || said=$(wc -l <"$scratch/server")
	over "$t" $seconds "$@" >"$scratch/log" 2>&1
}

# does the client complain, or the server since the client was called?
complains() {
	tail -n "+$((said + 1))" "$scratch/server" | cat - "$scratch/log" | grep -Eq "$complaint"
}

end_server() {
	kill $server 2>/dev/null
	wait $server 2>/dev/null
}

# verdict NAME reason: passes without a reason
verdict() {
	if [ -z "$2" ]; then
		pass "$1"
	else
		{ echo "-- server:" && tail -n 12 "$scratch/server"; } >>"$scratch/log"
		fail "$1" "$2"
	fi
}

# pair NAME READY PASSED program args…: server and client, which print PASSED both; $server_also, $client_also: their own arguments;
# $figures: a command that reads what the client printed, and prints what is wrong with it
pair() {
	local name="$1 $t" ready=$2 says=$3 why=
	shift 3
	# shellcheck disable=SC2086 # several arguments
	if ! serve "$ready" "$@" $server_also; then
		end_server
		: >"$scratch/log"
		verdict "$name" "the server does not get ready"
		return
	fi
	# shellcheck disable=SC2086
	call "$@" $client_also || why="client: exit status $?"
	wait $server || why=${why:-server: exit status $?}
	grep -Eq "$says" "$scratch/log" || why="the client does not print '$says'"
	grep -Eq "$says" "$scratch/server" || why="the server does not print '$says'"
	! complains || why="complains"
	[ -n "$why" ] || why=$($figures)
	verdict "$name" "$why"
}

# "…, 7224.68 MB/sec" or "BW 1.70 MB/s", above zero
dtest_figures() {
	awk '/MB\/s/ { for (i = 2; i <= NF; i++) if ($i ~ /^MB\/s/) { rows++; if ($(i - 1) + 0 <= 0) bad = $0 } }
		END { if (!rows) print "no bandwidth"; else if (bad != "") print bad }' "$scratch/log"
}

dtest_pair() {
	local server_also='' client_also='-h 127.0.0.1' figures=dtest_figures listens=15828
	pair "dtest $*" 'Server is waiting|Server waiting' 'DAPL Test Complete. PASSED' dtest -P heddle "$@"
}

# "Connections: 1470.79 usec, CPS 679.91 Total 0.03 secs, poll_cnt=0, Num=20"
dtestcm_figures() {
	awk -v want="$connections" '
		/CPS/ { rows++; for (i = 1; i <= NF; i++) {
			if ($i == "CPS" && $(i + 1) + 0 <= 0) bad = $0
			if ($i ~ /^Num=/ && $i != "Num=" want) bad = $0 } }
		END { if (!rows) print "no rate"; else if (bad != "") print bad }' "$scratch/log"
}

dtestcm_pair() {
	local server_also=-s client_also='-h 127.0.0.1' figures=dtestcm_figures connections=$1 listens=15828
	shift
	pair "dtestcm -c $connections $*" 'Conn server waiting|Server ready' 'DAPL Connection Test Complete.' \
		dtestcm -P heddle -c "$connections" "$@"
}

# all connections are counted at both ends
dtestsrq_figures() {
	grep -q "ALL $connections CONNECTED on client" "$scratch/log" && grep -q "ALL $connections CONNECTED on server" "$scratch/server" ||
		echo "not all $connections connected"
}

# dtestsrq_pair SIZE CONNECTIONS BURST BURSTS
dtestsrq_pair() {
	local server_also=-s client_also='-h 127.0.0.1' figures=dtestsrq_figures connections=$2
	pair "dtestsrq -b $1 -c $2 -B $3 -t $4" 'Accepting' 'DAPL RC SRQ Test Complete.' \
		dtestsrq -P heddle -b "$1" -c "$2" -B "$3" -t "$4"
}

dtestx_pair() {
	local server_also=-s client_also='-h 127.0.0.1' figures=true listens=15828
	pair "dtestx $*" 'waiting' 'IB extension test - .*PASSED' dtestx -P heddle "$@"
}

# ---- dapltest ---------------------------------------------------------------------------------------------------------------------

# stats MB-SENT MB-RECEIVED MB-READ MB-WRITTEN: the figures below "----- Stats ----", of 10^6 bytes, are these to the rounding
stats() {
	awk -v threads="$threads" -v eps="$eps" -v sent="$1" -v received="$2" -v read="$3" -v written="$4" '
		function near(is, want) { return is >= want * 0.99 - 0.011 && is <= want * 1.01 + 0.011 }
		/----- Stats ----/ { rows++; if ($5 != threads || $7 != eps) bad = $0 }
		/^Total WQE/ { rows++; if ($4 + 0 <= 0) bad = $0 }
		/^Total Send/ { rows++; if (!near($4, sent)) bad = $0 " instead of " sent }
		/^Total Recv/ { rows++; if (!near($4, received)) bad = $0 " instead of " received }
		/^Total RDMA Read/ { rows++; if (!near($5, read)) bad = $0 " instead of " read }
		/^Total RDMA Write/ { rows++; if (!near($5, written)) bad = $0 " instead of " written }
		END { if (bad != "") print bad; else if (rows != 6) print "no figures" }' "$scratch/log"
}

# transaction THREADS ENDPOINTS ITERATIONS OPTIONS OPERATION…: an operation is "client SR 4096 2", sizes in bytes and segments
transaction() {
	threads=$1 eps=$2
	local count=$3 options=$4 op who what size segments mb name why='' sum=(0 0 0 0) ops=()
	shift 4
	for op in "$@"; do
		read -r who what size segments _ <<<"$op"
		[[ ${segments:-1} =~ ^[0-9]+$ ]] || segments=1
		# shellcheck disable=SC2206 # is to be split
		ops+=($op)
		mb=$((threads * eps * count * size * ${segments:-1}))
		case $what-$who in
		SR-client) sum[0]=$((sum[0] + mb)) ;;
		SR-server) sum[1]=$((sum[1] + mb)) ;;
		RR-*) sum[2]=$((sum[2] + mb)) ;;
		RW-*) sum[3]=$((sum[3] + mb)) ;;
		esac
	done
	name="dapltest transaction -t $threads -w $eps -i $count $options ${ops[*]} $t"
	# shellcheck disable=SC2086
	call dapltest -T T -s 127.0.0.1 -D heddle -n "$port_last" -i "$count" -t "$threads" -w "$eps" $options "${ops[@]}" || why="exit status $?"
	! complains || why="complains"
	# with -V there are three operations more, so the sums are dapltest's own
	if [ -z "$why" ] && [[ $options != *-V* ]]; then
		why=$(stats "$(mega "${sum[0]}")" "$(mega "${sum[1]}")" "$(mega "${sum[2]}")" "$(mega "${sum[3]}")")
	elif [ -z "$why" ]; then
		grep -q -e '----- Stats ----' "$scratch/log" || why="no figures"
	fi
	verdict "$name" "$why"
}

mega() {
	awk -v bytes="$1" 'BEGIN { printf "%.4f", bytes / 1e6 }'
}

# performance ITERATIONS OPTIONS… OPERATION…: so many operations, a throughput, a bandwidth
performance() {
	local count=$1 why=
	shift
	call dapltest -T P -s 127.0.0.1 -D heddle -n "$port_last" -i "$count" "$@" || why="exit status $?"
	! complains || why="complains"
	[ -n "$why" ] || why=$(awk -F: -v count="$count" '
		/Number of Operations/ { rows++; if ($2 + 0 != count) bad = $0 }
		/Operation Throughput|Bandwidth/ { rows++; if ($2 + 0 <= 0) bad = $0 }
		END { if (bad != "") print bad; else if (rows != 3) print "no figures" }' "$scratch/log")
	verdict "dapltest performance -i $count $* $t" "$why"
}

# limit MOST [WIDTH]: every kind of object is made so many times, upon as many of those that it needs
limit() {
	local why=''
	: >"$scratch/server"
	call dapltest -T L -D heddle -m "$1" -w "${2:-1}" || why="exit status $?"
	! complains || why="complains"
	[ -n "$why" ] || why=$(awk -v most="$1" '
		/LimitTest: .*(opened|created|per EP): / { rows++; if ($NF != most) bad = $0 }
		/LMR of 0x[0-9a-f]+ bytes OK/ { rows++ }
		END { if (bad != "") print bad; else if (rows != 10) print rows + 0 " of 10 limits" }' "$scratch/log")
	verdict "dapltest limit -m $1 -w ${2:-1} $t" "$why"
}

quit() {
	local why=''
	call dapltest -T Q -s 127.0.0.1 -D heddle -n "$port_last" || why="exit status $?"
	wait $server || why="server: exit status $?"
	grep -q 'DT_cs_Server (heddle):  Exiting' "$scratch/server" || why="the server does not say that it ends"
	verdict "dapltest quit $t" "$why"
}

dapltest_all() {
	free_port
	if ! serve 'Service Point Ready' dapltest -T S -D heddle -n "$port_last"; then
		end_server
		: >"$scratch/log"
		verdict "dapltest server $t" "does not get ready"
		return
	fi
	transaction 2 2 100 '' 'client SR 4096' 'server SR 4096' 'client RW 1024' 'server RR 512'
	transaction 1 1 100 '-V' 'client SR 1024' 'server SR 1024 2'
	transaction 3 5 200 '-r' 'client SR 256 3' 'server SR 256 3' 'server RW 65536'
	performance 200 -p 8 RW 4096
	if [ $fast = no ]; then
		transaction 4 4 10000 '' 'client SR 1024' 'server SR 1024' 'client RW 4096' 'server RR 2048'
		transaction 1 1 1000 '-P' 'client SR 64' 'server SR 64'
		transaction 2 2 200 '-V -P' 'client RR 4096 2' 'server RW 4096' 'server SR 1048576' 'client SR 512'
		transaction 8 1 500 '' 'client SR 4096 -f' 'server SR 4096 -f'
		performance 2000 -m p -p 32 RW 64
		performance 2000 -m b -p 1 RR 4096
		performance 500 -m p -p 16 RR 65536 2
		performance 200 -p 4 RW 1048576
	fi
	quit
}

# an adapter that dat.conf calls otherwise is opened, and closed, by that name
renamed() {
	local why=''
	sed 's/^heddle/ofa-v2-ib0/' "$BUILD/dat.conf" >"$scratch/dat.conf"
	DAT_OVERRIDE=$scratch/dat.conf over "$t" $seconds "$BUILD/tests/conformance/dat-conformance" -D ofa-v2-ib0 \
		-t 'wishes said by the adapter' >"$scratch/log" 2>&1
	grep -q '^1 passed, 0 failed' "$scratch/log" || why='it is not as one that is called heddle'
	verdict "adapter of another name $t" "$why"
}

for t in "${transports[@]}"; do
	renamed
	dtest_pair -b 65536 -B 20
	dtest_pair -c -b 65536 -B 20
	dtest_pair -p -b 4096
	dtestcm_pair 20
	dtestsrq_pair 64 4 3 5
	dtestsrq_pair 4096 2 10 3
	dapltest_all
	limit 20
	# sleeps for 6 seconds in all
	if [ $fast = no ] || [ "$t" = "${transports[0]}" ]; then dtestx_pair -b 64; fi
	[ $fast = no ] || continue
	dtest_pair
	dtest_pair -t
	dtest_pair -u -b 1048576
	dtest_pair -w -b 65536 -B 100
	dtest_pair -W -b 4096 -B 20
	dtest_pair -D -b 4096 -B 20
	dtestcm_pair 100
	dtestcm_pair 1000 -w
	dtestsrq_pair 64 1 1 1
	dtestsrq_pair 1048576 4 8 4
	dtestsrq_pair 256 100 100 10
	limit 200
	limit 40 5
done
finish
