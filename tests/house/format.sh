#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# The sources are as `make fmt` leaves them. Versions of clang-format differ in details; the tree follows Debian 12's.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/tap.sh

formatted() {
	{ git ls-files -co --exclude-standard '*.c' '*.h' 2>/dev/null || find src tests bench examples -name '*.[ch]'; } |
		xargs -P 2 -n 100 clang-format --dry-run -Werror
}

if clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
	check "make fmt has nothing to do" formatted
else
	skip "make fmt has nothing to do" "install clang-format 14"
fi
finish
