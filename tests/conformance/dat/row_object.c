/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * D8: what all objects have in common: types, consumer contexts, being in use, going with their
 * adapter; and names of errors.
 */
#include "dt.h"

#include <stdlib.h>
#include <string.h>

enum {
	KINDS = 11
};

struct one { /* an object of each kind, in the order in which they can be freed */
	struct dt d;
	DAT_HANDLE h[KINDS];
	DAT_HANDLE_TYPE type[KINDS];
	DAT_EP_HANDLE caller;
	int n;
};

static void add(struct one *o, DAT_HANDLE h, DAT_HANDLE_TYPE type)
{
	o->h[o->n] = h;
	o->type[o->n++] = type;
}

static DAT_EVD_HANDLE new_evd(struct dt *d)
{
	return dt_evd(d, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG);
}

static void open_all(struct ct *ct, struct one *o)
{
	DAT_CONN_QUAL q = dt_qualifier();
	DAT_HANDLE h;

	memset(o, 0, sizeof(*o));
	dt_open(ct, &o->d, &(struct dt_want){ .srq = true });
	DT_OK(ct, dat_psp_create(o->d.ia, q, o->d.cr, DAT_PSP_CONSUMER_FLAG, &h));
	o->caller = dt_ep(&o->d);
	dt_call(&o->d, o->caller, &o->d, q);
	add(o, dt_request(&o->d), DAT_HANDLE_TYPE_CR);
	add(o, h, DAT_HANDLE_TYPE_PSP);
	DT_OK(ct, dat_rsp_create(o->d.ia, dt_qualifier(), o->d.ep, o->d.cr, &h));
	add(o, h, DAT_HANDLE_TYPE_RSP);
	add(o, o->d.ep, DAT_HANDLE_TYPE_EP);
	add(o, o->d.srq, DAT_HANDLE_TYPE_SRQ);
	DT_OK(ct, dat_rmr_create(o->d.pz, &h));
	add(o, h, DAT_HANDLE_TYPE_RMR);
	add(o, o->d.lmr, DAT_HANDLE_TYPE_LMR);
	add(o, o->d.pz, DAT_HANDLE_TYPE_PZ);
	add(o, o->d.recv, DAT_HANDLE_TYPE_EVD);
	DT_OK(ct, dat_cno_create(o->d.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &h));
	add(o, h, DAT_HANDLE_TYPE_CNO);
	add(o, o->d.ia, DAT_HANDLE_TYPE_IA);
}

static DAT_RETURN discard(struct one *o, int i)
{
	switch (o->type[i]) {
	case DAT_HANDLE_TYPE_CR:
		return dat_cr_reject(o->h[i], 0, NULL);
	case DAT_HANDLE_TYPE_PSP:
		return dat_psp_free(o->h[i]);
	case DAT_HANDLE_TYPE_RSP:
		return dat_rsp_free(o->h[i]);
	case DAT_HANDLE_TYPE_EP:
		return dat_ep_free(o->h[i]);
	case DAT_HANDLE_TYPE_SRQ:
		return dat_srq_free(o->h[i]);
	case DAT_HANDLE_TYPE_RMR:
		return dat_rmr_free(o->h[i]);
	case DAT_HANDLE_TYPE_LMR:
		return dat_lmr_free(o->h[i]);
	case DAT_HANDLE_TYPE_PZ:
		return dat_pz_free(o->h[i]);
	case DAT_HANDLE_TYPE_EVD:
		return dat_evd_free(o->h[i]);
	case DAT_HANDLE_TYPE_CNO:
		return dat_cno_free(o->h[i]);
	default:
		return dat_ia_close(o->h[i], DAT_CLOSE_GRACEFUL_FLAG);
	}
}

static void free_dispatchers(struct one *o)
{
	DT_OK(o->d.ct, dat_evd_free(o->d.request));
	DT_OK(o->d.ct, dat_evd_free(o->d.connect));
	DT_OK(o->d.ct, dat_evd_free(o->d.cr));
}

/* Types, and contexts, which are one object's alone; an object without one has NULL. */
static void contexts(struct ct *ct)
{
	DAT_HANDLE_TYPE type;
	struct one o;
	DAT_CONTEXT c;

	open_all(ct, &o);
	for (int i = 0; i < o.n; i++) {
		DT_OK(ct, dat_get_handle_type(o.h[i], &type));
		CT_EQ(ct, type, o.type[i]);
		c.as_64 = 1;
		DT_OK(ct, dat_get_consumer_context(o.h[i], &c));
		CT_TRUE(ct, c.as_ptr == NULL);
		c.as_64 = 1000 + (uint64_t)i;
		DT_OK(ct, dat_set_consumer_context(o.h[i], c));
	}
	for (int i = 0; i < o.n; i++) {
		DT_OK(ct, dat_get_consumer_context(o.h[i], &c));
		CT_EQ(ct, c.as_64, 1000 + i);
		DT_TYPE(ct, dat_get_consumer_context(o.h[i], NULL), DAT_INVALID_PARAMETER);
		DT_TYPE(ct, dat_get_handle_type(o.h[i], NULL), DAT_INVALID_PARAMETER);
	}
	DT_TYPE(ct, dat_get_consumer_context(DAT_HANDLE_NULL, &c), DAT_INVALID_HANDLE);
	DT_TYPE(ct, dat_set_consumer_context(DAT_HANDLE_NULL, c), DAT_INVALID_HANDLE);
	DT_TYPE(ct, dat_get_handle_type(DAT_HANDLE_NULL, &type), DAT_INVALID_HANDLE);
	DT_OK(ct, dat_ia_close(o.d.ia, DAT_CLOSE_ABRUPT_FLAG)); /* with all of them */
	free(o.d.buf);
}

/*
 * What a query of an object says of its adapter is the handle that dat_ia_open
 * gave, and good for calls.
 */
static void adapters(struct ct *ct)
{
	union {
		DAT_PSP_PARAM psp;
		DAT_RSP_PARAM rsp;
		DAT_EP_PARAM ep;
		DAT_SRQ_PARAM srq;
		DAT_RMR_PARAM rmr;
		DAT_LMR_PARAM lmr;
		DAT_PZ_PARAM pz;
		DAT_EVD_PARAM evd;
		DAT_CNO_PARAM cno;
	} q;
	DAT_PZ_HANDLE made;
	struct one o;

	open_all(ct, &o);
#define NAMES(kind, handle, fields) \
	do { \
		DT_OK(ct, dat_##kind##_query(handle, fields, &q.kind)); \
		CT_TRUE(ct, q.kind.ia_handle == o.d.ia); \
	} while (0)
	NAMES(psp, o.h[1], DAT_PSP_FIELD_ALL);
	NAMES(rsp, o.h[2], DAT_RSP_FIELD_ALL);
	NAMES(ep, o.h[3], DAT_EP_FIELD_ALL);
	NAMES(srq, o.h[4], DAT_SRQ_FIELD_ALL);
	NAMES(rmr, o.h[5], DAT_RMR_FIELD_ALL);
	NAMES(lmr, o.h[6], DAT_LMR_FIELD_ALL);
	NAMES(pz, o.h[7], DAT_PZ_FIELD_ALL);
	NAMES(evd, o.h[8], DAT_EVD_FIELD_ALL);
	NAMES(cno, o.h[9], DAT_CNO_FIELD_ALL);
#undef NAMES
	DT_OK(ct, dat_pz_create(q.cno.ia_handle, &made));
	DT_OK(ct, dat_pz_free(made));
	DT_OK(ct, dat_ia_close(o.d.ia, DAT_CLOSE_ABRUPT_FLAG));
	free(o.d.buf);
}

/*
 * Gracefully, an adapter is closed when the last of them has gone, and not
 * before, whichever that is.
 */
static void graceful(struct ct *ct)
{
	struct one o;

	open_all(ct, &o);
	for (int i = 0; i < o.n; i++) {
		if (o.type[i] == DAT_HANDLE_TYPE_EVD)
			free_dispatchers(&o);
		if (o.type[i] != DAT_HANDLE_TYPE_IA)
			DT_ERR(ct, dat_ia_close(o.d.ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE,
			       DAT_INVALID_STATE_IA_IN_USE);
		if (o.type[i] == DAT_HANDLE_TYPE_SRQ) { /* the caller has it too */
			dt_conn(&o.d, o.caller, DAT_CONNECTION_EVENT_PEER_REJECTED);
			DT_OK(ct, dat_ep_free(o.caller));
		}
		DT_OK(ct, discard(&o, i));
	}
	free(o.d.buf);
}

/* What others use is not freed: DAT_INVALID_STATE, with the reason. */
static void in_use(struct ct *ct)
{
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd, cr;
	DAT_PSP_HANDLE psp;
	DAT_PZ_HANDLE pz;
	DAT_RMR_HANDLE rmr;
	struct dt d;

	dt_open(ct, &d, &(struct dt_want){ .srq = true });
	DT_OK(ct, dat_cno_create(d.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	evd = dt_evd(&d, 8, cno, DAT_EVD_SOFTWARE_FLAG);
	DT_ERR(ct, dat_cno_free(cno), DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_IN_USE);
	DT_OK(ct, dat_evd_free(evd));
	DT_OK(ct, dat_cno_free(cno));
	DT_ERR(ct, dat_srq_free(d.srq), DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE);
	DT_ERR(ct, dat_evd_free(d.recv), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
	DT_ERR(ct, dat_evd_free(d.request), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
	DT_ERR(ct, dat_evd_free(d.connect), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
	cr = new_evd(&d);
	DT_OK(ct, dat_psp_create(d.ia, dt_qualifier(), cr, DAT_PSP_CONSUMER_FLAG, &psp));
	DT_ERR(ct, dat_evd_free(cr), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
	DT_OK(ct, dat_psp_free(psp));
	DT_OK(ct, dat_evd_free(cr));
	DT_OK(ct, dat_pz_create(d.ia, &pz));
	DT_OK(ct, dat_rmr_create(pz, &rmr));
	DT_ERR(ct, dat_pz_free(pz), DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE);
	DT_OK(ct, dat_rmr_free(rmr));
	DT_OK(ct, dat_pz_free(pz));
	dt_close(&d);
}

/*
 * A dispatcher for errors that a consumer gives to a second instance stays when
 * that is closed, either way.
 */
static void shared_errors(struct ct *ct)
{
	struct dt d;

	dt_open(ct, &d, NULL);
	for (int how = 0; how < 2; how++) {
		DAT_EVD_HANDLE async = d.async, found;
		DAT_IA_HANDLE ia;
		DAT_EVENT event;

		DT_OK(ct, dat_ia_open((DAT_NAME_PTR)ct->conf->provider, 8, &async, &ia));
		CT_TRUE(ct, async == d.async);
		DT_OK(ct, dat_ia_query(ia, &found, 0, NULL, 0, NULL));
		CT_TRUE(ct, found == d.async);
		DT_OK(ct, dat_ia_close(ia, how ? DAT_CLOSE_ABRUPT_FLAG : DAT_CLOSE_GRACEFUL_FLAG));
		DT_TYPE(ct, dat_evd_dequeue(d.async, &event), DAT_QUEUE_EMPTY);
	}
	dt_close(&d);
}

/*
 * Each type and subtype has a name (libdat2 has none for the youngest types),
 * and what is none has not.
 */
static void names(struct ct *ct)
{
	const char *type, *sub;

	for (DAT_RETURN t = DAT_SUCCESS; t <= DAT_INTERRUPTED_CALL; t += 0x10000) {
		type = sub = NULL;
		DT_OK(ct, dat_strerror(t ? DAT_CLASS_ERROR | t : t, &type, &sub));
		CT_TRUE(ct, type && sub && strncmp(type, "DAT_", 4) == 0);
	}
	DT_OK(ct,
	      dat_strerror(DAT_CLASS_ERROR | DAT_INVALID_STATE | DAT_INVALID_STATE_EP_RESERVED, &type, &sub));
	CT_TRUE(ct, !strcmp(type, "DAT_INVALID_STATE") && !strcmp(sub, "DAT_INVALID_STATE_EP_RESERVED"));
	CT_TRUE(ct, dat_strerror(DAT_CLASS_ERROR | 0x12340000, &type, &sub) != DAT_SUCCESS);
}

/* Requests of an endpoint complete in the order in which they were posted, whatever they are. */
static void order(struct ct *ct)
{
	DAT_RMR_TRIPLET there;
	struct dt_pair p;

	dt_pair_open(ct, &p, NULL);
	for (uint64_t round = 0; round < 20; round++) {
		DAT_SEG_LENGTH len = round % 2 ? 100000 : 16;

		there = (DAT_RMR_TRIPLET){ (uintptr_t)p.b.buf + 400000, len, p.b.remote };
		for (uint64_t i = 0; i < 4; i++)
			dt_recv(&p.b, p.b.ep, 0, 100000, i);
		for (uint64_t i = 0; i < 12; i += 3) {
			dt_read(&p.a, 200000, &there, i);
			dt_send(&p.a, p.a.ep, 0, len, i + 1, DAT_COMPLETION_DEFAULT_FLAG);
			dt_write(&p.a, 0, &there, i + 2);
		}
		for (uint64_t i = 0; i < 12; i++)
			CT_EQ(ct, dt_dto(&p.a, p.a.request, p.a.ep, i, DAT_DTO_SUCCESS), len);
		for (uint64_t i = 0; i < 4; i++)
			CT_EQ(ct, dt_dto(&p.b, p.b.recv, p.b.ep, i, DAT_DTO_SUCCESS), len);
	}
	dt_pair_close(&p);
}

const struct ct_case dt_object[] = {
	{ "D8", "objects' contexts", { contexts } },
	{ "D8", "objects name their adapter", { adapters } },
	{ "D8", "objects closed gracefully", { graceful } },
	{ "D8", "objects in use", { in_use } },
	{ "D8", "errors shared", { shared_errors } },
	{ "D8", "errors named", { names } },
	{ "D8", "order of requests", { order } },
	{ NULL },
};
