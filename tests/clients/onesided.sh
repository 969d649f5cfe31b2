#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# MPI's one-sided operations, onesided.c, through Open MPI's libfabric transport for them (osc rdma over btl ofi): FI_RMA and
# FI_ATOMIC. Its messages take the way of openmpi.sh, where these windows can be had beside it: up to version 4 of Open MPI.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh" "$@"
# shellcheck source=tests/clients/mpi.sh
. "$(dirname "$0")/mpi.sh"
need mpirun mpicc
mpicc -O1 -Wall -o "$scratch/onesided" "$here/onesided.c" || exit 2

messages=(--mca btl "ofi,self")
[ "$(mpirun --version | sed -n 's/^mpirun (Open MPI) \([0-9]*\).*/\1/p')" -lt 5 ] ||
	messages=(--mca pml ob1 --mca btl "ofi,self,sm" --mca osc_rdma_btl_names ofi)

# onesided RANKS TRANSPORT: the windows are those of osc rdma, which has no other way out than btl ofi
onesided() {
	local name="Open MPI one-sided, $1 ranks, $2"
	mpi "$2" 240 -np "$1" "${messages[@]}" --mca btl_ofi_provider_include "$PROVIDER" --mca osc rdma \
		--mca osc_base_verbose 100 "$scratch/onesided" >"$scratch/log" 2>&1 &&
		grep -q "^onesided: ok, $1 ranks" "$scratch/log" && grep -q "rdma component destroying window" "$scratch/log"
	judge "$name" "something one-sided went wrong"
}

for t in "${transports[@]}"; do
	onesided 2 "$t"
	onesided 4 "$t"
	[ "$fast" = no ] || continue
	onesided 1 "$t"
	onesided 8 "$t"
done
finish
