#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# Makes the tracepoints of a library of Heddle's known to the kernel, as perf events heddle:post and so on: perf_tracepoints.sh LIBRARY. As root, on x86-64.
# `perf probe --add` cannot: a tracepoint stands in several places, all of which are one event, and it leaves out arguments that are constants at some of
# them, which the kernel then refuses. Here a constant is an argument as others are. `perf probe --del 'heddle:*'` takes them back.
set -euo pipefail
library=$(realpath "${1:?usage: perf_tracepoints.sh LIBRARY}")
events=/sys/kernel/tracing/uprobe_events

# what an earlier call has left: of a library that has been built anew, perhaps
sed -nE 's|^p:(heddle/[a-z]+) .*|-:\1|p' "$events" | sort -u | while read -r event; do
	echo "$event" >>"$events"
done

# The offset in the file of an address, by the section of code that it is in.
read -r address offset < <(readelf -SW "$library" | sed -nE 's/.* \.text +PROGBITS +([0-9a-f]+) ([0-9a-f]+) .*/\1 \2/p')
base=$((0x$address - 0x$offset))

# A line of uprobe_events for each place; an argument in a form that it does not know is 0.
readelf -nW "$library" | awk -v library="$library" '
	function register(name) {
		if (name ~ /^[er]?[a-d]x$/ || name ~ /^[a-d]l$/) return "%" substr(name, length(name) - 1, 1) "x"
		if (name ~ /^r[0-9]+/) { sub(/[dwb]$/, "", name); return "%" name }
		sub(/^[er]/, "", name); sub(/l$/, "", name)
		return "%" name
	}
	function argument(text,   size, at) {
		size = text; sub(/@.*/, "", size); sub(/^-/, "", size); sub(/^[^@]*@/, "", text)
		if (text ~ /^\$-?[0-9]+$/) at = "\\" substr(text, 2)
		else if (text ~ /^%[a-z0-9]+$/) at = register(substr(text, 2))
		else if (text ~ /^-?[0-9]*\(%[a-z0-9]+\)$/) {
			at = text; sub(/\(.*/, "", at); gsub(/.*\(%|\)/, "", text)
			at = (at ~ /^-/ ? "" : "+") (at == "" ? 0 : at) "(" register(text) ")"
		} else at = "\\0"
		return at ":u" size * 8
	}
	/Provider: / { ours = $NF == "heddle" }
	ours && /Name: / { name = $2 }
	ours && /Location: / { place = $2; sub(/,$/, "", place) }
	ours && /Arguments: / {
		line = "p:heddle/" name " " library ":" place
		for (i = 2; i <= NF; i++) line = line " arg" i - 1 "=" argument($i)
		print line
	}' | while read -r what where arguments; do
	printf '%s %s:0x%x %s\n' "$what" "${where%:*}" $((${where##*:} - base)) "$arguments"
done >>"$events"
