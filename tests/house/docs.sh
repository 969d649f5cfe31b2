#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# What the documents show and name is there.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/tap.sh
. tests/tap.sh

mapfile -t sources < <(find src preload compat -name '*.[ch]' -o -name '*.def')
documents=(README.md CONTRIBUTING.md CHANGELOG.md docs/*.md bench/README.md tests/README.md)

# The blocks of C in a document.
c_blocks() {
	awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$1"
}

# Files of ours that a document names between backquotes, and the targets of its links. Prints those that are not there.
missing_files() {
	local document=$1 name
	grep -oE '`(src|docs|tests|bench|ci|man|examples)/[A-Za-z0-9_./-]+`' "$document" | tr -d '`' |
		while read -r name; do [ -e "$name" ] || echo "$document: $name"; done
	grep -oE '\]\([^)# ]+' "$document" | cut -c3- | grep -v '://' |
		while read -r name; do [ -e "$(dirname "$document")/$name" ] || echo "$document: $name"; done
}

# Links to a heading, in this document or another: FILE#heading, in GitHub's way of writing headings.
missing_headings() {
	local document=$1 link file
	grep -oE '\]\([^): ]*#[^)]+' "$document" | cut -c3- | while read -r link; do
		file=${link%%#*}
		file=${file:+$(dirname "$document")/$file}
		sed -nE 's/^#+ //p' "${file:-$document}" | tr '[:upper:] ' '[:lower:]-' | tr -cd '[:alnum:]\n_-' |
			grep -qx -- "${link#*#}" || echo "$document: $link"
	done
}

# Kinds and flags of packets, without their prefix, which is an extended regular expression.
packet_names() {
	grep -oE "^	HD_$1[A-Z]+" src/engine/wire.h | sed -E "s/^	HD_$1//" | grep -vxE 'NONE|KINDS|TRANSPORT|F'
}

wire_lacks() {
	local name
	for name in $(packet_names PKT_) $(packet_names '(PKT|HELLO|CTS|FIN)_F_') "$@"; do
		grep -qw -- "$name" docs/wire.md || echo "$name"
	done
}

settings_lacking() {
	grep -hv '^\.Dt ' "$@" | grep -oE 'HEDDLE_[A-Z_]+' | sort -u | while read -r name; do
		grep -qx "HD_SETTING(${name#HEDDLE_},.*" src/base/settings.def || echo "$name"
	done
}

# Functions, types and constants of ours in what is read.
names_of_ours() {
	grep -oE '\b(h[duv]_[a-z0-9_]+|H[DUV]_[A-Z0-9_]+)' | sort -u
}

without_comments() {
	awk 'BEGIN { RS = "\\*/" } { sub(/\/\*.*/, " ") } 1' "$@"
}

# Names of ours in a document, or in sources and their comments, that the sources do not have beside their comments, or not as a beginning.
missing_names() {
	cat "$@" | names_of_ours >"$tap_scratch/names"
	[ -s "$tap_scratch/known" ] ||
		without_comments "${sources[@]}" | names_of_ours >"$tap_scratch/known"
	awk 'NR == FNR { known = known "\n" $0; next } !index(known, "\n" $0)' "$tap_scratch/known" "$tap_scratch/names"
}

# What the tour says of the engine's functions, from the first one on.
tour() {
	sed -n '/^## One fi_tsend/,$p' "$1"
}

# Names in it that the sources do not have beside their comments; those of the interfaces are others'.
tour_strays() {
	comm -23 <(tour "$1" | sed -E 's#[a-z_]+/[a-z_/]+(\.[ch])?# #g' | grep -oE '\b[a-z0-9]+(_[a-z0-9]+)+\b' | sort -u) \
		<(without_comments "${sources[@]}" | grep -oE '\b[a-z0-9]+(_[a-z0-9]+)+\b' | sort -u) |
		grep -vE '^(fi|ibv|rdma|dat)_' || true
}

# And those that are not in the file that stands beside them: `NAME` (FILE), or NAME, two spaces at least, FILE.
tour_misplaces() {
	tour "$1" | grep -oE '`[a-z0-9_]+` \([a-z]+/[a-z_/]+\.[ch]\)|[a-z0-9_]+ {2,}[a-z]+/[a-z_/]+\.[ch]' | tr -d '`()' |
		while read -r name file; do
			[ -e "src/$file" ] || file=engine/$file
			without_comments "src/$file" 2>/dev/null | grep -w "$name" >/dev/null || echo "$name is not in $file"
		done
}

# Units of the engine that go by members to what they want to know, and are not named where tests/README.md tells of these.
members='hd_(conns|core|eps|events|links|names|qps|regions|rqs|xfers)\([^)]*\)+->|->(conn|qp|rq)->|[.>]to->(peer|state|remote|refs|waiting|retry)|\blife\.|pending\.(id|peer)\b'
units_unnamed() {
	local unit
	find src/engine -name '*_test.c' -exec grep -lE -- "$members" {} + | while read -r unit; do
		unit=${unit##*/}
		sed -n '/^## Units that look/,/^## Units that the/p' "$1" | grep -w -- "${unit%_test.c}" >/dev/null || echo "$unit"
	done
}

# Source files that a newcomer would not find.
files_lacking() {
	find src -name '*.c' ! -name '*_test.c' | while read -r name; do
		grep -qE '`([a-z_/]*/)?'"${name##*/}"'`' "$1" || echo "$name"
	done
}

# Rows and objects that cases are named after.
rows_of_cases() {
	{
		"$HD_BUILD/tests/conformance/ofi-conformance" -p heddle -l
		"$HD_BUILD/tests/conformance/verbs-conformance" -d heddle0 -l
		"$HD_BUILD/tests/conformance/dat-conformance" -D heddle -l
	} 2>/dev/null | awk '{ print $1 }' | sort -u
}

rows_lacking() {
	rows_of_cases | cat - <(printf '%s\n' "$@") | while read -r row; do
		grep -qE "^\\| $row \\||^[^|]*\\b$row\\b" docs/rows.md || echo "$row"
	done
}

# The number that a header gives to a version.
version_of() {
	awk -v name="$1" '$1 == "#define" && $2 == name { print $3 }' "$2"
}

prints_nothing() {
	"$@" >&2
	[ -z "$("$@")" ]
}

check "docs/first.md shows examples/first.c as it is" diff <(c_blocks docs/first.md) examples/first.c
for document in "${documents[@]}"; do
	check "$document is there" test -s "$document"
	check "$document names only files that are there" prints_nothing missing_files "$document"
	check "$document links only to headings that are there" prints_nothing missing_headings "$document"
	check "$document names only settings that there are" prints_nothing settings_lacking "$document"
	check "$document names only what the sources have" prints_nothing missing_names "$document"
done
for page in man/*.[1-9]; do
	check "$page names only settings that there are" prints_nothing settings_lacking "$page"
done
check "comments name only what the sources have" prints_nothing missing_names "${sources[@]}"
check "the tour is of 200 lines at most" test "$(wc -l <docs/architecture.md)" -le 200
check_output "and names functions" '^hd_turn$' eval "tour docs/architecture.md | grep -ow hd_turn"
check "that there are" prints_nothing tour_strays docs/architecture.md
check "in the files that it names" prints_nothing tour_misplaces docs/architecture.md
check "tests/README.md names the units that look at members" prints_nothing units_unnamed tests/README.md
check "docs/files.md says where every source file belongs" prints_nothing files_lacking docs/files.md
check_output "and docs/architecture.md leads there" '\]\(files\.md\)' cat docs/architecture.md
check_output "docs/wire.md is of the present version" ".version. is $(version_of HD_WIRE_VERSION src/engine/wire.h);" cat docs/wire.md
check_output "docs/shm-layout.md is of the present version" \
	"version $(version_of HD_SHM_VERSION src/transport/shm/layout.h) \(.HD_SHM_VERSION.\)" cat docs/shm-layout.md
check "docs/wire.md has every kind and flag of packets" prints_nothing wire_lacks
check_output "and this check can fail" '^NONSENSE$' wire_lacks NONSENSE
check_output "cases are named after rows" '^V7$' rows_of_cases
check "docs/rows.md has every row and object" prints_nothing rows_lacking
check_output "and this can fail too" '^M99$' rows_lacking M99
untitled_rows() {
	[ ! -x "$HD_BUILD/tests/conformance/ofi-conformance" ] || tests/conformance/matrix --titles "$HD_BUILD"
}
check "the table of conformance has a title for each row" untitled_rows

cat >"$tap_scratch/bad.md" <<'EOF'
`src/engine/nothing.c`, [a link](nothing.md), [a heading](#nothing), HEDDLE_NOTHING, hd_nothing
EOF
check_output "a file that is not there is found" 'src/engine/nothing.c$' missing_files "$tap_scratch/bad.md"
check_output "a link that leads nowhere is found" 'nothing.md$' missing_files "$tap_scratch/bad.md"
check_output "a heading that is not there is found" '#nothing$' missing_headings "$tap_scratch/bad.md"
check_output "a setting that there is not is found" '^HEDDLE_NOTHING$' settings_lacking "$tap_scratch/bad.md"
check_output "a function that there is not is found" '^hd_nothing$' missing_names "$tap_scratch/bad.md"
echo '/* As hd_nothing, in two lines: * hd_node_open */ /* hd_nought */ int hd_node_open;' >"$tap_scratch/bad.c"
check_output "and in a comment" '^hd_nothing hd_nought $' eval "missing_names '$tap_scratch/bad.c' | tr '\n' ' '"
printf '## One fi_tsend\nfi_send, rma_writes, `hd_turn` (core/lane.c)\n' >"$tap_scratch/tour.md"
check_output "a function of the tour that there is not is found" '^rma_writes$' tour_strays "$tap_scratch/tour.md"
check_output "and one that is in another file" '^hd_turn is not in engine/core/lane.c$' tour_misplaces "$tap_scratch/tour.md"
check_output "a unit that looks at members is found" '^life_test.c$' units_unnamed "$tap_scratch/bad.md"
check_output "a source file that is not named is found" '^src/base/log.c$' files_lacking "$tap_scratch/bad.md"
finish
