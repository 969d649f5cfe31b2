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

# A file is about one thing, and a function of what is shipped fits on a screen: none is longer than this. Both braces of a function begin a line.
too_long() {
	tree_files | grep -E '^(src|tests)/.*\.[ch]$' | xargs awk '
		function over() { if (lines > 700) print file ": " lines " lines, where 700 are the most" }
		FNR == 1 { over(); file = FILENAME; begun = 0; shipped = file ~ /^src/ && file !~ /_test\.c$/ }
		{ lines = FNR }
		/^\{/ { begun = FNR }
		/^\}/ && begun {
			if (shipped && FNR - begun > 51) print file ":" begun ": a function of " FNR - begun - 1 " lines, where 50 are the most"
			begun = 0
		}
		END { over() }' >"$tap_scratch/long"
	cat "$tap_scratch/long"
	[ ! -s "$tap_scratch/long" ]
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
check "no source file and no function is too long" too_long
check "each fault of tests/mutants can be made" tests/mutants/run --check
finish
