# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# Services of rdma_cm, for scripts whose servers must be there before they are called. Sourced behind lib.sh:
#
#	next_port          sets $port to one of this script's own (tests/ports.sh), in the port space of TCP
#	wait_service PID   until somebody has the name of service $port in $space, in front of "${where0[@]}"; while the process lives
#	moves FILE PID     until $scratch/FILE has grown; while the process lives
#	computes PID       until it has used a fifth of a second of a processor

# shellcheck disable=SC2034 # for those who source this
port=0       # of this service; each has another, so that a server that hangs is nobody else's
space=106    # RDMA_PS_TCP; datagrams: 111
where0=(env) # where the server runs

next_port() {
	free_port
	# shellcheck disable=SC2154 # of tests/ports.sh
	port=$port_last space=106
}

wait_service() {
	local name i
	name=$(printf '@heddle/service/%s/%x/' "$space" "$port")
	for ((i = 0; i < 400; i++)); do
		! "${where0[@]}" grep -qF "$name" /proc/net/unix || return 0
		kill -0 "$1" 2>/dev/null || return 1
		sleep 0.05
	done
	return 1
}

moves() {
	local i
	for ((i = 0; i < 400; i++)); do
		[ "$(stat -c %s "${scratch:?}/$1" 2>/dev/null || echo 0)" -lt 200 ] || return 0
		kill -0 "$2" 2>/dev/null || return 1
		sleep 0.05
	done
	return 1
}

computes() {
	local i stat
	for ((i = 0; i < 400; i++)); do
		read -ra stat <"/proc/$1/stat" || return 1
		[ $((stat[13] + stat[14])) -lt $(($(getconf CLK_TCK) / 5)) ] || return 0
		sleep 0.05
	done
	return 1
}
