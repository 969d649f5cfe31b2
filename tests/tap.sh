# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# For test scripts: each check prints one line of the Test Anything Protocol.
#
#	. tests/tap.sh
#	check "name of the check" command args…        passes when the command succeeds
#	check_output "name" 'pattern' command args…    passes when its output matches an extended regular expression
#	check_status "name" STATUS command args…
#	skip "name" "why"
#	finish                                         prints the plan; exit status 1 when a check failed

tap_count=0
tap_failed=0
tap_scratch=$(mktemp -d)
trap 'rm -rf "$tap_scratch"' EXIT

tap_result() {
	tap_count=$((tap_count + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $tap_count - $2"
	else
		echo "not ok $tap_count - $2"
		tap_failed=$((tap_failed + 1))
	fi
}

tap_show_output() {
	sed 's/^/#   /' "$tap_scratch/output"
}

check() {
	check_status "$1" 0 "${@:2}"
}

check_status() {
	local name=$1 want=$2 got=0
	"${@:3}" >"$tap_scratch/output" 2>&1 </dev/null || got=$?
	tap_result $((got != want)) "$name"
	[ "$got" -eq "$want" ] || { echo "#   exit status $got, not $want" && tap_show_output; }
}

check_output() {
	local name=$1 pattern=$2 found=0
	"${@:3}" >"$tap_scratch/output" 2>&1 </dev/null || true
	grep -qE -- "$pattern" "$tap_scratch/output" || found=1
	tap_result $found "$name"
	[ $found -eq 0 ] || { echo "#   no line matches: $pattern" && tap_show_output; }
}

skip() {
	tap_count=$((tap_count + 1))
	echo "ok $tap_count - $1 # SKIP $2"
}

# address_in FILE PID: sets ip and port from the line "address IP PORT" that a program writes there when it has begun; fails when it ends
# without one. The file must be new, or emptied before the program was started. libfabric looks at all of its providers first: they take
# seconds, on a machine with much else to do a quarter of a minute.
address_in() {
	ip='' port=''
	for _ in $(seq 2400); do
		# shellcheck disable=SC2034 # ip is the caller's
		read -r _ ip port < <(grep '^address ' "$1" 2>/dev/null) && [ -n "${port:-}" ] && return
		kill -0 "$2" 2>/dev/null || break
		sleep 0.05
	done
	return 1
}

finish() {
	echo "1..$tap_count"
	[ $tap_failed -eq 0 ]
	exit
}
