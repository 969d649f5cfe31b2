# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# Ports for the servers of a test script: of TCP and UDP, and of services of rdma_cm. Sourced.
#
#	free_port         sets $port_last to the next port of this script's own that nobody has
#	ports_take        takes a block of a hundred: its first is $ports_first. free_port does so when it has to
#	ports_for_c       exports the first of a block as HD_TEST_PORTS, for ct_port of tests/conformance and what else is in C
#	ports_lock NAME [SECONDS]    waits so long, or not, for a lock that one script of the host holds at a time; its descriptor is in $ports_lock_fd
#	ports_unlock DESCRIPTOR      gives it back
#
# No block is one that the kernel gives to connections (net.ipv4.ip_local_port_range): whoever connects may have any of those, at any moment. None has a
# port in use, by an ended connection that the kernel still remembers either (TIME_WAIT): programs without SO_REUSEADDR cannot listen there. A lock keeps
# other scripts out of a block until this one has ended, and all that it has started. A program in a network namespace of its own needs none of this.
#
# Locks are for all who share a network, so for all users, and all checkouts: their folder does not follow TMPDIR, is as open as /tmp, and they are opened for
# reading alone, which flock(1) is content with. Containers may share a network and no /tmp: each begins its search elsewhere, and sees ports in use.

ports_locks=${HD_PORTS_LOCKS:-/tmp/heddle-ports}
ports_proc=${HD_PORTS_PROC:-/proc} # the test of this file has another
ports_first=0 port_last=0 ports_end=0 ports_lock_fd=

# What documented commands listen at by themselves, tests/clients/programs.sh, where those have no network of their own.
ports_known=' 3260 4444 5001 5201 7100 7174 7427 7471 13337 15828 18515 19765 30791 '

# shellcheck disable=SC2034 # ports_lock_fd is for those who lock
ports_lock() {
	local file=$ports_locks/$1 fd wait=(-n)
	[ $# -eq 1 ] || wait=(-w "$2")
	(umask 0 && mkdir -m 1777 "$ports_locks") 2>/dev/null || true
	[ -e "$file" ] || (umask 022 && set -C && : >"$file") 2>/dev/null || true
	[ -r "$file" ] || { echo "cannot open $file: remove $ports_locks, which another user has made unreadable" >&2 && return 2; }
	exec {fd}<"$file"
	flock "${wait[@]}" "$fd" && ports_lock_fd=$fd && return
	exec {fd}<&-
	return 1
}

# What has been started meanwhile has the lock open too, and gives it up with us.
ports_unlock() {
	local fd=$1
	flock -u "$fd"
	exec {fd}<&-
}

# ports_used: each port that somebody of this network has, of a socket or of a service of rdma_cm
ports_used() {
	{ cat "$ports_proc"/net/{tcp,tcp6,udp,udp6,unix} 2>/dev/null || true; } | awk '
		function number(hex, i, n) {
			for (i = 1; i <= length(hex); i++) n = 16 * n + index("0123456789abcdef", tolower(substr(hex, i, 1))) - 1
			return n
		}
		$1 ~ /^[0-9]+:$/ && split($2, at, ":") == 2 { print number(at[2]) }
		match($0, /@heddle\/service\/[0-9a-f]+\/[0-9a-f]+/) && split(substr($0, RSTART, RLENGTH), at, "/") { print number(at[4]) }'
}

# ports_blocks [any]: the first ports of those that may be taken, in the order in which to try them; with "any", of those given to connections too
ports_blocks() {
	local low high
	read -r low high <"$ports_proc/sys/net/ipv4/ip_local_port_range"
	ports_used | awk -v low="$low" -v high="$high" -v any="${1:-}" -v known="$ports_known" -v begin="$RANDOM" '
		{ used[int($1 / 100)] = 1 }
		END {
			for (n = split(known, port, " "); n; n--) used[int(port[n] / 100)] = 1
			for (b = 20; b < 655; b++) # from 2000 on
				if (!(b in used) && (any || b * 100 > high || b * 100 + 99 < low)) free[count++] = b * 100
			for (i = 0; i < count; i++) print free[(i + begin) % count]
		}'
}

ports_take() {
	local any first status
	for any in '' any; do
		for first in $(ports_blocks "$any"); do
			status=0
			ports_lock "$first" || status=$?
			[ $status -ne 1 ] || continue
			[ $status -eq 0 ] || return $status
			ports_first=$first port_last=$((first - 1)) ports_end=$((first + 100))
			[ -z "$any" ] || echo "# net.ipv4.ip_local_port_range leaves no port to tests: somebody's connection may get one of theirs" >&2
			return
		done
	done
	echo "$(basename "$0"): no hundred ports are free" >&2
	return 1
}

free_port() {
	local used
	used=" $(ports_used | xargs) "
	while :; do
		port_last=$((port_last + 1))
		[ $port_last -lt $ports_end ] || { ports_take && continue; } || exit 2
		[[ $used = *" $port_last "* ]] || break
	done
}

ports_for_c() {
	ports_take || exit 2
	export HD_TEST_PORTS=$ports_first
}
