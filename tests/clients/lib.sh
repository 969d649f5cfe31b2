# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# For scripts that run other people's programs over Heddle.  Sourced with the script's own arguments:
#
#	--fast    the short selection
#	--tap     print the Test Anything Protocol instead of "pass NAME" and "fail NAME reason"
#	--only T  one transport, shm or tcp
#
# From the environment: BUILD, the build folder (default: build/ of this checkout), and PROVIDER, another
# libfabric provider to develop against, e.g. PROVIDER='tcp;ofi_rxm'.
#
#	pass NAME; fail NAME reason…; skip NAME reason…; finish (the counts, and the exit status)
#	over TRANSPORT SECONDS program args…   runs a program over that transport, and kills it after that time
#	every transport is in "${transports[@]}"; files may be left in "$scratch"; ports come from free_port (tests/ports.sh)

set -uo pipefail
export LC_ALL=C.UTF-8
# Meson puts the folders of all libraries that a test depends on here, in any order: stand-ins for libibverbs
# among them, which are not what these programs are to be linked with.
unset LD_LIBRARY_PATH

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=tests/ports.sh
. "$root/tests/ports.sh"
BUILD=$(realpath "${BUILD:-${HD_BUILD:-$root/build}}")
PROVIDER=${PROVIDER:-heddle}
fast=no tap=no only=
passed=0 failed=0 skipped=0

while [ $# -gt 0 ]; do
	# shellcheck disable=SC2034 # for those who source this
	case $1 in
	--fast) fast=yes ;;
	--tap) tap=yes ;;
	--only) only=$2 && shift ;;
	*)
		echo "usage: $(basename "$0") [--fast] [--tap] [--only shm|tcp]" >&2
		exit 2
		;;
	esac
	shift
done

transports=(shm tcp)
[ -z "$only" ] || transports=("$only")
# another provider has but one way to go
# shellcheck disable=SC2034
[ "$PROVIDER" = heddle ] || transports=("$PROVIDER")
export FI_PROVIDER_PATH=$BUILD

scratch=$(mktemp -d)
cleaners=()
# await FILE PATTERN PID: until a line of the file matches, while the process lives
await() {
	local i
	for ((i = 0; i < 1200; i++)); do
		! grep -Eq "$2" "$1" || return 0
		kill -0 "$3" 2>/dev/null || return 1
		sleep 0.05
	done
	return 1
}

clean_up() {
	local c
	for c in ${cleaners[@]+"${cleaners[@]}"}; do $c; done
	rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

pass() {
	passed=$((passed + 1))
	if [ $tap = yes ]; then echo "ok - $1"; else echo "pass $1"; fi
}

# fail NAME reason…: a file "$scratch/log" is shown behind it
fail() {
	failed=$((failed + 1))
	if [ $tap = yes ]; then printf 'not ok - %s\n# %s\n' "$1" "${*:2}"; else echo "fail $*"; fi
	[ ! -s "$scratch/log" ] || tail -n 25 "$scratch/log" | sed 's/^/#   /'
}

skip() {
	skipped=$((skipped + 1))
	if [ $tap = yes ]; then echo "ok - $1 # SKIP ${*:2}"; else echo "skip $*"; fi
}

finish() {
	if [ $tap = yes ]; then
		echo "1..$((passed + failed + skipped))"
	else
		[ $skipped -eq 0 ] || echo "$skipped skipped"
		echo "$passed passed, $failed failed"
	fi
	[ $failed -eq 0 ]
	exit
}

# judge NAME reason…: passes when the last command succeeded
judge() {
	local status=$?
	: "${2:?}"
	if [ $status -eq 0 ]; then pass "$1"; else fail "$1" "${*:2} (status $status)"; fi
	return $status
}

need() {
	local p
	for p in "$@"; do
		command -v "$p" >/dev/null || { echo "$(basename "$0"): $p is not installed" >&2 && exit 2; }
	done
}

over() {
	local transport=$1 limit=(timeout -k 5 "$2")
	shift 2
	if [ "$PROVIDER" != heddle ]; then
		FI_PROVIDER=$PROVIDER "${limit[@]}" "$@"
	elif [ -x "$BUILD/heddle" ]; then
		"${limit[@]}" "$BUILD/heddle" run "--transport=$transport" -- "$@"
	else
		FI_PROVIDER=heddle HEDDLE_TRANSPORT=$transport "${limit[@]}" "$@"
	fi
}

# one_at_a_time NAME command…: a command whose names or ports are fixed on a host waits for that of another script
one_at_a_time() {
	local status lock
	ports_lock "$1" 600 || return
	lock=$ports_lock_fd
	"${@:2}"
	status=$?
	ports_unlock "$lock"
	return $status
}

# wait_listen PORT PID: until somebody listens there, while the process lives
wait_listen() {
	local port=$1 pid=$2 i
	for ((i = 0; i < 1200; i++)); do
		! ss -Hltn "sport = :$port" | grep -q . || return 0
		kill -0 "$pid" 2>/dev/null || return 1
		sleep 0.05
	done
	return 1
}
