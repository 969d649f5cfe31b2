/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* D5, D8: two processes, one of which is killed; and children made by fork. */
#include "dt.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS 40
#define WORD 600

/* Rank 0 calls, rank 1 listens; they are in processes of their own. */
static void meet(struct ct *ct, struct dt *d, const struct dt_want *want)
{
	DAT_CONN_QUAL q = dt_qualifier();

	dt_open(ct, d, want);
	if (ct->rank) {
		DAT_PSP_HANDLE psp;

		DT_OK(ct, dat_psp_create(d->ia, q, d->cr, DAT_PSP_CONSUMER_FLAG, &psp));
		ct_put(ct, 0, &q, sizeof(q));
		DT_OK(ct, dat_cr_accept(dt_request(d), d->ep, 0, NULL));
		DT_OK(ct, dat_psp_free(psp));
	} else {
		ct_get(ct, NULL, 1, &q, sizeof(q));
		dt_call(d, d->ep, d, q);
	}
	dt_conn(d, d->ep, DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* Messages of all sizes there and back, reads and writes. */
static void traffic(struct ct *ct)
{
	static const DAT_SEG_LENGTH lengths[] = { 0, 1, 64, 4096, 70000, 400000 };
	DAT_RMR_TRIPLET there;
	struct dt d;

	meet(ct, &d, NULL);
	for (size_t i = 0; i < CT_COUNT(lengths); i++) {
		dt_recv(&d, d.ep, 0, lengths[i], i);
		ct_sync(ct, NULL);
		ct_fill(d.buf + 500000, lengths[i], i);
		dt_send(&d, d.ep, 500000, lengths[i], i, DAT_COMPLETION_DEFAULT_FLAG);
		dt_dto(&d, d.request, d.ep, i, DAT_DTO_SUCCESS);
		CT_EQ(ct, dt_dto(&d, d.recv, d.ep, i, DAT_DTO_SUCCESS), lengths[i]);
		ct_verify(ct, d.buf, lengths[i], i, "from the other process");
	}
	ct_fill(d.buf + 500000, 64, 100 + (uint64_t)ct->rank);
	there = (DAT_RMR_TRIPLET){ (uintptr_t)d.buf + 500000, 64, d.remote };
	ct_put(ct, !ct->rank, &there, sizeof(there));
	ct_get(ct, NULL, !ct->rank, &there, sizeof(there));
	ct_sync(ct, NULL);
	dt_read(&d, 0, &there, 50);
	dt_dto(&d, d.request, d.ep, 50, DAT_DTO_SUCCESS);
	ct_verify(ct, d.buf, 64, 100 + (uint64_t)!ct->rank, "read from the other process");
	ct_sync(ct, NULL);
	if (!ct->rank)
		DT_OK(ct, dat_ep_disconnect(d.ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_ended(&d, d.ep);
	ct_sync(ct, NULL);
	dt_close(&d);
}

/*
 * The other side is killed: the connection ends, what is posted is flushed, the adapter works on.
 */
static void killed(struct ct *ct)
{
	struct dt_pair p;
	struct dt d;

	meet(ct, &d, NULL);
	ct_sync(ct, NULL);
	if (ct->rank) {
		ct_doomed(ct);
		ct_sync(ct, NULL);
		raise(SIGKILL);
	}
	dt_recv(&d, d.ep, 0, 8, 1);
	dt_send(&d, d.ep, 0, 8, 2, DAT_COMPLETION_DEFAULT_FLAG); /* nobody receives it */
	ct_sync(ct, NULL);
	dt_ended(&d, d.ep);
	CT_TRUE(ct, dt_any(&d, d.request).event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS);
	dt_dto(&d, d.recv, d.ep, 1, DAT_DTO_ERR_FLUSHED);
	dt_pair_open(ct, &p, NULL);
	dt_pair_close(&p);
	dt_close(&d);
}

/*
 * Last words: what a completion has said of a send arrives, though the process is gone at once and
 * the other has not looked since. arg: by _exit(2), which asks nobody once more.
 */
static void last_words(struct ct *ct)
{
	struct dt d;

	meet(ct, &d, NULL);
	for (uint64_t i = 0; ct->rank && i < WORDS; i++)
		dt_recv(&d, d.ep, i * 4096, 4096, i);
	ct_sync(ct, NULL);
	if (!ct->rank) {
		ct_doomed(ct);
		for (uint64_t i = 0; i < WORDS; i++) {
			ct_fill(d.buf + i * 4096, WORD, i);
			dt_send(&d, d.ep, i * 4096, WORD, i, DAT_COMPLETION_DEFAULT_FLAG);
		}
		for (uint64_t i = 0; i < WORDS; i++)
			dt_dto(&d, d.request, d.ep, i, DAT_DTO_SUCCESS);
		ct->cs->arg ? _exit(0) : exit(0);
	}
	dt_sleep(30); /* the other one ends meanwhile, and nobody looks */
	for (uint64_t i = 0; i < WORDS; i++) {
		CT_EQ(ct, dt_dto(&d, d.recv, d.ep, i, DAT_DTO_SUCCESS), WORD);
		ct_verify(ct, d.buf + i * 4096, WORD, i, "last words");
	}
	dt_ended(&d, d.ep);
	dt_close(&d);
}

/*
 * A buffer of a shared queue that a long message has begun to fill comes back
 * when its sender is gone.
 */
static void taken(struct ct *ct)
{
	const struct dt_want want = { .srq = ct->rank == 1, .size = 64 << 20 };
	DAT_DTO_COMPLETION_EVENT_DATA dto;
	DAT_SRQ_PARAM q;
	struct dt d;

	meet(ct, &d, &want);
	ct_sync(ct, NULL);
	if (!ct->rank) {
		ct_doomed(ct);
		dt_send(&d, d.ep, 0, 64 << 20, 2, DAT_COMPLETION_DEFAULT_FLAG);
		raise(SIGKILL);
	}
	dt_srq_recv(&d, 0, 64 << 20, 9);
	dt_srq_recv(&d, 0, 64, 10);
	dt_ended(&d, d.ep);
	DT_OK(ct, dat_srq_query(d.srq, DAT_SRQ_FIELD_ALL, &q));
	if (q.available_dto_count == 1) { /* it was taken: whole, or in part */
		dto = dt_event(&d, d.recv, DAT_DTO_COMPLETION_EVENT).event_data.dto_completion_event_data;
		CT_EQ(ct, dto.user_cookie.as_64, 9);
		CT_TRUE(ct, dto.status == DAT_DTO_ERR_FLUSHED || dto.transfered_length == 64 << 20);
	}
	dt_quiet(&d, d.recv, 20, "the other buffer is still the queue's");
	dt_close(&d);
}

/* A child gets errors, and the parent does not notice. */
static void forked(struct ct *ct)
{
	struct dt_pair p;
	DAT_EVENT event;
	DAT_PZ_HANDLE pz;
	int status;
	pid_t child;

	dt_pair_open(ct, &p, NULL);
	child = fork();
	CT_TRUE(ct, child >= 0);
	if (!child) {
		bool right = dat_pz_create(p.a.ia, &pz) != DAT_SUCCESS &&
			     dat_ep_post_send(p.a.ep, 0, NULL, dt_cookie(0), 0) != DAT_SUCCESS &&
			     dat_evd_dequeue(p.a.recv, &event) != DAT_SUCCESS &&
			     dat_ep_disconnect(p.a.ep, DAT_CLOSE_ABRUPT_FLAG) != DAT_SUCCESS;

		_exit(!right);
	}
	CT_EQ(ct, waitpid(child, &status, 0), child);
	CT_EQ(ct, status, 0);
	dt_recv(&p.b, p.b.ep, 0, 8, 1);
	dt_send(&p.a, p.a.ep, 0, 8, 2, DAT_COMPLETION_DEFAULT_FLAG);
	dt_dto(&p.b, p.b.recv, p.b.ep, 1, DAT_DTO_SUCCESS);
	dt_dto(&p.a, p.a.request, p.a.ep, 2, DAT_DTO_SUCCESS);
	dt_pair_close(&p);
}

const struct ct_case dt_fault[] = {
	{ "D8", "two processes", { traffic, traffic } },
	{ "D8", "killed", { killed, killed } },
	{ "D5", "taken and flushed", { taken, taken } },
	{ "D8", "last words", { last_words, last_words } },
	{ "D8", "last words at once", { last_words, last_words }, .arg = 1 },
	{ "D8", "fork", { forked } },
	{ NULL },
};
