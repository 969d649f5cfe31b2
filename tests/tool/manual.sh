#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# The manual pages tell the truth about settings and options: manual.sh HEDDLE …
set -euo pipefail
heddle=$(realpath "$1")
cd "$(dirname "$0")/../.."
. tests/tap.sh

env -i PATH="$PATH" "$heddle" info --json >"$tap_scratch/info"

# One line "NAME DEFAULT" for each setting, as the program and as the page have them.
program_says() {
	python3 -c "
import json
for s in json.load(open('$tap_scratch/info'))['settings']:
    print(s['name'], s['default'])"
}

page_says() {
	sed -nE 's/^\.It Ev (HEDDLE_[A-Z_]+)( Pq Li (.*))?$/\1 \3/p' man/heddle.7
}

# What each setting takes: its unit and range.
program_takes() {
	python3 -c "
import json
for s in json.load(open('$tap_scratch/info'))['settings']:
    print(s['name'], 'Takes', s['takes'] + '.')"
}

page_takes() {
	awk '/^\.It Ev HEDDLE_/ { name = $3 } /^Takes / { print name, $0 }' man/heddle.7
}

# options COMMAND: the long options that its help lists.
options() {
	"$heddle" "$1" --help | grep -oE -- '^ .*--[a-z-]+' | grep -oE -- '--[a-z-]+'
}

page_has_option() {
	grep -qE -- "Fl (. , )?-${1#--}( |\$)" man/heddle.1
}

check "heddle(7) has every setting with its default, and no other" diff <(program_says | sort) <(page_says | sort)
check "heddle(7) has them in the order of heddle info" diff <(program_says) <(page_says)
check "heddle(7) has unit and range of every setting" diff <(program_takes) <(page_takes)
# The same of the files of rsockets: "NAME DEFAULT TAKES".
program_has_files() {
	python3 -c "
import json
for f in json.load(open('$tap_scratch/info'))['rsockets']:
    print(f['name'], 'none' if f['default'] < 0 else f['default'], 'Takes', f['takes'] + '.')"
}

page_has_files() {
	awk '/^\.Sh/ { on = $2 == "FILES" } on && /^\.It Pa/ { name = $3; fallback = $NF } on && /^Takes / { print name, fallback, $0 }' man/heddle_rdmacm.7
}

# Variables that are read by name, and stand in no man page.
unmentioned() {
	grep -rhoE 'getenv\("[A-Z_]+"\)' src --include='*.c' --exclude='*_test.c' | grep -oE '[A-Z_]{3,}' | sort -u | while read -r name; do
		grep -qw "$name" man/*.[17] || echo "$name"
	done
}

check "heddle_rdmacm(7) has every file of rsockets with default, unit and range, and no other" diff <(program_has_files) <(page_has_files)
check "a page names every variable that is read" diff <(unmentioned) /dev/null
for command in run info; do
	while read -r option; do
		check "heddle(1) has $command $option" page_has_option "$option"
	done < <(options $command)
done
check_status "and this check can fail" 1 page_has_option --nonsense
finish
