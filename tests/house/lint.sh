#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# Scripts, manual pages and source files are free of what their checkers find.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/tap.sh

# Files of the tree: those that git knows, or all where this is no checkout.
tree_files() {
	git ls-files -co --exclude-standard 2>/dev/null || find . -path ./build -prune -o -type f -print
}

shell_scripts() {
	tree_files | while read -r file; do
		if [ -f "$file" ] && head -c 64 "$file" | head -n 1 | grep -qE '^#!.*\b(ba)?sh\b|^# shellcheck shell'; then
			echo "$file"
		fi
	done
}

lint_page() {
	! mandoc -T lint -W warning "$1" | grep -v 'referenced manual not found'
}

spdx_missing() {
	local file bad=0
	while read -r file; do
		[ -f "$file" ] || continue
		if ! head -n 3 "$file" | grep -q 'SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only' ||
			! head -n 4 "$file" | grep -q 'SPDX-FileCopyrightText: '; then
			echo "$file lacks its two SPDX lines"
			bad=1
		fi
	done < <(tree_files | grep -E '\.(c|h|def|map|sh|py|build)$|(^|/)Makefile$|^(ci|bench)/[^./]+$')
	return $bad
}

# Versions of clang-format differ in details; the tree follows Debian 12's.
formatted() {
	tree_files | grep -E '\.[ch]$' | xargs clang-format --dry-run -Werror
}

# A setting that nothing reads would be a promise that is not kept.
is_read() {
	grep -rqw "HD_SET_$1" src/engine src/transport src/front src/base/config.c
}

while read -r script; do
	check "shellcheck $script" shellcheck -x -S warning "$script"
done < <(shell_scripts)
while read -r page; do
	check "manual page $page" lint_page "$page"
done < <(tree_files | grep -E '^man/.*\.[0-9]$')
while read -r setting; do
	check "something reads HEDDLE_$setting" is_read "$setting"
done < <(sed -nE 's/^HD_SETTING\(([A-Z_]+),.*/\1/p' src/base/settings.def)
check "every source file names its licence" spdx_missing
check "each fault of tests/mutants can be made" tests/mutants/run --check
if clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
	check "make fmt has nothing to do" formatted
else
	skip "make fmt has nothing to do" "no clang-format 14"
fi
finish
