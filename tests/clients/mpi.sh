# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# For the scripts that run MPI programs; sourced after lib.sh.
# shellcheck disable=SC2154 # which sets scratch and PROVIDER

here=$(dirname "${BASH_SOURCE[0]}")

# build_mpi: hello and exchange in $scratch
build_mpi() {
	cat >"$scratch/hello.c" <<-'END'
		#include <mpi.h>
		#include <stdio.h>
		int main(int argc, char **argv)
		{
			int rank, ranks;
			MPI_Init(&argc, &argv);
			MPI_Comm_rank(MPI_COMM_WORLD, &rank);
			MPI_Comm_size(MPI_COMM_WORLD, &ranks);
			MPI_Barrier(MPI_COMM_WORLD);
			printf("hello from %d of %d\n", rank, ranks);
			MPI_Finalize();
			return 0;
		}
	END
	mpicc -O1 -Wall -o "$scratch/hello" "$scratch/hello.c" && mpicc -O1 -Wall -o "$scratch/exchange" "$here/exchange.c" ||
		{ echo "mpicc failed" >&2 && exit 2; }
}

# mpi TRANSPORT SECONDS mpirun's arguments…: two cores are few, so waiting ranks must give way
mpi() {
	local transport=$1 limit=$2
	shift 2
	[[ " $* " == *" --mca pml "* ]] || set -- --mca pml cm "$@"
	over "$transport" "$limit" mpirun --allow-run-as-root --oversubscribe \
		--mca mpi_yield_when_idle 1 --mca mtl ofi \
		--mca mtl_ofi_provider_include "$PROVIDER" --mca opal_warn_on_missing_libcuda 0 \
		--mca btl_base_warn_component_unused 0 -x FI_PROVIDER_PATH "$@"
}
