#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# kill -9 of either side of rping, and of a client of ucmatose: the other side comes to its end by itself, and both can be started again at
# once, at the same port. A client of ucmatose polls for messages and looks at nothing else, so that of a killed server waits for ever, over
# hardware too.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh" "$@"
# shellcheck source=tests/clients/services.sh
. "$(dirname "$0")/services.sh"
need rping ucmatose

to=127.0.0.1
pids=()
kill_rest() { [ ${#pids[@]} -eq 0 ] || kill -KILL "${pids[@]}" 2>/dev/null; }
cleaners+=(kill_rest)

# begin FILE TRANSPORT program…: in the background, its output in that file; its pid is in $begun
begin() {
	local file=$scratch/$1 transport=$2
	shift 2
	"$BUILD/heddle" run "--transport=$transport" -- "$@" >"$file" 2>&1 </dev/null &
	begun=$!
	pids+=("$begun")
}

# ends PID: does it, within a minute? Its status is in $ended
ends() {
	local i
	for ((i = 0; i < 1200; i++)); do
		if ! kill -0 "$1" 2>/dev/null; then
			wait "$1"
			ended=$?
			return 0
		fi
		sleep 0.05
	done
	kill -KILL "$1"
	return 1
}

# pair TRANSPORT PROGRAM [SERVER OPTIONS…] -- CLIENT OPTIONS…: $server and $client run; the client calls when the server listens
pair() {
	local transport=$1 program=$2 options=()
	shift 2
	while [ "$1" != -- ]; do options+=("$1") && shift; done
	shift
	begin server "$transport" "$program" "${options[@]}" -p $port
	server=$begun
	wait_service $server || return 1
	begin client "$transport" "$program" "$@" -p $port
	client=$begun
}

rping_pair() { pair "$1" rping -s -a "$to" -v -- -c -a "$to" -v && moves client "$client"; }
# no output while it runs, but it polls while data move, and sleeps before that: enough data that they do for a while
ucmatose_pair() { pair "$1" ucmatose -C 30000 -S 300000 -- -s "$to" -C 30000 -S 300000 && computes "$client"; }

# A whole conversation, started at once after a kill: at the same port.
again() {
	local first
	pair "$1" rping -s -a "$to" -C 10 -V -- -c -a "$to" -C 10 -V || return 1
	ends "$client" && first=$ended && ends "$server" && [ "$first" -eq 0 ] && [ "$ended" -eq 0 ]
}

# dies PROGRAM WHO TRANSPORT
dies() {
	local rest
	next_port
	if ! "$1_pair" "$3"; then
		cat "$scratch/server" "$scratch/client" >"$scratch/log" 2>/dev/null
		fail "$1: kill -9 of the $2, $3" "they do not begin"
		return
	fi
	if [ "$2" = server ]; then rest=$client; else rest=$server; fi
	kill -KILL "${!2}"
	wait "${!2}" 2>/dev/null
	cp "$scratch/$([ "$2" = server ] && echo client || echo server)" "$scratch/log"
	ends "$rest"
	judge "$1: kill -9 of the $2, $3" "the other side goes on for ever"
	again "$3"
	judge "$1: another start after kill -9 of the $2, $3" "it does not run"
}

# A server for many clients goes on after the death of one.
persists() {
	next_port
	pair "$1" rping -s -P -a "$to" -- -c -a "$to" -v && moves client "$client"
	kill -KILL "$client"
	wait "$client" 2>/dev/null
	begin client "$1" rping -c -a "$to" -C 10 -V -p $port
	ends "$begun" && [ "$ended" -eq 0 ] && kill -0 "$server"
	judge "rping -P: one client is killed, another comes, $1" "the server does not go on"
	kill -KILL "$server" 2>/dev/null
	wait "$server" 2>/dev/null
}

for t in "${transports[@]}"; do
	dies rping server "$t"
	dies rping client "$t"
	[ $fast = no ] || continue
	dies ucmatose client "$t"
	persists "$t"
done
finish
