/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * D8: the InfiniBand extensions of dat_ib_extensions.h: immediate data,
 * atomic operations, datagrams.
 */
#include "dt.h"

#include <netinet/in.h>
#include <string.h>

#include <dat2/dat_ib_extensions.h> /* wants udat.h and sockaddr_in6 before it */

enum {
	HEADER = 40 /* bytes in front of a datagram */
};

static const DAT_IB_EXTENSION_EVENT_DATA *extension(const DAT_EVENT *event)
{
	return (const void *)event->event_extension_data;
}

/* The next event is of this kind and type, of ep with this cookie and status; its length. */
static DAT_EVENT ext_dto(struct dt *d, DAT_EVD_HANDLE evd, DAT_EP_HANDLE ep, DAT_IB_EXT_TYPE type,
			 uint64_t cookie, DAT_DTO_COMPLETION_STATUS status)
{
	DAT_EVENT event = dt_event(d, evd, (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT);
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event.event_data.dto_completion_event_data;

	CT_EQ(d->ct, extension(&event)->type, type);
	CT_EQ(d->ct, dto->user_cookie.as_64, cookie);
	CT_EQ(d->ct, dto->status, status);
	CT_TRUE(d->ct, dto->ep_handle == ep);
	return event;
}

/* ---- connected endpoints --------------------------------------------------------------------- */

static void immediate(struct ct *ct)
{
	DAT_RMR_TRIPLET there;
	DAT_LMR_TRIPLET seg;
	DAT_EVENT event;
	struct dt_pair p;

	dt_pair_open(ct, &p, NULL);
	for (uint64_t i = 0; i < 20; i++) {
		DAT_SEG_LENGTH len = (DAT_SEG_LENGTH)(i * i * 97);

		seg = dt_seg(&p.a, 0, len);
		there = (DAT_RMR_TRIPLET){ (uintptr_t)p.b.buf + 4096, len, p.b.remote };
		ct_fill(p.a.buf, len, i);
		dt_recv(&p.b, p.b.ep, 0, 8, i);
		DT_OK(ct, dat_ib_post_rdma_write_immed(p.a.ep, 1, &seg, dt_cookie(100 + i), &there,
						       0xfeed0000u + i, DAT_COMPLETION_DEFAULT_FLAG));
		event = dt_any(&p.b, p.b.recv);
		CT_EQ(ct, event.event_number, DAT_IB_DTO_EVENT);
		CT_EQ(ct, extension(&event)->val.immed.data, 0xfeed0000u + i);
		CT_EQ(ct, event.event_data.dto_completion_event_data.user_cookie.as_64, i);
		CT_EQ(ct, event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
		ct_verify(ct, p.b.buf + 4096, len, i, "written with a word");
		ext_dto(&p.a, p.a.request, p.a.ep, DAT_IB_RDMA_WRITE_IMMED, 100 + i, DAT_DTO_SUCCESS);
	}
	dt_pair_close(&p);
}

static DAT_RETURN add(struct dt *d, const DAT_RMR_TRIPLET *there, uint64_t value, DAT_SEG_LENGTH len)
{
	DAT_LMR_TRIPLET seg = dt_seg(d, 0, len);

	return dat_ib_post_fetch_and_add(d->ep, value, &seg, dt_cookie(value), there,
					 DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN swap(struct dt *d, const DAT_RMR_TRIPLET *there, uint64_t old, uint64_t value)
{
	DAT_LMR_TRIPLET seg = dt_seg(d, 0, 8);

	return dat_ib_post_cmp_and_swap(d->ep, old, value, &seg, dt_cookie(value), there,
					DAT_COMPLETION_DEFAULT_FLAG);
}

/* What was there comes back; only a word of eight bytes is one. */
static void atomics(struct ct *ct)
{
	DAT_REGION_DESCRIPTION r;
	DAT_RMR_TRIPLET there;
	DAT_LMR_HANDLE lmr;
	struct dt_pair p;
	uint64_t *word, *was;

	dt_pair_open(ct, &p, NULL);
	word = (uint64_t *)p.b.buf, was = (uint64_t *)p.a.buf;
	r.for_va = p.b.buf;
	there = (DAT_RMR_TRIPLET){ (uintptr_t)word, 8, 0 };
	DT_OK(ct, dat_lmr_create(p.b.ia, DAT_MEM_TYPE_VIRTUAL, r, 4096, p.b.pz,
				 (DAT_MEM_PRIV_FLAGS)(DT_PRIVILEGES | DAT_IB_MEM_PRIV_REMOTE_ATOMIC),
				 DAT_VA_TYPE_VA, &lmr, NULL, &there.rmr_context, NULL, NULL));
	*word = 40;
	DT_OK(ct, add(&p.a, &there, 2, 8));
	ext_dto(&p.a, p.a.request, p.a.ep, DAT_IB_FETCH_AND_ADD, 2, DAT_DTO_SUCCESS);
	CT_TRUE(ct, *was == 40 && *word == 42);
	DT_OK(ct, swap(&p.a, &there, 41, 7));
	ext_dto(&p.a, p.a.request, p.a.ep, DAT_IB_CMP_AND_SWAP, 7, DAT_DTO_SUCCESS);
	CT_TRUE(ct, *was == 42 && *word == 42);
	DT_OK(ct, swap(&p.a, &there, 42, 8));
	ext_dto(&p.a, p.a.request, p.a.ep, DAT_IB_CMP_AND_SWAP, 8, DAT_DTO_SUCCESS);
	CT_TRUE(ct, *was == 42 && *word == 8);
	CT_TRUE(ct, add(&p.a, &there, 1, 4) != DAT_SUCCESS);
	dt_quiet(&p.a, p.a.request, 10, "nothing was posted");
	/* a region that does not allow it */
	there.rmr_context = p.b.remote;
	DT_OK(ct, add(&p.a, &there, 3, 8));
	ext_dto(&p.a, p.a.request, p.a.ep, DAT_IB_FETCH_AND_ADD, 3, DAT_DTO_ERR_REMOTE_ACCESS);
	dt_pair_ended(&p);
	CT_EQ(ct, *word, 8);
	DT_OK(ct, dat_lmr_free(lmr));
	dt_pair_close(&p);
}

/* ---- datagrams ------------------------------------------------------------------------------- */

struct ud {
	struct dt d[2];
	DAT_EP_HANDLE ep[2];
	DAT_IB_ADDR_HANDLE to[2]; /* how each reaches the other */
	DAT_CONTEXT cm[2];
};

static void ud_established(struct ud *u, int k, DAT_IB_EXT_TYPE type)
{
	DAT_EVENT event =
		dt_event(&u->d[k], u->d[k].connect, (DAT_EVENT_NUMBER)DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED);

	CT_EQ(u->d[k].ct, extension(&event)->type, type);
	CT_TRUE(u->d[k].ct, event.event_data.connect_event_data.ep_handle == u->ep[k]);
	u->to[k] = extension(&event)->remote_ah;
	u->cm[k] = extension(&event)->context;
}

static DAT_CR_HANDLE ud_request(struct dt *d)
{
	DAT_EVENT event = dt_event(d, d->cr, (DAT_EVENT_NUMBER)DAT_IB_UD_CONNECTION_REQUEST_EVENT);

	return event.event_data.cr_arrival_event_data.cr_handle;
}

static void ud_ep(struct ud *u, int k)
{
	struct dt *d = &u->d[k];
	DAT_EP_ATTR attr = dt_attr(d);

	attr.service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD;
	attr.max_message_size = 2048;
	attr.max_rdma_size = 0;
	DT_OK(d->ct, dat_ep_create(d->ia, d->pz, d->recv, d->request, d->connect, &attr, &u->ep[k]));
}

static void ud_open(struct ct *ct, struct ud *u)
{
	DAT_CONN_QUAL q = dt_qualifier();
	DAT_PSP_HANDLE psp;

	for (int k = 0; k < 2; k++) {
		dt_open(ct, &u->d[k], NULL);
		ud_ep(u, k);
	}
	DT_OK(ct, dat_psp_create(u->d[1].ia, q, u->d[1].cr, DAT_PSP_CONSUMER_FLAG, &psp));
	dt_call(&u->d[0], u->ep[0], &u->d[1], q);
	DT_OK(ct, dat_cr_accept(ud_request(&u->d[1]), u->ep[1], 0, NULL));
	ud_established(u, 0, DAT_IB_UD_REMOTE_AH);
	ud_established(u, 1, DAT_IB_UD_PASSIVE_REMOTE_AH);
	DT_OK(ct, dat_psp_free(psp));
}

static void ud_close(struct ud *u)
{
	for (int k = 0; k < 2; k++) {
		DT_OK(u->d[k].ct, dat_ib_ud_ah_free(u->ep[k], &u->to[k]));
		DT_OK(u->d[k].ct, dat_ep_free(u->ep[k]));
		dt_close(&u->d[k]);
	}
}

static DAT_RETURN ud_send(struct ud *u, int k, size_t at, DAT_SEG_LENGTH len, uint64_t cookie)
{
	DAT_LMR_TRIPLET seg = dt_seg(&u->d[k], at, len);

	return dat_ib_post_send_ud(u->ep[k], 1, &seg, &u->to[k], dt_cookie(cookie),
				   DAT_COMPLETION_DEFAULT_FLAG);
}

static void datagrams(struct ct *ct)
{
	static const DAT_SEG_LENGTH lengths[] = { 0, 1, 64, 1024, 2048 };
	struct ud u;

	ud_open(ct, &u);
	for (int k = 0; k < 2; k++)
		for (size_t i = 0; i < CT_COUNT(lengths); i++) {
			struct dt *from = &u.d[k], *to = &u.d[!k];
			DAT_SEG_LENGTH len = lengths[i];
			DAT_EVENT event;

			ct_fill(from->buf, len, i);
			memset(to->buf, 0xee, 8192);
			dt_recv(to, u.ep[!k], 4096, HEADER + 2048, i);
			DT_OK(ct, ud_send(&u, k, 0, len, 50 + i));
			event = ext_dto(to, to->recv, u.ep[!k], DAT_IB_UD_RECV, i, DAT_DTO_SUCCESS);
			CT_EQ(ct, event.event_data.dto_completion_event_data.transfered_length, HEADER + len);
			ct_verify(ct, to->buf + 4096 + HEADER, len, i, "of a datagram");
			CT_TRUE(ct, ct_untouched(to->buf + 4096 + HEADER + len, 1000, 0xee));
			ext_dto(from, from->request, u.ep[k], DAT_IB_UD_SEND, 50 + i, DAT_DTO_SUCCESS);
			CT_EQ(ct, dt_state(from, u.ep[k]), DAT_EP_STATE_UNCONNECTED);
		}
	ud_close(&u);
}

/*
 * Too long, without an address, of a connected endpoint, or what datagrams cannot do; one that
 * nobody waits for is lost.
 */
static void datagram_errors(struct ct *ct)
{
	DAT_RMR_TRIPLET there;
	DAT_LMR_TRIPLET seg;
	struct ud u;

	ud_open(ct, &u);
	seg = dt_seg(&u.d[0], 0, 8);
	there = (DAT_RMR_TRIPLET){ (uintptr_t)u.d[1].buf, 8, u.d[1].remote };
	CT_TRUE(ct, ud_send(&u, 0, 0, 65536, 1) != DAT_SUCCESS);
	DT_TYPE(ct, dat_ib_post_send_ud(u.ep[0], 1, &seg, NULL, dt_cookie(1), 0), DAT_INVALID_PARAMETER);
	CT_TRUE(ct, dat_ep_post_send(u.ep[0], 1, &seg, dt_cookie(1), 0) != DAT_SUCCESS);
	CT_TRUE(ct, dat_ep_post_rdma_write(u.ep[0], 1, &seg, dt_cookie(1), &there, 0) != DAT_SUCCESS);
	CT_TRUE(ct, dat_ep_post_rdma_read(u.ep[0], 1, &seg, dt_cookie(1), &there, 0) != DAT_SUCCESS);
	CT_TRUE(ct, dat_ib_post_send_ud(u.d[0].ep, 1, &seg, &u.to[0], dt_cookie(1), 0) != DAT_SUCCESS);
	DT_ERR(ct, dat_ib_post_send_ud(u.d[0].pz, 1, &seg, &u.to[0], dt_cookie(1), 0), DAT_INVALID_HANDLE,
	       DAT_INVALID_HANDLE_EP);
	dt_quiet(&u.d[0], u.d[0].request, 10, "nothing was posted");
	DT_OK(ct, ud_send(&u, 0, 0, 8, 2)); /* nobody waits for it */
	ext_dto(&u.d[0], u.d[0].request, u.ep[0], DAT_IB_UD_SEND, 2, DAT_DTO_SUCCESS);
	/* which goes the same way: it has come by then */
	dt_join(&u.d[0], u.d[0].ep, &u.d[1], u.d[1].ep);
	dt_recv(&u.d[1], u.ep[1], 0, HEADER + 8, 3);
	dt_quiet(&u.d[1], u.d[1].recv, 20, "it was lost");
	DT_OK(ct, ud_send(&u, 0, 0, 8, 4));
	ext_dto(&u.d[1], u.d[1].recv, u.ep[1], DAT_IB_UD_RECV, 3, DAT_DTO_SUCCESS);
	ext_dto(&u.d[0], u.d[0].request, u.ep[0], DAT_IB_UD_SEND, 4, DAT_DTO_SUCCESS);
	dt_part(&u.d[0], u.d[0].ep, &u.d[1], u.d[1].ep);
	ud_close(&u);
}

/* A request that is turned down, and one that reaches nobody. */
static void datagram_refused(struct ct *ct)
{
	DAT_CONN_QUAL q = dt_qualifier();
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;
	struct ud u;

	ud_open(ct, &u);
	dt_call(&u.d[0], u.ep[0], &u.d[1], q);
	event = dt_any(&u.d[0], u.d[0].connect);
	CT_TRUE(ct, (int)event.event_number == DAT_IB_UD_CONNECTION_ERROR_EVENT ||
			    (int)event.event_number == DAT_IB_UD_CONNECTION_REJECT_EVENT);
	DT_OK(ct, dat_psp_create(u.d[1].ia, q, u.d[1].cr, DAT_PSP_CONSUMER_FLAG, &psp));
	dt_call(&u.d[0], u.ep[0], &u.d[1], q);
	DT_OK(ct, dat_cr_reject(ud_request(&u.d[1]), 0, NULL));
	event = dt_event(&u.d[0], u.d[0].connect, (DAT_EVENT_NUMBER)DAT_IB_UD_CONNECTION_REJECT_EVENT);
	CT_EQ(ct, extension(&event)->type, DAT_IB_UD_CONNECT_REJECT);
	DT_OK(ct, dat_psp_free(psp));
	ud_close(&u);
}

/*
 * Who has called is no more when that is accepted: the endpoint is told so,
 * and takes the next call.
 */
static void datagram_caller_gone(struct ct *ct)
{
	DAT_CONN_QUAL q = dt_qualifier();
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;
	DAT_EVENT event;
	struct ud u;

	ud_open(ct, &u);
	DT_OK(ct, dat_psp_create(u.d[1].ia, q, u.d[1].cr, DAT_PSP_CONSUMER_FLAG, &psp));
	dt_call(&u.d[0], u.ep[0], &u.d[1], q);
	cr = ud_request(&u.d[1]);
	DT_OK(ct, dat_ib_ud_ah_free(u.ep[0], &u.to[0]));
	DT_OK(ct, dat_ep_free(u.ep[0]));
	dt_sleep(50); /* nothing tells a program that a caller has gone */
	DT_OK(ct, dat_cr_accept(cr, u.ep[1], 0, NULL));
	event = dt_event(&u.d[1], u.d[1].connect, (DAT_EVENT_NUMBER)DAT_IB_UD_CONNECTION_ERROR_EVENT);
	CT_EQ(ct, extension(&event)->type, DAT_IB_UD_CONNECT_ERROR);
	CT_TRUE(ct, event.event_data.connect_event_data.ep_handle == u.ep[1]);
	ud_ep(&u, 0);
	dt_call(&u.d[0], u.ep[0], &u.d[1], q);
	DT_OK(ct, dat_cr_accept(ud_request(&u.d[1]), u.ep[1], 0, NULL));
	ud_established(&u, 0, DAT_IB_UD_REMOTE_AH);
	DT_OK(ct, dat_ib_ud_ah_free(u.ep[1], &u.to[1]));
	ud_established(&u, 1, DAT_IB_UD_PASSIVE_REMOTE_AH);
	DT_OK(ct, dat_psp_free(psp));
	ud_close(&u);
}

/*
 * A handshake may be freed as soon as it is told of, by either side, and once; how its
 * sides reach each other stays.
 */
static void datagram_handshakes(struct ct *ct)
{
	char why[] = "not today";
	DAT_CONN_QUAL q = dt_qualifier();
	const DAT_CONNECTION_EVENT_DATA *told;
	DAT_CONTEXT cm;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;
	struct ud u;

	ud_open(ct, &u);
	DT_ERR(ct, dat_ib_ud_cm_free(u.d[0].pz, u.cm[0]), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	DT_TYPE(ct, dat_ib_ud_cm_free(u.ep[0], u.cm[1]), DAT_INVALID_PARAMETER);
	DT_TYPE(ct, dat_ib_ud_cm_free(u.ep[0], (DAT_CONTEXT){ .as_ptr = NULL }), DAT_INVALID_PARAMETER);
	for (int k = 0; k < 2; k++) {
		DT_OK(ct, dat_ib_ud_cm_free(u.ep[k], u.cm[k]));
		DT_TYPE(ct, dat_ib_ud_cm_free(u.ep[k], u.cm[k]), DAT_INVALID_PARAMETER);
		DT_OK(ct, dat_ib_ud_ah_free(u.ep[k], &u.to[k]));
	}
	DT_OK(ct, dat_psp_create(u.d[1].ia, q, u.d[1].cr, DAT_PSP_CONSUMER_FLAG, &psp));
	dt_call(&u.d[0], u.ep[0], &u.d[1], q);
	DT_OK(ct, dat_cr_accept(ud_request(&u.d[1]), u.ep[1], 0, NULL));
	ud_established(&u, 0, DAT_IB_UD_REMOTE_AH);
	DT_OK(ct, dat_ib_ud_cm_free(u.ep[0], u.cm[0])); /* the other end may not know of it yet */
	ud_established(&u, 1, DAT_IB_UD_PASSIVE_REMOTE_AH);
	DT_OK(ct, dat_ib_ud_cm_free(u.ep[1], u.cm[1]));
	dt_call(&u.d[0], u.ep[0], &u.d[1], q);
	DT_OK(ct, dat_cr_reject(ud_request(&u.d[1]), sizeof(why), why));
	event = dt_event(&u.d[0], u.d[0].connect, (DAT_EVENT_NUMBER)DAT_IB_UD_CONNECTION_REJECT_EVENT);
	told = &event.event_data.connect_event_data;
	cm = extension(&event)->context;
	CT_TRUE(ct, (size_t)told->private_data_size >= sizeof(why) &&
			    !memcmp(told->private_data, why, sizeof(why)));
	DT_OK(ct, dat_ib_ud_cm_free(u.ep[0], cm));
	for (int k = 0; k < 2; k++) {
		dt_recv(&u.d[!k], u.ep[!k], 4096, HEADER + 8, 1);
		DT_OK(ct, ud_send(&u, k, 0, 8, 2));
		ext_dto(&u.d[!k], u.d[!k].recv, u.ep[!k], DAT_IB_UD_RECV, 1, DAT_DTO_SUCCESS);
		ext_dto(&u.d[k], u.d[k].request, u.ep[k], DAT_IB_UD_SEND, 2, DAT_DTO_SUCCESS);
	}
	DT_OK(ct, dat_psp_free(psp));
	ud_close(&u);
}

static bool says(const DAT_NAMED_ATTR *attrs, int count, const DAT_NAMED_ATTR *wanted)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(attrs[i].name, wanted->name) && !strcmp(attrs[i].value, wanted->value))
			return true;
	return false;
}

/*
 * Programs go by what these say, as providers over verbs have them: dtest reads from remote memory
 * where DAT_IB_RDMA_READ is TRUE alone.
 */
static void attributes(struct ct *ct)
{
	static const DAT_NAMED_ATTR wanted[] = {
		{ "DAT_IB_RDMA_READ", "TRUE" },		  { "DAT_EXTENSION_INTERFACE", "TRUE" },
		{ "DAT_IB_CONNECTIVITY_MODE", "DIRECT" }, { "DAT_IB_PORT_STATUS", "ACTIVE" },
		{ DAT_IB_ATTR_FETCH_AND_ADD, "TRUE" },	  { DAT_IB_ATTR_CMP_AND_SWAP, "TRUE" },
		{ DAT_IB_ATTR_IMMED_DATA, "TRUE" },	  { DAT_IB_ATTR_UD, "TRUE" },
	};
	DAT_PROVIDER_ATTR provider;
	DAT_IA_ATTR ia;
	struct dt d;

	dt_open(ct, &d, NULL);
	DT_OK(ct, dat_ia_query(d.ia, NULL, DAT_IA_FIELD_ALL, &ia, DAT_PROVIDER_FIELD_ALL, &provider));
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		CT_TRUE(ct, says(ia.vendor_attr, ia.num_vendor_attr, &wanted[i]));
		CT_TRUE(ct, says(provider.provider_specific_attr, provider.num_provider_specific_attr,
				 &wanted[i]));
	}
	dt_close(&d);
}

const struct ct_case dt_ext[] = {
	{ "D8", "extension attributes", { attributes } },
	{ "D8", "extension immediate", { immediate } },
	{ "D8", "extension atomics", { atomics } },
	{ "D8", "extension datagrams", { datagrams } },
	{ "D8", "extension datagram errors", { datagram_errors } },
	{ "D8", "extension datagram refused", { datagram_refused } },
	{ "D8", "extension datagram caller gone", { datagram_caller_gone } },
	{ "D8", "extension datagram handshakes", { datagram_handshakes } },
	{ NULL },
};
