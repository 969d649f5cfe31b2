/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* D7: posting allocates nothing, and any thread may do it; what the attributes say of that. */
#include "dt.h"

#include <pthread.h>
#include <stdlib.h>

static __thread unsigned long allocations; /* of this thread */

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* which count themselves */
/* All that is linked comes here: these are found before the C library's own. */
void *__libc_malloc(size_t len);
void *__libc_calloc(size_t n, size_t len);
void *__libc_realloc(void *p, size_t len);

void *malloc(size_t len)
{
	allocations++;
	return __libc_malloc(len);
}

void *calloc(size_t n, size_t len)
{
	allocations++;
	return __libc_calloc(n, len);
}

void *realloc(void *p, size_t len)
{
	allocations++;
	return __libc_realloc(p, len);
}
#endif

static void no_allocation(struct ct *ct)
{
	const struct dt_want want = { .srq = true };
	struct dt_pair p;
	unsigned long before, counts[3];

	dt_pair_open(ct, &p, &want);
	before = allocations;
	free(malloc(ct_range(ct, 8) + 1));
	if (CT_OWN_MEMORY)
		CT_TRUE(ct, allocations > before); /* it does count */
	before = allocations;
	for (uint64_t i = 0; i < 64; i++)
		dt_srq_recv(&p.b, i * 64, 64, i);
	counts[0] = allocations - before;
	for (uint64_t i = 0; i < 32; i++)
		dt_recv(&p.a, p.a.ep, i * 64, 64, i);
	counts[1] = allocations - before;
	for (uint64_t i = 0; i < 32; i++)
		dt_send(&p.a, p.a.ep, i * 64, 64, i, DAT_COMPLETION_SUPPRESS_FLAG);
	counts[2] = allocations - before;
	CT_EQ(ct, counts[0], 0);
	CT_EQ(ct, counts[1], 0);
	CT_EQ(ct, counts[2], 0);
	dt_pair_close(&p);
}

/* ---- threads --------------------------------------------------------------------------------- */

enum {
	THREADS = 4,
	EACH = 400
};

struct poster {
	pthread_t thread;
	struct dt *d;
	_Atomic bool *go;
	bool sends;
	uint64_t first;
	DAT_RETURN rc;
};

/* EACH receives or sends, patiently where there is no room. */
static void *post_all(void *arg)
{
	struct poster *t = arg;
	double end = ct_deadline(t->d->ct);

	while (!*t->go)
		sched_yield();
	for (uint64_t i = 0; i < EACH; i++) {
		DAT_DTO_COOKIE cookie = dt_cookie(t->first + i);
		DAT_LMR_TRIPLET seg = dt_seg(t->d, (t->first + i) % 1024 * 8, 8);

		do {
			t->rc = t->sends ? dat_ep_post_send(t->d->ep, 1, &seg, cookie,
							    DAT_COMPLETION_SUPPRESS_FLAG)
					 : dat_srq_post_recv(t->d->srq, 1, &seg, cookie);
		} while (DAT_GET_TYPE(t->rc) == DAT_INSUFFICIENT_RESOURCES && ct_now() < end &&
			 !sched_yield());
		if (t->rc)
			break;
	}
	return NULL;
}

/* Four threads post to a shared queue while four send; each cookie comes back once. */
static void threads(struct ct *ct)
{
	const struct dt_want want = { .srq = true, .srq_dtos = 128 };
	struct poster t[2 * THREADS];
	_Atomic bool go = false;
	bool *seen = ct_alloc(ct, THREADS * EACH);
	struct dt_pair p;

	dt_pair_open(ct, &p, &want);
	for (int i = 0; i < 2 * THREADS; i++) {
		t[i] = (struct poster){ .d = i < THREADS ? &p.b : &p.a,
					.go = &go,
					.sends = i >= THREADS,
					.first = (uint64_t)(i % THREADS) * EACH };
		CT_EQ(ct, pthread_create(&t[i].thread, NULL, post_all, &t[i]), 0);
	}
	go = true;
	for (int i = 0; i < THREADS * EACH; i++) {
		DAT_EVENT event = dt_event(&p.b, p.b.recv, DAT_DTO_COMPLETION_EVENT);
		uint64_t cookie = event.event_data.dto_completion_event_data.user_cookie.as_64;

		CT_EQ(ct, event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
		CT_TRUE(ct, cookie < THREADS * EACH && !seen[cookie]);
		seen[cookie] = true;
	}
	for (int i = 0; i < 2 * THREADS; i++) {
		CT_EQ(ct, pthread_join(t[i].thread, NULL), 0);
		DT_OK(ct, t[i].rc);
	}
	dt_pair_close(&p);
	free(seen);
}

static void attributes(struct ct *ct)
{
	DAT_PROVIDER_ATTR attr;
	DAT_IA_ATTR ia;
	struct dt d;

	dt_open(ct, &d, NULL);
	DT_OK(ct, dat_ia_query(d.ia, NULL, DAT_IA_FIELD_ALL, &ia, DAT_PROVIDER_FIELD_ALL, &attr));
	CT_TRUE(ct, attr.optimal_buffer_alignment > 0 &&
			    !(attr.optimal_buffer_alignment & (attr.optimal_buffer_alignment - 1)));
	CT_EQ(ct, attr.optimal_buffer_alignment % DAT_OPTIMAL_ALIGNMENT, 0);
	CT_EQ(ct, attr.iov_ownership_on_return, DAT_IOV_CONSUMER);
	CT_EQ(ct, attr.is_thread_safe, DAT_TRUE);
	CT_EQ(ct, attr.srq_supported, DAT_TRUE);
	CT_TRUE(ct, attr.srq_watermarks_supported & 1);
	CT_TRUE(ct, attr.max_private_data_size >= 192);
	CT_TRUE(ct, ia.max_srqs > 0 && ia.max_ep_per_srq >= 1000 && ia.max_recv_per_srq >= 64);
	CT_EQ(ct, ia.ia_address_ptr->sa_family, AF_INET);
	dt_close(&d);
}

const struct ct_case dt_posting[] = {
	{ "D7", "no allocation", { no_allocation } },
	{ "D7", "threads", { threads } },
	{ "D7", "attributes", { attributes } },
	{ NULL },
};
