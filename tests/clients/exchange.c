/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * An MPI program that checks its data: everything that Open MPI's libfabric transport makes of
 * tagged messages, receives with wildcards, probes and cancels. Prints "exchange: ok" on rank 0 and
 * exits with 0, or says what is wrong and aborts.
 */
#include <mpi.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;

static void wrong(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

static void wrong(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "exchange: rank %d: ", rank);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

static unsigned char byte_at(int from, int to, int round, size_t i)
{
	size_t x = (size_t)from * 131 + (size_t)to * 31 + (size_t)round * 7 + i + (i >> 8) + (i >> 16);

	return (unsigned char)(x * 167 + 13);
}

static void fill(unsigned char *buf, size_t len, int from, int to, int round)
{
	size_t i;

	for (i = 0; i < len; i++)
		buf[i] = byte_at(from, to, round, i);
}

static void check(const unsigned char *buf, size_t len, int from, int to, int round, const char *what)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (buf[i] != byte_at(from, to, round, i))
			wrong("%s: byte %zu of %zu from rank %d is wrong", what, i, len, from);
}

static unsigned char *get_buffer(size_t len)
{
	unsigned char *p = malloc(len ? len : 1);

	if (!p)
		wrong("no memory");
	return p;
}

static void count_is(MPI_Status *st, int want, const char *what)
{
	int n;

	MPI_Get_count(st, MPI_BYTE, &n);
	if (n != want)
		wrong("%s: %d bytes, not %d", what, n, want);
}

/* Blocks of len bytes from everybody to everybody, through MPI's own collective. */
static void all_to_all(int len)
{
	size_t all = (size_t)len * (size_t)ranks;
	unsigned char *out = get_buffer(all), *in = get_buffer(all);
	int r;

	for (r = 0; r < ranks; r++)
		fill(out + (size_t)r * (size_t)len, (size_t)len, rank, r, len);
	memset(in, 0, all);
	MPI_Alltoall(out, len, MPI_BYTE, in, len, MPI_BYTE, MPI_COMM_WORLD);
	for (r = 0; r < ranks; r++)
		check(in + (size_t)r * (size_t)len, (size_t)len, r, rank, len, "alltoall");
	free(out);
	free(in);
}

/*
 * Everybody sends to everybody with a tag of its own; receives take what comes, from whom it comes.
 */
static void any_source(int len)
{
	MPI_Request *req = malloc((size_t)ranks * sizeof(*req));
	unsigned char *out = get_buffer((size_t)len * (size_t)ranks), *in = get_buffer((size_t)len);
	MPI_Status st;
	int r, seen = 0;

	for (r = 0; r < ranks; r++) {
		fill(out + (size_t)r * (size_t)len, (size_t)len, rank, r, 1);
		MPI_Isend(out + (size_t)r * (size_t)len, len, MPI_BYTE, r, 100 + rank, MPI_COMM_WORLD,
			  &req[r]);
	}
	for (r = 0; r < ranks; r++) {
		MPI_Recv(in, len, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
		if (st.MPI_TAG != 100 + st.MPI_SOURCE)
			wrong("tag %d from rank %d", st.MPI_TAG, st.MPI_SOURCE);
		if (seen & 1 << st.MPI_SOURCE)
			wrong("two messages from rank %d", st.MPI_SOURCE);
		seen |= 1 << st.MPI_SOURCE;
		count_is(&st, len, "any source");
		check(in, (size_t)len, st.MPI_SOURCE, rank, 1, "any source");
	}
	MPI_Waitall(ranks, req, MPI_STATUSES_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	free(req);
	free(out);
	free(in);
}

/* Probes in all their forms, for a message whose length is not known beforehand. */
static void probes(int len)
{
	int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks, kind;
	unsigned char *out = get_buffer((size_t)len), *in = get_buffer((size_t)len);

	for (kind = 0; kind < 4; kind++) {
		MPI_Message m = MPI_MESSAGE_NULL;
		MPI_Request req;
		MPI_Status st;
		int flag = 0;

		fill(out, (size_t)len, rank, next, kind);
		MPI_Isend(out, len, MPI_BYTE, next, kind, MPI_COMM_WORLD, &req);
		if (kind == 0)
			MPI_Probe(before, kind, MPI_COMM_WORLD, &st);
		while (kind == 1 && !flag)
			MPI_Iprobe(MPI_ANY_SOURCE, kind, MPI_COMM_WORLD, &flag, &st);
		if (kind == 2)
			MPI_Mprobe(before, MPI_ANY_TAG, MPI_COMM_WORLD, &m, &st);
		while (kind == 3 && !flag)
			MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &m, &st);
		if (st.MPI_SOURCE != before || st.MPI_TAG != kind)
			wrong("probe %d found tag %d from rank %d", kind, st.MPI_TAG, st.MPI_SOURCE);
		count_is(&st, len, "probe");
		if (kind < 2)
			MPI_Recv(in, len, MPI_BYTE, before, kind, MPI_COMM_WORLD, &st);
		else
			MPI_Mrecv(in, len, MPI_BYTE, &m, &st);
		count_is(&st, len, "receive after probe");
		check(in, (size_t)len, before, rank, kind, "probed");
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	free(out);
	free(in);
}

/* A receive that nothing matches is cancelled; one that something matched is not. */
static void cancels(void)
{
	unsigned char c = 0;
	MPI_Request req;
	MPI_Status st;
	int flag, i;

	for (i = 0; i < 20; i++) {
		MPI_Irecv(&c, 1, MPI_BYTE, MPI_ANY_SOURCE, 5000 + i, MPI_COMM_WORLD, &req);
		MPI_Cancel(&req);
		MPI_Wait(&req, &st);
		MPI_Test_cancelled(&st, &flag);
		if (!flag)
			wrong("a receive without message was not cancelled");
	}
	MPI_Irecv(&c, 1, MPI_BYTE, rank, 6000, MPI_COMM_WORLD, &req);
	MPI_Send("x", 1, MPI_BYTE, rank, 6000, MPI_COMM_WORLD);
	MPI_Wait(&req, &st);
	if (c != 'x')
		wrong("after cancels a message is wrong");
	MPI_Barrier(MPI_COMM_WORLD);
}

static void to_self(int len)
{
	unsigned char *out = get_buffer((size_t)len), *in = get_buffer((size_t)len);
	MPI_Status st;

	fill(out, (size_t)len, rank, rank, 9);
	MPI_Sendrecv(out, len, MPI_BYTE, rank, 3, in, len, MPI_BYTE, rank, 3, MPI_COMM_WORLD, &st);
	count_is(&st, len, "to itself");
	check(in, (size_t)len, rank, rank, 9, "to itself");
	free(out);
	free(in);
}

/* Messages on parts of the world do not meet those on the whole, even with the same tag. */
static void split(void)
{
	MPI_Comm half;
	int in = -1, sum, me, size, want = 0, r;

	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
	MPI_Comm_rank(half, &me);
	MPI_Comm_size(half, &size);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, half);
	for (r = rank % 2; r < ranks; r += 2)
		want += r;
	if (sum != want)
		wrong("the sum in a half is %d, not %d", sum, want);
	MPI_Sendrecv(&rank, 1, MPI_INT, (me + 1) % size, 7, &in, 1, MPI_INT, (me + size - 1) % size, 7, half,
		     MPI_STATUS_IGNORE);
	if (in < 0 || in % 2 != rank % 2)
		wrong("a message left its communicator");
	MPI_Comm_free(&half);
}

/* Many small ones ahead of any receive, in order, with a synchronous send between. */
static void burst(int n)
{
	int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks, i, in;
	MPI_Request req, sync;

	for (i = 0; i < n; i++) {
		MPI_Isend(&i, 1, MPI_INT, next, 1, MPI_COMM_WORLD, &req);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
	}
	MPI_Issend(&n, 1, MPI_INT, next, 2, MPI_COMM_WORLD, &sync);
	for (i = 0; i < n; i++) {
		MPI_Recv(&in, 1, MPI_INT, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (in != i)
			wrong("message %d overtook message %d", in, i);
	}
	MPI_Recv(&in, 1, MPI_INT, before, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Wait(&sync, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	static const int lens[] = { 0, 1, 7, 64, 1000, 4096, 20000, 65536, 300000, 1 << 20 };
	size_t i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		all_to_all(lens[i]);
		any_source(lens[i]);
		probes(lens[i]);
		to_self(lens[i]);
	}
	cancels();
	split();
	burst(argc > 1 ? atoi(argv[1]) : 2000);
	MPI_Barrier(MPI_COMM_WORLD);
	if (!rank)
		printf("exchange: ok, %d ranks\n", ranks);
	MPI_Finalize();
	return 0;
}
