/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* D8: RDMA reads and writes, memory regions and windows, and what is not allowed. */
#include "dt.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static DAT_RMR_TRIPLET remote(const struct dt *d, size_t at, DAT_SEG_LENGTH len)
{
	return (DAT_RMR_TRIPLET){ (uintptr_t)d->buf + at, len, d->remote };
}

static void read_write(struct ct *ct)
{
	static const DAT_SEG_LENGTH lengths[] = { 0, 1, 4096, 65536, 500000 };
	struct dt_pair p;

	dt_pair_open(ct, &p, NULL);
	for (size_t i = 0; i < CT_COUNT(lengths); i++) {
		DAT_SEG_LENGTH len = lengths[i];
		DAT_RMR_TRIPLET there = remote(&p.b, 64, len);

		ct_fill(p.a.buf, len, i);
		memset(p.b.buf, 0xee, 64 + len + 64);
		dt_write(&p.a, 0, &there, 1);
		CT_EQ(ct, dt_dto(&p.a, p.a.request, p.a.ep, 1, DAT_DTO_SUCCESS), len);
		dt_read(&p.a, 520000, &there, 2);
		CT_EQ(ct, dt_dto(&p.a, p.a.request, p.a.ep, 2, DAT_DTO_SUCCESS), len);
		ct_verify(ct, p.b.buf + 64, len, i, "written");
		ct_verify(ct, p.a.buf + 520000, len, i, "read");
		CT_TRUE(ct, ct_untouched(p.b.buf, 64, 0xee) && ct_untouched(p.b.buf + 64 + len, 64, 0xee));
	}
	dt_quiet(&p.b, p.b.recv, 10, "the other side is not told");
	dt_pair_close(&p);
}

/* The buffer of a read may be longer than what is read, which is all of the remote one. */
static void short_read(struct ct *ct)
{
	DAT_RMR_TRIPLET there;
	DAT_LMR_TRIPLET seg[2];
	struct dt_pair p;

	dt_pair_open(ct, &p, NULL);
	there = remote(&p.b, 0, 150);
	seg[0] = dt_seg(&p.a, 0, 100);
	seg[1] = dt_seg(&p.a, 1000, 100);
	ct_fill(p.b.buf, 200, 9);
	memset(p.a.buf, 0xee, 2000);
	DT_OK(ct, dat_ep_post_rdma_read(p.a.ep, 2, seg, dt_cookie(3), &there, 0));
	CT_EQ(ct, dt_dto(&p.a, p.a.request, p.a.ep, 3, DAT_DTO_SUCCESS), 150);
	CT_TRUE(ct, ct_match(p.a.buf, 100, 9, 0) && ct_match(p.a.buf + 1000, 50, 9, 100));
	CT_TRUE(ct, ct_untouched(p.a.buf + 1050, 900, 0xee));
	dt_pair_close(&p);
}

/*
 * What is not allowed there: an error here, the connection breaks at both
 * ends, the rest is flushed.
 */
static void refused(struct ct *ct)
{
	for (int k = 0; k < 4; k++) {
		DAT_RMR_TRIPLET there;
		DAT_LMR_HANDLE lmr = NULL;
		DAT_PZ_HANDLE pz;
		struct dt_pair p;

		dt_pair_open(ct, &p, NULL);
		DT_OK(ct, dat_pz_create(p.b.ia, &pz));
		there = remote(&p.b, 0, 64);
		if (k == 0)
			there.rmr_context ^= 0x55555555;
		if (k == 1)
			there.virtual_address += DT_SIZE - 63;
		if (k >= 2) {
			DAT_REGION_DESCRIPTION r = { .for_va = p.b.buf };

			DT_OK(ct, dat_lmr_create(p.b.ia, DAT_MEM_TYPE_VIRTUAL, r, 4096, k == 2 ? p.b.pz : pz,
						 k == 2 ? DAT_MEM_PRIV_READ_FLAG : DT_PRIVILEGES,
						 DAT_VA_TYPE_VA, &lmr, NULL, &there.rmr_context, NULL, NULL));
		}
		memset(p.b.buf, 0xee, 4096);
		dt_recv(&p.a, p.a.ep, 0, 8, 21);
		dt_recv(&p.b, p.b.ep, 0, 8, 22);
		dt_write(&p.a, 0, &there, 23);
		dt_dto(&p.a, p.a.request, p.a.ep, 23, DAT_DTO_ERR_REMOTE_ACCESS);
		dt_conn(&p.a, p.a.ep, DAT_CONNECTION_EVENT_BROKEN);
		dt_conn(&p.b, p.b.ep, DAT_CONNECTION_EVENT_BROKEN);
		dt_dto(&p.a, p.a.recv, p.a.ep, 21, DAT_DTO_ERR_FLUSHED);
		dt_dto(&p.b, p.b.recv, p.b.ep, 22, DAT_DTO_ERR_FLUSHED);
		CT_TRUE(ct, ct_untouched(p.b.buf, 4096, 0xee));
		if (lmr)
			DT_OK(ct, dat_lmr_free(lmr));
		DT_OK(ct, dat_pz_free(pz));
		dt_pair_close(&p);
	}
}

/*
 * Behind what goes on for long: which was refused, and that the connection has
 * broken, is seen all the same.
 */
static void refused_behind(struct ct *ct)
{
	for (int round = 0; round < 10; round++) {
		DAT_DTO_COMPLETION_STATUS status[3];
		DAT_RMR_TRIPLET there, forbidden;
		struct dt_pair p;

		dt_pair_open(ct, &p, NULL);
		there = remote(&p.b, 0, 500000);
		forbidden = remote(&p.b, 0, 64);
		forbidden.rmr_context ^= 0x55555555;
		dt_read(&p.a, 0, &there, 0);
		dt_write(&p.a, 500000, round & 1 ? &forbidden : &there, 1);
		dt_write(&p.a, 0, &forbidden, 2);
		for (uint64_t i = 0; i < 3; i++) {
			DAT_DTO_COMPLETION_EVENT_DATA dto =
				dt_any(&p.a, p.a.request).event_data.dto_completion_event_data;

			CT_EQ(ct, dto.user_cookie.as_64, i);
			status[i] = dto.status;
		}
		CT_TRUE(ct, status[2] != DAT_DTO_SUCCESS);
		if (status[0] == DAT_DTO_SUCCESS)
			/* else it was cut short by what was refused behind it */
			CT_EQ(ct, status[round & 1 ? 1 : 2], DAT_DTO_ERR_REMOTE_ACCESS);
		if (status[0] != DAT_DTO_SUCCESS || round & 1)
			CT_EQ(ct, status[2], DAT_DTO_ERR_FLUSHED);
		dt_conn(&p.a, p.a.ep, DAT_CONNECTION_EVENT_BROKEN);
		dt_conn(&p.b, p.b.ep, DAT_CONNECTION_EVENT_BROKEN);
		dt_quiet(&p.a, p.a.connect, 1, "once");
		dt_pair_close(&p);
	}
}

static void region_errors(struct ct *ct)
{
	DAT_REGION_DESCRIPTION r;
	DAT_LMR_PARAM param;
	DAT_LMR_HANDLE lmr;
	DAT_VADDR at;
	DAT_VLEN len;
	struct dt d;

	dt_open(ct, &d, NULL);
	r.for_va = d.buf;
	DT_TYPE(ct,
		dat_lmr_create(d.ia, DAT_MEM_TYPE_VIRTUAL, r, 8, d.ia, DT_PRIVILEGES, DAT_VA_TYPE_VA, &lmr,
			       NULL, NULL, &len, &at),
		DAT_INVALID_HANDLE);
	DT_TYPE(ct,
		dat_lmr_create(d.ia, DAT_MEM_TYPE_VIRTUAL, r, 8, d.pz, (DAT_MEM_PRIV_FLAGS)0x1000,
			       DAT_VA_TYPE_VA, &lmr, NULL, NULL, &len, &at),
		DAT_INVALID_PARAMETER);
	DT_OK(ct, dat_lmr_query(d.lmr, DAT_LMR_FIELD_ALL, &param));
	CT_TRUE(ct, param.pz_handle == d.pz && param.lmr_context == d.local && param.rmr_context == d.remote);
	CT_TRUE(ct, param.length == DT_SIZE && param.region_desc.for_va == d.buf);
	r.for_lmr_handle = d.lmr;
	DT_OK(ct, dat_lmr_create(d.ia, DAT_MEM_TYPE_LMR, r, 0, d.pz, DT_PRIVILEGES, DAT_VA_TYPE_VA, &lmr,
				 NULL, NULL, &len, &at));
	CT_TRUE(ct, len >= DT_SIZE);
	DT_OK(ct, dat_lmr_free(lmr));
	DT_ERR(ct, dat_pz_free(d.pz), DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE);
	dt_close(&d);
}

/* Memory that two instances have mapped, under one name: each registers its own mapping. */
static void shared_memory(struct ct *ct)
{
	char name[DAT_LMR_COOKIE_SIZE] = "the same of both";
	DAT_RMR_TRIPLET there;
	struct dt *sides[2];
	DAT_LMR_HANDLE lmr[2];
	DAT_LMR_CONTEXT local[2];
	DAT_RMR_CONTEXT context[2];
	DAT_PROVIDER_ATTR attr;
	char *at[2];
	struct dt_pair p;
	int fd = memfd_create("shared", 0);

	CT_TRUE(ct, fd >= 0 && !ftruncate(fd, 8192));
	dt_pair_open(ct, &p, NULL);
	sides[0] = &p.a, sides[1] = &p.b;
	DT_OK(ct, dat_ia_query(p.a.ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr));
	CT_TRUE(ct, attr.lmr_mem_types_supported & DAT_MEM_TYPE_SHARED_VIRTUAL);
	for (int i = 0; i < 2; i++) {
		DAT_REGION_DESCRIPTION r;

		at[i] = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		CT_TRUE(ct, at[i] != MAP_FAILED);
		r.for_shared_memory.virtual_address = at[i];
		r.for_shared_memory.shared_memory_id = NULL;
		DT_TYPE(ct,
			dat_lmr_create(sides[i]->ia, DAT_MEM_TYPE_SHARED_VIRTUAL, r, 8192, sides[i]->pz,
				       DT_PRIVILEGES, DAT_VA_TYPE_VA, &lmr[i], NULL, NULL, NULL, NULL),
			DAT_INVALID_PARAMETER);
		r.for_shared_memory.shared_memory_id = &name;
		DT_OK(ct, dat_lmr_create(sides[i]->ia, DAT_MEM_TYPE_SHARED_VIRTUAL, r, 8192, sides[i]->pz,
					 DT_PRIVILEGES, DAT_VA_TYPE_VA, &lmr[i], &local[i], &context[i], NULL,
					 NULL));
	}
	ct_fill(p.a.buf, 100, 5);
	there = (DAT_RMR_TRIPLET){ (uintptr_t)at[1] + 4096, 100, context[1] };
	dt_write(&p.a, 0, &there, 1);
	dt_dto(&p.a, p.a.request, p.a.ep, 1, DAT_DTO_SUCCESS);
	CT_TRUE(ct, ct_match(at[0] + 4096, 100, 5, 0));
	for (int i = 0; i < 2; i++) {
		DT_OK(ct, dat_lmr_free(lmr[i]));
		munmap(at[i], 8192);
	}
	close(fd);
	dt_pair_close(&p);
}

static DAT_RMR_CONTEXT bind_at(struct dt *d, DAT_RMR_HANDLE rmr, size_t at, DAT_SEG_LENGTH len,
			       uint64_t cookie)
{
	DAT_LMR_TRIPLET seg = dt_seg(d, at, len);
	DAT_RMR_CONTEXT context;
	DAT_EVENT event;

	DT_OK(d->ct, dat_rmr_bind(rmr, d->lmr, &seg, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, d->ep,
				  dt_cookie(cookie), DAT_COMPLETION_DEFAULT_FLAG, &context));
	event = dt_event(d, d->request, DAT_RMR_BIND_COMPLETION_EVENT);
	CT_TRUE(d->ct, event.event_data.rmr_completion_event_data.rmr_handle == rmr);
	CT_EQ(d->ct, event.event_data.rmr_completion_event_data.user_cookie.as_64, cookie);
	CT_EQ(d->ct, event.event_data.rmr_completion_event_data.status, DAT_RMR_BIND_SUCCESS);
	return context;
}

/*
 * A window is open where it is bound, under its latest context alone, and not once it is unbound.
 */
static void windows(struct ct *ct)
{
	for (int k = 0; k < 3; k++) {
		DAT_RMR_TRIPLET there;
		DAT_LMR_TRIPLET outside;
		DAT_RMR_CONTEXT context;
		DAT_RMR_HANDLE rmr;
		struct dt_pair p;

		dt_pair_open(ct, &p, NULL);
		DT_OK(ct, dat_rmr_create(p.b.pz, &rmr));
		outside = dt_seg(&p.b, DT_SIZE - 4, 8);
		DT_TYPE(ct,
			dat_rmr_bind(rmr, p.b.lmr, &outside, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, p.b.ep,
				     dt_cookie(0), 0, &context),
			DAT_INVALID_PARAMETER);
		there = remote(&p.b, 100, 64);
		there.rmr_context = bind_at(&p.b, rmr, 100, 64, 31);
		dt_write(&p.a, 0, &there, 32);
		dt_dto(&p.a, p.a.request, p.a.ep, 32, DAT_DTO_SUCCESS);
		if (k == 0)
			there.virtual_address++; /* a byte too far */
		if (k == 1)
			CT_TRUE(ct, bind_at(&p.b, rmr, 100, 64, 33) != there.rmr_context);
		if (k == 2)
			bind_at(&p.b, rmr, 100, 0, 34);
		dt_write(&p.a, 0, &there, 35);
		dt_dto(&p.a, p.a.request, p.a.ep, 35, DAT_DTO_ERR_REMOTE_ACCESS);
		dt_pair_ended(&p);
		DT_OK(ct, dat_rmr_free(rmr));
		dt_pair_close(&p);
	}
}

/* A send takes the other side's window back, and its receive says which. */
static void invalidate(struct ct *ct)
{
	DAT_RMR_TRIPLET there;
	DAT_RMR_HANDLE rmr;
	DAT_EVENT event;
	struct dt_pair p;

	dt_pair_open(ct, &p, NULL);
	DT_OK(ct, DT_VIA(p.b.pz)->rmr_create_for_ep_func(p.b.pz, &rmr));
	there = remote(&p.b, 0, 64);
	there.rmr_context = bind_at(&p.b, rmr, 0, 64, 41);
	dt_recv(&p.b, p.b.ep, 512, 8, 42);
	DT_OK(ct, DT_VIA(p.a.ep)->ep_post_send_with_invalidate_func(p.a.ep, 0, NULL, dt_cookie(43), 0,
								    DAT_TRUE, there.rmr_context));
	dt_dto(&p.a, p.a.request, p.a.ep, 43, DAT_DTO_SUCCESS);
	event = dt_event(&p.b, p.b.recv, DAT_DTO_COMPLETION_EVENT);
	CT_EQ(ct, event.event_data.dto_completion_event_data.operation, DAT_DTO_RECEIVE_WITH_INVALIDATE);
	CT_EQ(ct, event.event_data.dto_completion_event_data.rmr_context, there.rmr_context);
	dt_write(&p.a, 0, &there, 44);
	dt_dto(&p.a, p.a.request, p.a.ep, 44, DAT_DTO_ERR_REMOTE_ACCESS);
	dt_pair_ended(&p);
	DT_OK(ct, dat_rmr_free(rmr));
	dt_pair_close(&p);
}

static DAT_RETURN read_to(struct dt *d, size_t at, DAT_SEG_LENGTH len, DAT_RMR_CONTEXT context,
			  const DAT_RMR_TRIPLET *from)
{
	const DAT_RMR_TRIPLET to = { (uintptr_t)d->buf + at, len, context };

	return DT_VIA(d->ep)->ep_post_rdma_read_to_rmr_func(d->ep, &to, dt_cookie(51), from, 0);
}

/* A read whose buffer is named by the context of a window, or of a region. */
static void read_to_window(struct ct *ct)
{
	static const DAT_SEG_LENGTH lengths[] = { 0, 1, 4096, 200000 };
	DAT_RMR_CONTEXT context;
	DAT_RMR_TRIPLET from;
	DAT_RMR_HANDLE rmr;
	struct dt_pair p;

	dt_pair_open(ct, &p, NULL);
	DT_OK(ct, dat_rmr_create(p.a.pz, &rmr));
	context = bind_at(&p.a, rmr, 4096, 300000, 50);
	for (size_t i = 0; i < CT_COUNT(lengths); i++) {
		from = remote(&p.b, 64, lengths[i]);
		ct_fill(p.b.buf + 64, lengths[i], i);
		memset(p.a.buf, 0xee, DT_SIZE);
		DT_OK(ct, read_to(&p.a, 5000, lengths[i] + 10, context, &from));
		CT_EQ(ct, dt_dto(&p.a, p.a.request, p.a.ep, 51, DAT_DTO_SUCCESS), lengths[i]);
		CT_TRUE(ct, ct_match(p.a.buf + 5000, lengths[i], i, 0));
		CT_TRUE(ct, ct_untouched(p.a.buf + 5000 + lengths[i], 4096, 0xee));
		CT_TRUE(ct, ct_untouched(p.a.buf, 5000, 0xee));
	}
	from = remote(&p.b, 64, 100);
	ct_fill(p.b.buf + 64, 100, 9);
	DT_OK(ct, read_to(&p.a, 500000, 100, p.a.remote, &from));
	dt_dto(&p.a, p.a.request, p.a.ep, 51, DAT_DTO_SUCCESS);
	CT_TRUE(ct, ct_match(p.a.buf + 500000, 100, 9, 0));
	DT_OK(ct, dat_rmr_free(rmr));
	dt_pair_close(&p);
}

/* What is bound counts at once, before it is the binding's turn. */
static void read_behind_bind(struct ct *ct)
{
	DAT_RMR_CONTEXT context;
	DAT_RMR_TRIPLET from;
	DAT_LMR_TRIPLET seg;
	DAT_RMR_HANDLE rmr;
	struct dt_pair p;

	dt_pair_open(ct, &p, NULL);
	DT_OK(ct, dat_rmr_create(p.a.pz, &rmr));
	seg = dt_seg(&p.a, 0, 100);
	ct_fill(p.b.buf, 100, 9);
	from = remote(&p.b, 0, 100);
	dt_read(&p.a, 4096, &from, 49);
	DT_OK(ct, dat_rmr_bind(rmr, p.a.lmr, &seg, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, p.a.ep,
			       dt_cookie(50), DAT_COMPLETION_BARRIER_FENCE_FLAG, &context));
	DT_OK(ct, read_to(&p.a, 0, 100, context, &from));
	dt_dto(&p.a, p.a.request, p.a.ep, 49, DAT_DTO_SUCCESS);
	dt_event(&p.a, p.a.request, DAT_RMR_BIND_COMPLETION_EVENT);
	dt_dto(&p.a, p.a.request, p.a.ep, 51, DAT_DTO_SUCCESS);
	CT_TRUE(ct, ct_match(p.a.buf, 100, 9, 0));
	DT_OK(ct, dat_rmr_free(rmr));
	dt_pair_close(&p);
}

/* Refused at the call: nothing is posted, and the connection stands. */
static void read_to_refused(struct ct *ct)
{
	DAT_RMR_CONTEXT context, readable;
	DAT_RMR_TRIPLET from;
	DAT_LMR_TRIPLET seg;
	DAT_RMR_HANDLE rmr, single;
	struct dt_pair p;

	dt_pair_open(ct, &p, NULL);
	from = remote(&p.b, 0, 64);
	DT_OK(ct, dat_rmr_create(p.a.pz, &rmr));
	context = bind_at(&p.a, rmr, 0, 64, 50);
	DT_TYPE(ct, read_to(&p.a, 1, 64, context, &from), DAT_INVALID_PARAMETER);
	DT_TYPE(ct, read_to(&p.a, 0, 63, context, &from), DAT_LENGTH_ERROR);
	DT_TYPE(ct, read_to(&p.a, 0, 64, context ^ 1, &from), DAT_PRIVILEGES_VIOLATION);
	DT_TYPE(ct, read_to(&p.a, 0, 64, 0x12345678, &from), DAT_PRIVILEGES_VIOLATION);
	DT_TYPE(ct, read_to(&p.a, 0, 64, context, NULL), DAT_INVALID_PARAMETER);
	DT_TYPE(ct, DT_VIA(p.a.ep)->ep_post_rdma_read_to_rmr_func(p.a.ep, NULL, dt_cookie(0), &from, 0),
		DAT_INVALID_PARAMETER);
	DT_TYPE(ct, DT_VIA(p.a.pz)->ep_post_rdma_read_to_rmr_func(p.a.pz, &from, dt_cookie(0), &from, 0),
		DAT_INVALID_HANDLE);
	bind_at(&p.a, rmr, 0, 0, 50); /* to nothing */
	DT_TYPE(ct, read_to(&p.a, 0, 64, context, &from), DAT_PRIVILEGES_VIOLATION);
	seg = dt_seg(&p.a, 0, 64);
	DT_OK(ct, dat_rmr_bind(rmr, p.a.lmr, &seg, DAT_MEM_PRIV_READ_FLAG, DAT_VA_TYPE_VA, p.a.ep,
			       dt_cookie(50), 0, &readable));
	dt_event(&p.a, p.a.request, DAT_RMR_BIND_COMPLETION_EVENT);
	DT_TYPE(ct, read_to(&p.a, 0, 64, readable, &from), DAT_PRIVILEGES_VIOLATION);
	DT_OK(ct, dat_rmr_free(rmr));
	/* taken back by the other side */
	DT_OK(ct, DT_VIA(p.a.pz)->rmr_create_for_ep_func(p.a.pz, &single));
	context = bind_at(&p.a, single, 0, 64, 50);
	DT_OK(ct, read_to(&p.a, 0, 64, context, &from));
	dt_dto(&p.a, p.a.request, p.a.ep, 51, DAT_DTO_SUCCESS);
	dt_recv(&p.a, p.a.ep, 512, 8, 42);
	DT_OK(ct, DT_VIA(p.b.ep)->ep_post_send_with_invalidate_func(p.b.ep, 0, NULL, dt_cookie(43), 0,
								    DAT_TRUE, context));
	dt_dto(&p.a, p.a.recv, p.a.ep, 42, DAT_DTO_SUCCESS);
	DT_TYPE(ct, read_to(&p.a, 0, 64, context, &from), DAT_PRIVILEGES_VIOLATION);
	DT_OK(ct, dat_rmr_free(single));
	dt_quiet(&p.a, p.a.request, 10, "nothing of it was posted");
	dt_quiet(&p.a, p.a.connect, 1, "the connection stands");
	dt_pair_close(&p);
}

/* A region of nothing: as providers over verbs have it, it is one, for operations of no bytes. */
static void empty(struct ct *ct)
{
	DAT_LMR_TRIPLET seg = { 0 }, local;
	DAT_RMR_TRIPLET there = { 0 };
	DAT_REGION_DESCRIPTION r;
	DAT_LMR_HANDLE lmr;
	DAT_VLEN len = 9;
	struct dt_pair p;

	dt_pair_open(ct, &p, NULL);
	r.for_va = p.a.buf;
	DT_OK(ct, dat_lmr_create(p.a.ia, DAT_MEM_TYPE_VIRTUAL, r, 0, p.a.pz, DT_PRIVILEGES, DAT_VA_TYPE_VA,
				 &lmr, &seg.lmr_context, &there.rmr_context, &len, NULL));
	CT_EQ(ct, len, 0);
	seg.virtual_address = (uintptr_t)p.a.buf;
	DT_OK(ct, dat_ep_post_rdma_write(p.a.ep, 1, &seg, dt_cookie(1), &there, DAT_COMPLETION_DEFAULT_FLAG));
	CT_EQ(ct, dt_dto(&p.a, p.a.request, p.a.ep, 1, DAT_DTO_SUCCESS), 0);
	seg.segment_length = 1;
	DT_TYPE(ct, dat_ep_post_send(p.a.ep, 1, &seg, dt_cookie(2), DAT_COMPLETION_DEFAULT_FLAG),
		DAT_INVALID_PARAMETER);
	there.virtual_address = (uintptr_t)p.a.buf; /* nobody reads from it */
	there.segment_length = 1;
	local = dt_seg(&p.b, 0, 1);
	DT_OK(ct,
	      dat_ep_post_rdma_read(p.b.ep, 1, &local, dt_cookie(3), &there, DAT_COMPLETION_DEFAULT_FLAG));
	dt_dto(&p.b, p.b.request, p.b.ep, 3, DAT_DTO_ERR_REMOTE_ACCESS);
	dt_pair_ended(&p);
	DT_OK(ct, dat_lmr_free(lmr));
	dt_pair_close(&p);
}

/*
 * Memory that is not there, all of it or its end, and memory that may not be written to
 * where that is asked for.
 */
static void not_there(struct ct *ct)
{
	DAT_REGION_DESCRIPTION r;
	DAT_LMR_HANDLE lmr;
	struct dt d;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *at = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	dt_open(ct, &d, NULL);
	/* not before: an IA maps a page of its own */
	CT_TRUE(ct, at != MAP_FAILED && !munmap(at + 2 * page, page));
	for (size_t from = 0; from <= 2 * page; from += page) {
		r.for_va = at + from;
		DT_TYPE(ct,
			dat_lmr_create(d.ia, DAT_MEM_TYPE_VIRTUAL, r, 3 * page - from, d.pz, DT_PRIVILEGES,
				       DAT_VA_TYPE_VA, &lmr, NULL, NULL, NULL, NULL),
			DAT_INSUFFICIENT_RESOURCES);
	}
	r.for_va = at;
	DT_OK(ct, dat_lmr_create(d.ia, DAT_MEM_TYPE_VIRTUAL, r, 2 * page, d.pz, DT_PRIVILEGES, DAT_VA_TYPE_VA,
				 &lmr, NULL, NULL, NULL, NULL));
	DT_OK(ct, dat_lmr_free(lmr));
	munmap(at, 2 * page);
	dt_close(&d);
}

const struct ct_case dt_memory[] = {
	{ "D8", "read and write", { read_write } },
	{ "D8", "short read", { short_read } },
	{ "D8", "remote access refused", { refused } },
	{ "D8", "refused behind others", { refused_behind } },
	{ "D8", "regions", { region_errors } },
	{ "D8", "regions of nothing", { empty } },
	{ "D8", "regions of what is not there", { not_there } },
	{ "D8", "shared memory", { shared_memory } },
	{ "D8", "windows", { windows } },
	{ "D8", "invalidate", { invalidate } },
	{ "D8", "read to a window", { read_to_window } },
	{ "D8", "read behind a bind", { read_behind_bind } },
	{ "D8", "read to a window refused", { read_to_refused } },
	{ NULL },
};
