# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# For scripts that run verbs programs in pairs; sourced after lib.sh.
#
#	pair NAME TRANSPORT SECONDS program args…    a server and, with 127.0.0.1 behind the same arguments, a client
#
# The port is "-p PORT", which nearly all of them take. $scratch/log has what the client printed, $scratch/server the other. Fails by
# itself when either ends badly.
: "${scratch:?sourced after lib.sh}" "${port_last:?}"

pair() {
	local name=$1 transport=$2 seconds=$3 server status
	shift 3
	free_port
	over "$transport" "$seconds" "$@" -p "$port_last" >"$scratch/server" 2>&1 &
	server=$!
	if ! wait_listen "$port_last" $server; then
		kill $server 2>/dev/null
		wait $server
		cp "$scratch/server" "$scratch/log"
		fail "$name" "the server does not listen"
		return 1
	fi
	over "$transport" "$seconds" "$@" -p "$port_last" 127.0.0.1 >"$scratch/log" 2>&1
	status=$?
	wait $server || status=$?
	if [ $status -ne 0 ]; then
		{ echo "-- server:" && tail -n 8 "$scratch/server"; } >>"$scratch/log"
		fail "$name" "exit status $status"
		return 1
	fi
}
