/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Each rank says its number, and the sum of all, which an MPI library has carried. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int rank, ranks, sum;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	printf("rank %d of %d: the sum is %d\n", rank, ranks, sum);
	MPI_Finalize();
	return 0;
}
