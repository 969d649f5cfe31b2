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

# One reader for all files: a process for each would take longer than the checks.
shell_scripts() {
	tree_files | xargs awk 'FNR > 1 { nextfile } /^#!.*[\/ ](ba)?sh( |$)|^# shellcheck shell/ { print FILENAME }'
}

lint_page() {
	! mandoc -T lint -W warning "$1" | grep -v 'referenced manual not found'
}

spdx_missing() {
	tree_files | grep -E '\.(c|h|def|map|sh|py|build)$|(^|/)Makefile$|^(ci|bench)/[^./]+$' | xargs awk '
		FNR == 1 { seen[FILENAME] = 0 }
		FNR > 4 { nextfile }
		FNR < 4 && /SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only/ { seen[FILENAME]++ }
		/SPDX-FileCopyrightText: / { seen[FILENAME]++ }
		END { for (name in seen) if (seen[name] < 2) print name " lacks its two SPDX lines" }' >"$tap_scratch/spdx"
	cat "$tap_scratch/spdx"
	[ ! -s "$tap_scratch/spdx" ]
}

# A setting that nothing reads would be a promise that is not kept.
is_read() {
	grep -rqw "HD_SET_$1" src/engine src/transport src/front src/base/config.c src/base/seal.c
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
finish
