# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# Two network namespaces joined by a veth pair, as two hosts. Sourced behind lib.sh:
#
#	make                    makes them, or fails; they go when the script ends. needs_namespaces says why, to skip
#	within 0|1 program…     runs a program in one of them; all ports are its own there
#	"${names[@]}"           what they are called; "${address[@]}" and "${address6[@]}" where they are

names=(hd-a-$$ hd-b-$$)
address=(10.213.7.1 10.213.7.2)
address6=(fd00:ddee::1 fd00:ddee::2)

remove() {
	local n pid
	for n in "${names[@]}"; do
		for pid in $(ip netns pids "$n" 2>/dev/null); do kill -KILL "$pid" 2>/dev/null; done
		ip netns del "$n" 2>/dev/null
	done
}

make() {
	local i n
	for i in 0 1; do
		n=${names[$i]}
		ip netns add "$n" && ip -n "$n" link set lo up || return 1
	done
	ip -n "${names[0]}" link add v0 type veth peer name v0 netns "${names[1]}" || return 1
	for i in 0 1; do
		n=${names[$i]}
		ip -n "$n" addr add "${address[$i]}/24" dev v0 && ip -n "$n" addr add "${address6[$i]}/64" dev v0 nodad &&
			ip -n "$n" link set v0 up || return 1
	done
}

# Why make has failed, by what it has written to $scratch/log, and what would help.
needs_namespaces() {
	echo "run as root, with iproute2 and the kernel's veth, where network namespaces can be made: $(head -n 1 "${scratch:?}/log")"
}

# within 0|1 program…
within() {
	ip netns exec "${names[$1]}" "${@:2}"
}

cleaners+=(remove)
