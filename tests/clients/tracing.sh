#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# The tracepoints of docs/tracing.md are in the libraries, and gdb reads their arguments in programs of others.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh" "$@"
need readelf gdb fi_pingpong ibv_rc_pingpong ss

names='complete in match out post'

# noted LIBRARY: the names in its notes, of those that have four arguments.
noted() {
	readelf -n "$BUILD/$1" 2>/dev/null |
		awk '/Provider: heddle/ { name = ""; ours = 1 } ours && /Name: / { name = $2 } ours && /Arguments: / { if (NF == 5) print name; ours = 0 }' | sort -u | xargs
}

for library in libheddle-fi.so preload/libheddle-verbs.so libdaplheddle.so.2; do
	[ -e "$BUILD/$library" ] || continue
	noted $library >"$scratch/log"
	[ "$(cat "$scratch/log")" = "$names" ]
	judge "$library has the notes" "not these: $names"
done

# Commands that print the arguments of each tracepoint whenever it is met, from when the library NAME has been loaded.
gdb_commands() {
	local n
	printf 'set pagination off\nset confirm off\ncatch load %s\nrun\ndelete\n' "$1"
	for n in $names; do
		printf 'break -probe-stap heddle:%s\ncommands\nsilent\n' "$n"
		# shellcheck disable=SC2016 # gdb's variables
		printf 'printf "probe %s %%llu %%llu %%llu %%llu\\n", (unsigned long long)$_probe_arg0, (unsigned long long)$_probe_arg1, (unsigned long long)$_probe_arg2, (unsigned long long)$_probe_arg3\n' "$n"
		printf 'continue\nend\n'
	done
	echo continue
}

# traced NAME TRANSPORT LIBRARY -- program…: its server, and its client under gdb. What the probes say is in $scratch/probes.
traced() {
	local name=$1 transport=$2 library=$3 server status
	shift 4
	gdb_commands "$library" >"$scratch/commands"
	over "$transport" 100 "$@" "${port_option[@]}" "$port_last" >"$scratch/server" 2>&1 &
	server=$!
	wait_listen "$port_last" $server
	over "$transport" 100 gdb -batch -x "$scratch/commands" --args "$@" "${port_option[@]/-B/-P}" "$port_last" 127.0.0.1 >"$scratch/log" 2>&1
	wait $server
	status=$?
	grep '^probe ' "$scratch/log" >"$scratch/probes"
	[ $status -eq 0 ] && [ -s "$scratch/probes" ]
	judge "$name, $transport, with its tracepoints seen" "the program does not end well"
}

# saw WHAT pattern: a line of the probes
saw() {
	grep -qE "^probe $2\$" "$scratch/probes"
	judge "$1" "no line like this: $2"
}

for t in "${transports[@]}"; do
	free_port
	port_option=(-B)
	traced fi_pingpong "$t" libheddle-fi -- fi_pingpong -e rdm -I 2 -S 1000
	saw "$t: a send is posted" 'post [0-9]+ 0 1000 [0-9]+'
	saw "$t: a receive is" 'post [0-9]+ 4 0 [0-9]+'
	saw "$t: a short message goes out" 'out [1-9][0-9]* 5 [0-9]+ 1000'
	saw "$t: and comes in" 'in [1-9][0-9]* 5 [0-9]+ 1000'
	saw "$t: it meets a receive" 'match [0-9]+ [0-9]+ [0-9]+ 1000'
	saw "$t: and completes well" 'complete [1-9][0-9]* [0-9]+ 1000 0'
	free_port
	port_option=(-p)
	traced ibv_rc_pingpong "$t" libheddle-verbs -- ibv_rc_pingpong -n 3 -s 1000
	saw "$t: a queue pair's send is posted" 'post [0-9]+ 0 1000 [0-9]+'
	saw "$t: and goes out" 'out [1-9][0-9]* 5 [0-9]+ 1000'
	saw "$t: and meets a receive at the other end" 'match [0-9]+ [0-9]+ [0-9]+ 1000'
	saw "$t: and completes" 'complete [1-9][0-9]* [0-9]+ 1000 0'
done

# commands_of HEADING: what stands there on the page behind "    # ", of a program whose id is $traced, for the library that was built
commands_of() {
	awk -v heading="## $1" '/^## / { on = $0 == heading } on && sub(/^    (# )?/, "")' "$root/docs/tracing.md" |
		sed "s|/usr/local/lib/heddle|$BUILD|; s|\$(pidof my_program)|$traced|"
}

# ends_of: the process ids of both ends, the one that called last
ends_of() {
	pgrep -f "^fi_pingpong .*-B $port_last\$"
	pgrep -f "^fi_pingpong .*-P $port_last 127.0.0.1\$"
}

# watched SECONDS HEADING: the page's commands, beside a program that sends and receives
watched() {
	local traced=
	free_port
	over shm 100 fi_pingpong -e rdm -I 10000000 -S 1000 -B "$port_last" >/dev/null 2>&1 &
	wait_listen "$port_last" $!
	over shm 100 fi_pingpong -e rdm -I 10000000 -S 1000 -P "$port_last" 127.0.0.1 >/dev/null 2>&1 &
	for _ in $(seq 200); do
		traced=$(ends_of | sed -n 2p)
		[ -z "$traced" ] || grep -q libheddle-fi "/proc/$traced/maps" && break
		sleep 0.05
	done
	commands_of "$2" >"$scratch/commands"
	(cd "$scratch" && ln -sfn "$root/examples" examples && timeout -s INT "$1" bash -e commands) >"$scratch/log" 2>&1
	# shellcheck disable=SC2046
	kill $(ends_of) 2>/dev/null
	wait
}

events=/sys/kernel/tracing/uprobe_events
if [ -w $events ] && [ "$(uname -m)" = x86_64 ] && command -v perf >/dev/null; then
	watched 30 perf
	grep -qE 'heddle:out: .* arg2=5 arg3=[0-9]+ arg4=1000$' "$scratch/log"
	judge "perf reads the arguments of what a program sends, as the page has it" "no line like this: heddle:out: … arg4=1000"
	! grep -q heddle/ $events
	judge "and nothing is left of it" "there are events in $events"
else
	skip "perf, as the page has it" "run as root on x86-64 with tracefs, and install linux-perf"
fi
if [ -w $events ] && command -v bpftrace >/dev/null; then
	watched 6 bpftrace
	grep -qE '^@received: [1-9][0-9]+' "$scratch/log" && grep -q '^@wait_us:' "$scratch/log"
	judge "bpftrace counts and times what a program receives, as the page has it" "no line like this: @received: …"
else
	skip "bpftrace, as the page has it" "run as root with tracefs, and install bpftrace"
fi
finish
