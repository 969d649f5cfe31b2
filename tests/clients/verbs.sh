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
#
#	figures FILE LINES    says what is wrong with perftest's table: so many lines of a size, iterations, then numbers above zero, and no complaint
#
# perftest measures the processor's clock anew for each line. Where others had the processor meanwhile it says that the measurements do not agree
# («Correlation coefficient»), and ends there, or with -F goes on with figures of 0: so it is run with -F everywhere.
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

figures() {
	awk -v lines="$2" '
		$1 ~ /^[0-9]+$/ && $2 ~ /^[0-9]+$/ && NF >= 4 {
			rows++
			if ($NF + 0 <= 0) zeros++
			if ($2 + 0 <= 0 || (rows > 1 && $1 + 0 <= last + 0)) bad = bad " " $1
			last = $1
		}
		/Correlation coefficient/ { clockless++ }
		/[Cc]ouldn.t|[Ff]ailed|[Ee]rror|Completion with/ { complaint = $0 }
		END {
			if (complaint != "") print complaint
			else if (rows != lines) print rows + 0 " lines of figures, not " lines
			else if (bad != "") print "wrong lines:" bad
			else if (zeros > clockless) print zeros - clockless " lines without figures, and with a clock"
			else exit 0
			exit 1
		}' "$1"
}
