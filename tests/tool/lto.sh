#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# Built as distributions build, whose compilers see all of a library at once (-flto), it is whole: what make install puts where, and that it works.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
lto=$(mktemp -d)
trap 'rm -rf "$lto"' EXIT

if ! { meson setup "$lto" "$root" -Db_lto=true -Dtests=disabled -Dwerror=true && ninja -C "$lto"; } >"$lto.log" 2>&1 </dev/null; then
	tail -n 30 "$lto.log" | sed 's/^/# /'
	rm -f "$lto.log"
	echo "not ok 1 - it builds with -flto"
	echo "1..1"
	exit 1
fi
rm -f "$lto.log"
HD_BUILD=$lto "$root/tests/tool/install.sh"
