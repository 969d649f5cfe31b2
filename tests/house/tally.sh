#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# ci/tally must not count a test program that broke as one that passed.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/tap.sh

# counts RESULT STDOUT: what ci/tally says of one program that ended so and printed that.
counts() {
	printf '{"name": "x", "result": "%s", "returncode": 1, "stdout": "%s"}\n' "$1" "$2" >"$tap_scratch/log"
	ci/tally "$tap_scratch/log"
}

check_output "cases are counted one by one" '^2 0 0$' counts OK '1..2\nok 1 - a\nok 2 - b\n'
check_output "failed cases are counted" '^1 1 0$' counts FAIL 'ok 1 - a\nnot ok 2 - b\n'
check_output "failed cases are named" '^failed: x: b$' counts FAIL 'ok 1 - a\nnot ok 2 - b\n'
check_output "with what they say of it" '^failed: x: b \(too late\)$' counts FAIL 'ok 1 - a\nnot ok 2 - b\n#   too late\n'
check_output "skipped cases do not pass" '^1 0 1$' counts OK 'ok 1 - a\nok 2 - b # SKIP no netns\n'
check_output "a crash after good cases is a failure" '^1 1 0$' counts ERROR 'ok 1 - a\n'
check_output "a time-out is a failure" '^0 1 0$' counts TIMEOUT ''
check_output "a program without cases counts by its exit status" '^1 0 0$' counts OK 'hello\n'
check_output "and fails by it" '^0 1 0$' counts FAIL 'hello\n'
finish
