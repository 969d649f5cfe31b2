#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# Two network namespaces joined by a veth pair: fi_pingpong and an MPI program between them.  What is
# shared by processes of one host (abstract sockets, loopback) ends at their borders, so this is TCP.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh" "$@"
# shellcheck source=tests/clients/netns.sh
. "$(dirname "$0")/netns.sh"
# shellcheck source=tests/clients/mpi.sh
. "$(dirname "$0")/mpi.sh"
need ip fi_pingpong mpirun mpicc

transport=tcp
# A pingpong from one namespace to the other; both tables must be whole.
pingpong() {
	local name=$1 to=$2 server status i
	shift 2
	local arguments=(-p "$PROVIDER" -e rdm -I 10 -S all "$@")
	over "$transport" 120 ip netns exec "${names[0]}" fi_pingpong "${arguments[@]}" >"$scratch/server" 2>&1 &
	server=$!
	for ((i = 0; i < 200; i++)); do
		! within 0 ss -Hltn 'sport = :47592' | grep -q . || break # its usual port, in a network of its own
		kill -0 $server 2>/dev/null || break
		sleep 0.05
	done
	over "$transport" 120 ip netns exec "${names[1]}" fi_pingpong "${arguments[@]}" "$to" >"$scratch/log" 2>&1
	status=$?
	wait $server || { status=$? && cat "$scratch/server" >>"$scratch/log"; }
	[ $status -eq 0 ] && [ "$(grep -c '^[0-9]' "$scratch/log")" -eq 46 ] && [ "$(grep -c '^[0-9]' "$scratch/server")" -eq 46 ]
	judge "$name" "no whole table"
}

# mpirun starts its daemon in the other namespace by this instead of ssh: AGENT HOST COMMAND…
write_agent() {
	cat >"$scratch/agent" <<-END
		#!/bin/sh
		case \$1 in
		${address[0]}) ns=${names[0]} ;;
		${address[1]}) ns=${names[1]} ;;
		*) exit 1 ;;
		esac
		shift
		echo "\$ns" >>$scratch/agent.log
		exec ip netns exec "\$ns" sh -c "\$*"
	END
	chmod +x "$scratch/agent"
}

# The other half of the ranks really ran in the other namespace.
used() {
	grep -qx "${names[1]}" "$scratch/agent.log"
	judge "mpirun starts ranks in the other namespace" "it never asked for them"
}

exchange() {
	local name="Open MPI exchange, $1 ranks, across namespaces, $transport"
	over "$transport" 240 ip netns exec "${names[0]}" mpirun --allow-run-as-root --oversubscribe \
		--host "${address[0]}:$(($1 / 2)),${address[1]}:$(($1 / 2))" --map-by node \
		--mca plm_rsh_agent "$scratch/agent" --mca plm rsh --mca oob_tcp_if_include v0 --mca btl_tcp_if_include v0 \
		--mca mpi_yield_when_idle 1 --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include "$PROVIDER" \
		-x FI_PROVIDER_PATH -x FI_PROVIDER -x HEDDLE_TRANSPORT -x HEDDLE_ADDR \
		-np "$1" "$scratch/exchange" "$2" >"$scratch/log" 2>&1 && grep -q "^exchange: ok, $1 ranks" "$scratch/log"
	judge "$name" "the exchange went wrong"
}

if ! make 2>"$scratch/log"; then
	for t in fi_pingpong "Open MPI exchange"; do
		skip "$t across namespaces" "$(needs_namespaces)"
	done
	finish
fi
build_mpi
write_agent
pingpong "fi_pingpong tagged across namespaces" "${address[0]}" -m tagged
exchange 4 500
used
if [ "$fast" = no ]; then
	pingpong "fi_pingpong msg -c across namespaces" "${address[0]}" -m msg -c
	pingpong "fi_pingpong tagged -c across namespaces" "${address[0]}" -m tagged -c
	pingpong "fi_pingpong tagged ipv6 across namespaces" "${address6[0]}" -6 -m tagged -c
	exchange 2 500
	exchange 4 20000
	# left to itself it finds out that memory cannot be shared here
	transport=auto
	pingpong "fi_pingpong tagged across namespaces, auto" "${address[0]}" -m tagged
	exchange 4 500
fi
finish
