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

# Comments are as wide as this at most, but for a line that is one word, which cannot be broken; code may have the 110
# of .clang-format. Of a character's bytes the first counts.
comments_too_wide() {
	LC_ALL=C awk '
		function columns(text, part, n, i, at) {
			gsub(/[\200-\277]/, "", text)
			n = split(text, part, "\t")
			for (i = 1; i <= n; i++)
				at = (i > 1 ? at + 8 - at % 8 : 0) + length(part[i])
			return at
		}
		FNR == 1 { inside = 0 }
		{
			rest = $0
			if (!inside)
				gsub(/"([^"\\]|\\.)*"/, "", rest)
			if (!inside && rest !~ /\/\*/)
				next
			sub(/.*\/\*/, "", rest)
			inside = rest !~ /\*\//
			text = $0
			if (!inside && match(text, /.*\*\//))
				text = substr(text, 1, RLENGTH)
			word = text
			gsub(/^[ \t]*(\/\*|\*)?[ \t]*|[ \t]*\*\/$/, "", word)
			if (columns(text) > 100 && word ~ /[ \t]/)
				print FILENAME ":" FNR ": a comment of " columns(text) " columns, where 100 are the most"
		}' "$@" >"$tap_scratch/wide"
	cat "$tap_scratch/wide"
	[ ! -s "$tap_scratch/wide" ]
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
mapfile -t sources < <(tree_files | grep -E '^src/.*\.(c|h|def)$')
check "no comment is too wide" comments_too_wide "${sources[@]}"
{
	printf 'int a;%88s/* b */\nint a;%87s/* b */\n' '' ''    # 101 columns, and 100
	printf '\t/* …%88s\n\t * %0100d\n */ int c;%100s\n' b 0 c # 100, one word, and code
	printf 'const char *d = "/* %100s";\n' d                  # no comment
} >"$tap_scratch/wide.c"
check_output "and one that is gets found" '^1: a comment of 101 columns, where 100 are the most $' \
	eval "comments_too_wide '$tap_scratch/wide.c' | cut -d: -f2- | tr '\n' ' '"
check "each fault of tests/mutants can be made" tests/mutants/run --check
finish
