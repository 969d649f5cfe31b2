#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# Debian's Open MPI through its libfabric transport (pml cm, mtl ofi): a hello, and exchange.c.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh" "$@"
# shellcheck source=tests/clients/mpi.sh
. "$(dirname "$0")/mpi.sh"
need mpirun mpicc
build_mpi

# hello RANKS TRANSPORT: each rank says its number, and the transport is ours, not another one
hello() {
	local name="Open MPI hello, $1 ranks, $2" r
	mpi "$2" 120 -np "$1" "$scratch/hello" >"$scratch/log" 2>&1 || { fail "$name" "exit status $?"; return; }
	for ((r = 0; r < $1; r++)); do
		grep -qx "hello from $r of $1" "$scratch/log" || { fail "$name" "rank $r is missing"; return; }
	done
	pass "$name"
}

exchange() {
	local name="Open MPI exchange, $1 ranks, $2"
	mpi "$2" 240 -np "$1" "$scratch/exchange" "${@:3}" >"$scratch/log" 2>&1 && grep -q "^exchange: ok, $1 ranks" "$scratch/log"
	judge "$name" "the exchange went wrong"
}

# Is it really this provider that carries the messages?
provider_is_used() {
	mpi "$1" 120 -np 2 --mca opal_common_ofi_verbose 100 --mca mtl_base_verbose 100 "$scratch/hello" >"$scratch/log" 2>&1
	grep -qiE "selected provider: *$PROVIDER|mtl_ofi_component.*: *$PROVIDER" "$scratch/log"
	judge "Open MPI uses $PROVIDER, $1" "it selected another one"
}

provider_is_used "${transports[0]}"
for t in "${transports[@]}"; do
	hello 2 "$t"
	hello 4 "$t"
	exchange 4 "$t" 500
	[ "$fast" = no ] || continue
	exchange 1 "$t"
	exchange 2 "$t" 20000
	exchange 8 "$t" 1000
done
finish
