#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# run.sh [--no-preload] HEDDLE TRANSPORT PROGRAM ARGUMENT…: runs a conformance program over that transport and turns its lines
# "ROW name pass|fail|unsupported  reason" into the Test Anything Protocol. A line is printed as soon as it is there.
# --no-preload: by the environment alone, for a program that Heddle is linked with, or that finds the provider by its path.
#
# As root the program has a network of its own, with an interface beside lo. A row that calls a port at which nobody listens any more, or has just begun to,
# would else meet whoever has been given that port meanwhile, another test's row as well: a request that nobody there expects.
set -uo pipefail

network_make() {
	ip link set lo up && ip link add v0 type veth peer name v1 && ip addr add 10.213.9.1/24 dev v0 &&
		ip link set v0 up && ip link set v1 up && ip route add default dev v0 || return 1
	ip addr add fd00:ddee::9/64 dev v0 nodad 2>/dev/null || true # or there is no IPv6
}

case ${HD_CT_NETWORK:-} in
'')
	own=(unshare --net env HD_CT_NETWORK=own "$0")
	"${own[@]}" --try 2>/dev/null && exec "${own[@]}" "$@"
	;;
own) network_make || exit 1 ;;
esac
[ "$1" != --try ] || exit 0
how=heddle
[ "$1" != --no-preload ] || { how=alone && shift; }
heddle=$1 transport=$2
shift 2
# shellcheck source=tests/ports.sh
. "$(dirname "$0")/../ports.sh"
[ "${HD_CT_NETWORK:-}" = own ] || ports_for_c

start() {
	case $how in
	heddle) "$heddle" run "--transport=$transport" -- "$@" ;;
	alone)
		here=$(realpath "$(dirname "$heddle")")
		HEDDLE_TRANSPORT=$transport FI_PROVIDER_PATH=$here DAT_OVERRIDE=$here/dat.conf \
			LD_LIBRARY_PATH=$here${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$@"
		;;
	esac
}

start "$@" 2>&1 | awk '
	/^[A-Z]/ && match($0, / (pass|fail|unsupported)(  |$)/) {
		name = substr($0, 1, RSTART - 1)
		rest = substr($0, RSTART + 1)
		reason = rest
		sub(/^[a-z]+ */, "", reason)
		gsub(/#/, "", name)
		if (rest ~ /^pass/) printf "ok %d - %s\n", ++n, name
		else if (rest ~ /^fail/) printf "not ok %d - %s\n#   %s\n", ++n, name, reason
		else printf "ok %d - %s # SKIP %s\n", ++n, name, reason
		fflush()
		next
	}
	{ print "# " $0; fflush() }
	END { printf "1..%d\n", n }'
exit "${PIPESTATUS[0]}"
