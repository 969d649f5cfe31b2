#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# What the short check leaves out has a case of its row in it; a unit that skips a case says what would make it run.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/tap.sh
. tests/tap.sh

rows() {
	"$1" -k "$2" -l | cut -d' ' -f1 | sort -u
}

has_quick_rows() {
	local left_out
	left_out=$(comm -13 <(rows "$1" quick) <(rows "$1" slow))
	[ -z "$left_out" ] || { echo "all cases of these rows are slow: $left_out" && return 1; }
	rows "$1" quick | grep -q .
}

for name in ofi verbs dat; do
	program=$HD_BUILD/tests/conformance/$name-conformance
	if [ -x "$program" ]; then
		check "the short check has every row of $name-conformance" has_quick_rows "$program"
	else
		skip "the short check has every row of $name-conformance" "install the headers of $name (ci/install-deps)"
	fi
done

# cmocka's own skip() says nothing.
bare_skips() {
	git grep -n '\bskip();' -- 'src/*_test.c' 'tests/*.[ch]' ':!tests/skip.h' || true
}
check_output "a skipped case of a unit says what would make it run" '^none$' eval '[ -n "$(bare_skips)" ] && bare_skips || echo none'
finish
