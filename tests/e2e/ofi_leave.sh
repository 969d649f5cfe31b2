#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# libfabric programs that end with everything open: libfabric lets go of its providers then, with a thread of ours running. What goes wrong
# there goes wrong once in a while, so there are many of them. HD_BUILD is the build folder.
set -uo pipefail
cd "$(dirname "$0")" || exit 1
# shellcheck source=tests/tap.sh
. ../tap.sh
build=${HD_BUILD:?the build folder}

leave() { # TRANSPORT HOW TIMES
	local i
	for ((i = 0; i < $3; i++)); do
		timeout 20 "$build/heddle" run "--transport=$1" -- "$build/tests/e2e/ofi-leaver" "$2" || {
			echo "exit status $? at time $i"
			return 1
		}
	done
}

times=60
[ "${1:-}" != --fast ] || times=16
for transport in shm tcp; do
	check "a program that closes nothing, exit, $transport" leave $transport exit "$times"
	check "a program that ends in a signal's handler, $transport" leave $transport alarm $((times / 2))
done
finish
