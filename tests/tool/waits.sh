#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# heddle info --links says why a program hangs: waits.sh HEDDLE FAKE_NODE STATIC_PROGRAM STUCK STUCK_CM [STUCK_DAT]. These hang in each of the ways.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"
heddle=$1 fake_node=$2 stuck=$4 stuck_cm=$5 stuck_dat=${6:-}
export LC_ALL=C HEDDLE_UNEXPECTED_PEER=256K
unset HEDDLE_TRANSPORT FI_PROVIDER FI_PROVIDER_PATH

# hang WAY TRANSPORT [STOPPED [PROGRAM]]: what is said of a program that hangs in that way, over that transport, or is stopped besides: the lines of its process, of
# all its nodes, in $tap_scratch/said.
hang() {
	local pid status=0
	coproc STUCK { exec "$heddle" run -t "$2" -l debug -- "${4:-$stuck}" "$1" 2>"$tap_scratch/log"; }
	local reader=${STUCK[0]} writer=${STUCK[1]} word=
	pid=$STUCK_PID
	echo "$pid" >"$tap_scratch/pid"
	read -r -t 60 word <&"$reader" || true
	if [ -n "${3:-}" ]; then
		kill -STOP "$pid"
		until grep -q '^State:.T' "/proc/$pid/status"; do sleep 0.01; done
	fi
	"$heddle" info --links >"$tap_scratch/links" || status=$?
	"$heddle" info --json >"$tap_scratch/json" || status=$?
	awk -v pid="$pid" '/^ +[0-9]+ / { mine = $1 == pid } /^$/ { mine = 0 } mine' "$tap_scratch/links" >"$tap_scratch/said"
	kill -CONT "$pid"
	exec {writer}>&-
	wait "$pid" || status=$?
	[ "$word" = ready ] && [ $status -eq 0 ]
}

json_says() {
	python3 -c "
import json
nodes = json.load(open('$tap_scratch/json'))['nodes']
print([e['waits_for'] for n in nodes if n['program'] == 'stuck' for e in n['endpoints'] if e['waits_for']])"
}

# whether the node of libfabric's that hung last made progress, and whether its peer did
json_progress() {
	python3 -c "
import json
nodes = [n for n in json.load(open('$tap_scratch/json'))['nodes'] if n['interface'] == 'libfabric']
own = [n for n in nodes if n['pid'] == $(cat "$tap_scratch/pid")]
print([n['progress'] for n in own if n['peers']], [n['progress'] for n in nodes if n['id'] in [p['id'] for o in own for p in o['peers']]])"
}

# unanswered WHAT TRANSPORT ENDPOINT FOR [PROGRAM]: a call that nobody accepts: how its endpoint is shown, for whom it calls, and its listener
unanswered() {
	check "a call of $1 that nobody accepts, $2" hang unanswered "$2" "" "${5:-$stuck}"
	check_output "waits for the other end to accept" "$3, asked: .* waits for the other end to accept \\(fi_accept, rdma_accept, dat_cr_accept\\)$4$" cat "$tap_scratch/said"
	check_output "which waits for its program" "listener [0-9]+, open: .* waits for this program to accept or reject calls \\(1\\)$" cat "$tap_scratch/links"
}

for t in shm tcp; do
	unanswered libfabric $t 'msg [0-9]+' ''
	unanswered rdma_cm $t 'connection 0x[0-9a-f]{6}' ', for queue pair 0x[0-9a-f]{6}' "$stuck_cm"
	check "a writer of an rsocket that nobody reads, $t" hang unread $t "" "$stuck_cm"
	check_output "waits for that" 'queue pair 0x[0-9a-f]{6}, RTS: .* waits for the other end.s program to read what has been sent \(rrecv\)$' cat "$tap_scratch/said"
	[ -z "$stuck_dat" ] || unanswered uDAPL $t 'connection 0x[0-9a-f]{6}' ', for queue pair 0x[0-9a-f]{6}' "$stuck_dat"
	check "a message without a receive, $t" hang no-receive $t
	check_output "its endpoint waits for one" 'rdm 0, open: 0 receives posted, .* 1 messages wait.* waits for a receive to be posted here' cat "$tap_scratch/said"
	check_output "JSON says so too" 'a receive to be posted here' json_says
	check "a sender whose credit is used up, $t" hang no-credit $t
	check_output "waits for credit, and the other end has posted no receive" 'live .* waits for credit: .*: it has posted no receive$' cat "$tap_scratch/said"
	check "a receiver that does not read its queue, $t" hang unread $t
	check_output "is said to wait for that" 'waits for its completion queue to be read: it is full$' cat "$tap_scratch/said"
	check_output "and by its sender" 'waits for credit: .*: it does not read its completion queue$' cat "$tap_scratch/said"
	check "a queue pair that finds no receive, $t" hang rnr $t
	check_output "shows its state and how often it was tried" 'queue pair 0x[0-9a-f]{6}, RTS: .*waits for a receive to be posted here \(RNR, [0-6] of 6\)$' cat "$tap_scratch/said"
	check_output "its sender waits for the answer" 'queue pair 0x[0-9a-f]{6}, RTS: .* 1 sends under way, .*waits for the other end.s answer to 1$' cat "$tap_scratch/said"
	check_output "and nobody is said to make no progress" '^0$' grep -c 'no progress' "$tap_scratch/said"
	check "a sender that does not read what has been sent, $t" hang sent-unread $t
	check_output "is said to wait for that" 'rdm 0, open: 0 receives posted, .* 64 completions unread; waits for its completion queue to be read: it is full$' \
		cat "$tap_scratch/said"
	check "a queue pair whose shared queue is empty, $t" hang shared $t
	check_output "waits for a receive there" 'queue pair 0x[0-9a-f]{6}, RTS: .*waits for a receive to be posted to a shared receive queue \(RNR, [0-6] of 6\)$' \
		cat "$tap_scratch/said"
	check_output "which is named, with what is posted to it" '^ +shared receive queue [0-9]+, open: 0 receives posted' cat "$tap_scratch/said"
	check_output "and what no program has opened is not shown" '^0$' grep -c RESET "$tap_scratch/said"
	check "a sender whose peer calls nothing any more, $t" hang away $t
	check_output "is said to wait for that" 'rdm 0, open: .* 1 sends under way, .*waits for the other end.s answer: its program, stuck \(pid [0-9]+\), makes no progress$' \
		cat "$tap_scratch/said"
	check_output "which its peer is said not to make" 'peer [0-9a-f]{8} \(stuck, pid [0-9]+, makes no progress\) +live' cat "$tap_scratch/said"
	check_output "as it is where it stands itself" '^ +[0-9]+  stuck, libfabric, node [0-9a-f]{8}: makes no progress: ' cat "$tap_scratch/links"
	check_output "and in JSON" '^\[True\] \[False\]$' json_progress
	check "a sender whose peer has been stopped, $t" hang stopped $t
	check_output "is said to wait for that" 'waits for the other end.s answer: its program, stuck \(pid [0-9]+\), is stopped$' cat "$tap_scratch/said"
	check "a queue pair whose other end has been stopped, $t" hang stopped-verbs $t
	check_output "is said to wait for that" 'RTS: .*waits for the other end.s answer to 1: its program, stuck \(pid [0-9]+\), is stopped$' cat "$tap_scratch/said"
	check "a queue pair that is never RTR, $t" hang unready $t
	check_output "is said to keep others waiting" 'queue pair 0x[0-9a-f]{6}, INIT: .*waits for this program to make it RTR \(ibv_modify_qp\)' cat "$tap_scratch/said"
done

check "a send queue that was stopped" hang paused shm
check_output "waits for the program" 'queue pair 0x[0-9a-f]{6}, SQD: .* 1 sends under way, .*waits for this program to make it RTS \(ibv_modify_qp\)$' \
	cat "$tap_scratch/said"
for way in cq:'a completion':'fi_cq_sread, dat_evd_wait':'rdm [0-9]+' eq:'an event':'fi_eq_sread, rdma_get_cm_event':'listener [0-9]+' \
	armed:'an event of its completion queue':'ibv_get_cq_event, dat_cno_wait':'queue pair 0x[0-9a-f]{6}' \
	unarmed:'an event, which is not asked for \(ibv_req_notify_cq\)':'ibv_get_cq_event, dat_cno_wait':'queue pair 0x[0-9a-f]{6}'; do
	IFS=: read -r name what how ep <<<"$way"
	check "a thread that sleeps for what does not come, $name" hang "asleep-$name" shm
	check_output "is told of, and for how long" "$ep, [A-Za-z]+: .* waits for $what, [0-9]+\\.[0-9] s so far \\($how\\)$" cat "$tap_scratch/said"
	check_output "of all its endpoints those alone are" '^[12]$' grep -c 's so far' "$tap_scratch/said"
done
check "a counter that does not get where it is waited for" hang counter shm
check_output "is told with both numbers" 'waits for its counter, 1 of 6 \(fi_cntr_wait\)$' cat "$tap_scratch/said"
check "a triggered operation whose time does not come" hang triggered shm
check_output "likewise" 'waits for its counter, 0 of 9 \(a triggered operation\)$' cat "$tap_scratch/said"

# The log at the level debug, of one of these: each transition by name, and what happens often only counted.
check "a queue pair that finds no receive, with its log" hang rnr tcp
check_output "which shows its states" 'debug engine: queue pair 0x[0-9a-f]{6}: RTR, was INIT$' cat "$tap_scratch/log"
check_output "and that a message waits for a receive" 'debug engine: queue pair 0x[0-9a-f]{6}: a message of peer [0-9a-f]{8} waits for a receive \(RNR\)$' cat "$tap_scratch/log"
check_output "and links" 'debug engine: tcp link (from|to) [^ ]+ port [0-9]+: up$' cat "$tap_scratch/log"
check_output "and peers" 'debug engine: peer [0-9a-f]{8}: live over tcp$' cat "$tap_scratch/log"
# known: each node, peer, queue pair and connection of the log that heddle info does not show by that name while the program hangs
known() {
	awk '$2 == "debug" && $3 == "engine:" { sub(/^.*debug engine: /, ""); print }' "$tap_scratch/log" |
		grep -oE '^(queue pair 0x[0-9a-f]{6}|peer [0-9a-f]{8})' | sort -u |
		while read -r kind; do grep -qF -- "$kind" "$tap_scratch/said" || echo "$kind"; done
}
check_output "of which heddle info shows each by the name that the log has" '^none unknown$' eval 'echo "none unknown$(known)"'
check "a sender whose credit is used up, with its log" hang no-credit shm
check_output "which says at its end what it did" 'info engine: libfabric, node [0-9a-f]{8}, ends: [1-9][0-9]* links were made, 0 broke' cat "$tap_scratch/log"
# the nodes that the log of this program has last lines of, and each heddle info does not show
unnamed() {
	grep -oE "^heddle\[$(cat "$tap_scratch/pid")\].* node [0-9a-f]{8}, ends:" "$tap_scratch/log" | sed 's/.* node //; s/, ends://' |
		while read -r id; do grep -q ", node $id" "$tap_scratch/said" && echo "shown" || echo "not shown: $id"; done | sort -u
}
check_output "by the name that heddle info has" '^shown$' unnamed
check_output "by which way" 'info engine: node [0-9a-f]{8}, by shm: sent [1-9][0-9]* messages and requests, [0-9.]+ [kMG]?B in packets, .* in [0-9]+ copies; took in [0-9]+' cat "$tap_scratch/log"
check_output "and what it waited for" 'info engine: node [0-9a-f]{8} slept [0-9]+ times; was refused [1-9][0-9]* sends' cat "$tap_scratch/log"
check_output "is seen there" 'debug engine: rdm 0: no credit for 4096 bytes at peer [0-9a-f]{8}$' cat "$tap_scratch/log"

check "a program that was stopped" hang no-credit shm stopped
check_output "is said to be" '^ +[0-9]+  stuck, libfabric, node [0-9a-f]{8}: stopped, by a signal or a debugger' cat "$tap_scratch/said"
check_output "and by who waits for it" 'peer [0-9a-f]{8} \(stuck, pid [0-9]+, stopped\) .* waits for credit' cat "$tap_scratch/said"

# another_build: a page of a node that this program cannot look into
another_build() {
	local status=0
	coproc NODE { exec "$fake_node" good; }
	local reader=${NODE[0]} writer=${NODE[1]} pid=$NODE_PID
	read -r <&"$reader"
	"$heddle" info --links | awk -v pid="$pid" '/^ +[0-9]+ / { mine = $1 == pid } mine' || status=$?
	exec {writer}>&-
	wait "$pid" || true
	return $status
}
check_output "a node of another build is not looked into" 'not shown: it runs another build of Heddle: use the heddle beside its libraries' another_build
finish
