/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * D6: DAT_INVALID_HANDLE, in every place of every call, for handles of every other
 * kind, freed ones and none.
 */
#include "dt.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

enum {
	IA,
	PZ,
	LMR,
	RMR,
	EVD,
	CNO,
	EP,
	SRQ,
	PSP,
	RSP,
	CSP,
	CR,
	KINDS
};

struct box { /* an adapter with one object of each kind */
	struct dt d;
	const DAT_PROVIDER *via;
	DAT_IA_HANDLE ia; /* as the provider knows it */
	DAT_HANDLE of[KINDS];
	DAT_RMR_HANDLE rmr;
	DAT_EP_HANDLE idle, caller, reserved; /* unconnected; whose request waits; of the RSP */
	DAT_EP_ATTR attr;
	DAT_SRQ_ATTR srq_attr;
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_TRIPLET seg;
	DAT_RMR_TRIPLET there;
	DAT_COMM comm;
	char *name;
	/* what calls answer into */
	DAT_EVENT event;
	DAT_HANDLE made;
	DAT_CONN_QUAL qual;
	DAT_RMR_CONTEXT context;
	DAT_COUNT more, span;
	DAT_FD fd;
	DAT_BOOLEAN yes;
	union {
		DAT_EP_PARAM ep;
		DAT_EVD_PARAM evd;
		DAT_LMR_PARAM lmr;
		DAT_RMR_PARAM rmr;
		DAT_PZ_PARAM pz;
		DAT_SRQ_PARAM srq;
		DAT_CR_PARAM cr;
		DAT_PSP_PARAM psp;
		DAT_RSP_PARAM rsp;
		DAT_CSP_PARAM csp;
		DAT_CNO_PARAM cno;
	} out;
};

#define ANY (-1)
#define EVDS b->d.recv, b->d.request, b->d.connect
#define LMR_OUT &b->made, NULL, NULL, NULL, NULL

#define PROBE(name, kind, answer, call) \
	static DAT_RETURN call_##name(struct box *b, DAT_HANDLE h) \
	{ \
		return b->via->call; \
	}
#define OPTIONAL PROBE
#include "handles.def"
#undef PROBE
#undef OPTIONAL

static const struct probe {
	const char *name;
	int kind, answer;
	bool optional;
	DAT_RETURN (*call)(struct box *b, DAT_HANDLE h);
} probes[] = {
#define PROBE(name, kind, answer, call) { #name, kind, answer, false, call_##name },
#define OPTIONAL(name, kind, answer, call) { #name, kind, answer, true, call_##name },
#include "handles.def"
};

/* At a port that the provider chooses. */
static DAT_CSP_HANDLE new_csp(struct box *b)
{
	struct sockaddr_in at;
	DAT_CSP_HANDLE csp;

	memcpy(&at, b->d.addr, sizeof(at));
	at.sin_port = 0;
	DT_OK(b->d.ct, b->via->csp_create_func(b->ia, &b->comm, (DAT_IA_ADDRESS_PTR)&at, b->d.cr, &csp));
	return csp;
}

static void open_points(struct box *b)
{
	DAT_CONN_QUAL q = dt_qualifier();

	DT_OK(b->d.ct, dat_psp_create(b->d.ia, q, b->d.cr, DAT_PSP_CONSUMER_FLAG, &b->of[PSP]));
	DT_OK(b->d.ct,
	      dat_rsp_create(b->d.ia, dt_qualifier(), b->reserved = dt_ep(&b->d), b->d.cr, &b->of[RSP]));
	b->of[CSP] = new_csp(b);
	b->caller = dt_ep(&b->d);
	dt_call(&b->d, b->caller, &b->d, q);
	b->of[CR] = dt_request(&b->d);
}

static void open_box(struct ct *ct, struct box *b)
{
	const struct dt_want want = { .srq = true };

	memset(b, 0, sizeof(*b));
	dt_open(ct, &b->d, &want);
	b->via = DT_VIA(b->d.pz);
	b->of[IA] = b->ia = dt_own(&b->d);
	b->of[PZ] = b->d.pz;
	b->of[LMR] = b->d.lmr;
	b->of[EVD] = b->d.recv;
	b->of[EP] = b->idle = b->d.ep;
	b->of[SRQ] = b->d.srq;
	DT_OK(ct, dat_rmr_create(b->d.pz, &b->rmr));
	b->of[RMR] = b->rmr;
	DT_OK(ct, dat_cno_create(b->d.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &b->of[CNO]));
	b->comm = (DAT_COMM){ AF_INET, SOCK_STREAM, 0 };
	b->name = (char *)ct->conf->provider;
	open_points(b);
	b->attr = dt_attr(&b->d);
	b->srq_attr = (DAT_SRQ_ATTR){ 8, 2, DAT_SRQ_LW_DEFAULT };
	b->region.for_va = b->d.buf;
	b->seg = dt_seg(&b->d, 0, 8);
	b->event.event_number = DAT_SOFTWARE_EVENT;
	b->there = (DAT_RMR_TRIPLET){ (uintptr_t)b->d.buf, 8, b->d.remote };
}

/* All are still there, and what they were. */
static void close_box(struct box *b)
{
	struct ct *ct = b->d.ct;

	CT_EQ(ct, dt_state(&b->d, b->idle), DAT_EP_STATE_UNCONNECTED);
	dt_quiet(&b->d, b->d.recv, 1, "nothing was posted");
	dt_quiet(&b->d, b->d.request, 1, "nothing was posted");
	DT_OK(ct, dat_cr_reject(b->of[CR], 0, NULL));
	dt_conn(&b->d, b->caller, DAT_CONNECTION_EVENT_PEER_REJECTED);
	DT_OK(ct, dat_ep_free(b->caller));
	DT_OK(ct, dat_psp_free(b->of[PSP]));
	DT_OK(ct, b->via->csp_free_func(b->of[CSP]));
	DT_OK(ct, dat_rsp_free(b->of[RSP]));
	DT_OK(ct, dat_ep_free(b->reserved));
	DT_OK(ct, dat_rmr_free(b->rmr));
	DT_OK(ct, dat_cno_free(b->of[CNO]));
	dt_close(&b->d);
}

static void try(struct box *b, const struct probe *p, DAT_HANDLE h, const char *what)
{
	DAT_RETURN rc = p->call(b, h);

	if (DAT_GET_TYPE(rc) != DAT_INVALID_HANDLE ||
	    (p->answer != ANY && DAT_GET_SUBTYPE(rc) != (DAT_RETURN)p->answer))
		ct_fail(b->d.ct, "%s of %s: 0x%x", p->name, what, rc);
}

static void others(struct ct *ct)
{
	static const char *const names[] = { "an IA", "a PZ",	"an LMR", "an RMR", "an EVD", "a CNO",
					     "an EP", "an SRQ", "a PSP",  "an RSP", "a CSP",  "a CR" };
	struct box b;

	open_box(ct, &b);
	for (size_t i = 0; i < CT_COUNT(probes); i++)
		for (int kind = 0; kind < KINDS; kind++)
			if (kind != probes[i].kind)
				try(&b, &probes[i], b.of[kind], names[kind]);
	close_box(&b);
}

static void none(struct ct *ct)
{
	struct box b;

	open_box(ct, &b);
	for (size_t i = 0; i < CT_COUNT(probes); i++)
		if (!probes[i].optional)
			try(&b, &probes[i], DAT_HANDLE_NULL, "none");
	close_box(&b);
}

/* ---- freed ones ------------------------------------------------------------------------------ */

static DAT_HANDLE make_point(struct box *b, int kind)
{
	struct ct *ct = b->d.ct;
	DAT_HANDLE h = NULL;
	DAT_CONN_QUAL q = dt_qualifier();
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE ep;

	if (kind == PSP)
		DT_OK(ct, dat_psp_create(b->d.ia, q, b->d.cr, DAT_PSP_CONSUMER_FLAG, &h));
	if (kind == RSP)
		DT_OK(ct, dat_rsp_create(b->d.ia, q, b->idle, b->d.cr, &h));
	if (kind == CSP)
		h = new_csp(b);
	if (kind == CR) {
		DT_OK(ct, dat_psp_create(b->d.ia, q, b->d.cr, DAT_PSP_CONSUMER_FLAG, &psp));
		ep = dt_ep(&b->d);
		dt_call(&b->d, ep, &b->d, q);
		h = dt_request(&b->d);
		DT_OK(ct, dat_cr_reject(h, 0, NULL));
		dt_conn(&b->d, ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
		DT_OK(ct, dat_ep_free(ep));
		DT_OK(ct, dat_psp_free(psp));
	}
	return h;
}

static DAT_HANDLE make(struct box *b, int kind)
{
	struct ct *ct = b->d.ct;
	DAT_HANDLE h = NULL;

	switch (kind) {
	case PZ:
		DT_OK(ct, dat_pz_create(b->d.ia, &h));
		break;
	case LMR:
		DT_OK(ct, dat_lmr_create(b->d.ia, DAT_MEM_TYPE_VIRTUAL, b->region, 8, b->d.pz, DT_PRIVILEGES,
					 DAT_VA_TYPE_VA, &h, NULL, NULL, NULL, NULL));
		break;
	case RMR:
		DT_OK(ct, dat_rmr_create(b->d.pz, &h));
		break;
	case EVD:
		h = dt_evd(&b->d, 8, DAT_HANDLE_NULL,
			   (DAT_EVD_FLAGS)(DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG));
		break;
	case CNO:
		DT_OK(ct, dat_cno_create(b->d.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &h));
		break;
	case EP:
		h = dt_ep(&b->d);
		break;
	case SRQ:
		DT_OK(ct, dat_srq_create(b->d.ia, b->d.pz, &b->srq_attr, &h));
		break;
	default:
		h = make_point(b, kind);
	}
	return h;
}

static void unmake(struct box *b, int kind, DAT_HANDLE h)
{
	DAT_RETURN(*const unmakers[KINDS])
	(DAT_HANDLE h) = {
		[PZ] = dat_pz_free,   [LMR] = dat_lmr_free,
		[RMR] = dat_rmr_free, [EVD] = dat_evd_free,
		[CNO] = dat_cno_free, [EP] = dat_ep_free,
		[SRQ] = dat_srq_free, [PSP] = dat_psp_free,
		[RSP] = dat_rsp_free, [CSP] = b->via->csp_free_func,
	};

	if (kind != CR) /* its answer has destroyed it */
		DT_OK(b->d.ct, unmakers[kind](h));
}

/*
 * "Use of the handle of the destroyed … in any consequent operation fails": through libdat2
 * too, which looks into it.
 */
static void freed(struct ct *ct)
{
	struct box b;

	open_box(ct, &b);
	for (int kind = PZ; kind < KINDS; kind++) {
		DAT_HANDLE h = make(&b, kind);
		DAT_HANDLE_TYPE type;

		unmake(&b, kind, h);
		DT_TYPE(ct, dat_get_handle_type(h, &type), DAT_INVALID_HANDLE);
		for (size_t i = 0; i < CT_COUNT(probes); i++)
			if (probes[i].kind == kind)
				try(&b, &probes[i], h, "a freed one");
	}
	close_box(&b);
}

/* An adapter that is closed, and what went with it. */
static void closed(struct ct *ct)
{
	DAT_HANDLE_TYPE type;
	DAT_EVENT event;
	struct box b;
	struct dt gone;

	open_box(ct, &b);
	dt_open(ct, &gone, NULL);
	DT_OK(ct, dat_ia_close(gone.ia, DAT_CLOSE_ABRUPT_FLAG));
	DT_TYPE(ct, dat_ia_query(gone.ia, NULL, 0, NULL, 0, NULL), DAT_INVALID_HANDLE);
	DT_TYPE(ct, dat_ia_close(gone.ia, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE);
	DT_TYPE(ct, dat_get_handle_type(gone.ep, &type), DAT_INVALID_HANDLE);
	DT_TYPE(ct, dat_ep_free(gone.ep), DAT_INVALID_HANDLE);
	DT_TYPE(ct, dat_evd_dequeue(gone.async, &event), DAT_INVALID_HANDLE);
	DT_TYPE(ct, dat_evd_free(gone.recv), DAT_INVALID_HANDLE);
	DT_TYPE(ct, dat_lmr_free(gone.lmr), DAT_INVALID_HANDLE);
	DT_TYPE(ct, dat_pz_free(gone.pz), DAT_INVALID_HANDLE);
	free(gone.buf);
	close_box(&b);
}

const struct ct_case dt_handle[] = {
	{ "D6", "handles of other kinds", { others } },
	{ "D6", "handles none", { none } },
	{ "D6", "handles freed", { freed } },
	{ "D6", "handles of a closed adapter", { closed } },
	{ NULL },
};
