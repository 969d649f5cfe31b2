/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * D1, D3, D8: what programs ask for when they make and change objects, and what
 * these then say of themselves.
 */
#include "dt.h"

#include <signal.h>
#include <string.h>

/* ---- endpoints ------------------------------------------------------------------------------- */

/* What the attributes of the IA do not name is refused, and so is what a flag excludes. */
static void not_to_be_had(struct ct *ct)
{
	DAT_EP_PARAM p = { .ep_attr = { .qos = DAT_QOS_PREMIUM } };
	DAT_PROVIDER_ATTR provider;
	DAT_EP_HANDLE ep;
	DAT_EP_ATTR attr;
	struct dt d;

	dt_open(ct, &d, NULL);
	DT_OK(ct, dat_ia_query(d.ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &provider));
	CT_EQ(ct, provider.dat_qos_supported, DAT_QOS_BEST_EFFORT);
	attr = dt_attr(&d);
	attr.qos = DAT_QOS_PREMIUM;
	DT_TYPE(ct, dat_ep_create(d.ia, d.pz, d.recv, d.request, d.connect, &attr, &ep),
		DAT_MODEL_NOT_SUPPORTED);
	DT_ERR(ct, dat_ep_modify(d.ep, DAT_EP_FIELD_EP_ATTR_QOS, &p), DAT_INVALID_PARAMETER,
	       DAT_INVALID_ARG3);
	attr = dt_attr(&d);
	attr.recv_completion_flags =
		(DAT_COMPLETION_FLAGS)(DAT_COMPLETION_EVD_THRESHOLD_FLAG | DAT_COMPLETION_UNSIGNALLED_FLAG);
	DT_ERR(ct, dat_ep_create(d.ia, d.pz, d.recv, d.request, d.connect, &attr, &ep), DAT_INVALID_PARAMETER,
	       DAT_INVALID_ARG6);
	dt_close(&d);
}

/* How long a buffer of a shared queue may be is the queue's to say. */
static void segments_of_shared(struct ct *ct)
{
	const struct dt_want want = { .srq = true };
	DAT_EP_HANDLE ep;
	DAT_EP_ATTR attr;
	struct dt d;

	dt_open(ct, &d, &want);
	attr = dt_attr(&d);
	attr.max_recv_iov = 1 << 20;
	DT_OK(ct, dat_ep_create_with_srq(d.ia, d.pz, d.recv, d.request, d.connect, d.srq, &attr, &ep));
	DT_OK(ct, dat_ep_free(ep));
	dt_close(&d);
}

/*
 * Receives that wait already stay where they are when other things are
 * changed: dat_ep_modify(3DAT).
 */
static void changed_around_receives(struct ct *ct)
{
	DAT_EP_PARAM want = { .ep_attr = { .max_rdma_read_in = 4,
					   .max_rdma_read_out = 3,
					   .max_request_iov = 7,
					   .max_recv_dtos = 30,
					   .request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG,
					   .recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG } };
	DAT_EP_PARAM is;
	struct dt_pair p;

	dt_pair_make(ct, &p);
	dt_recv(&p.a, p.a.ep, 0, 64, 5);
	want.connect_evd_handle = dt_evd(&p.a, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG);
	DT_OK(ct, dat_ep_modify(p.a.ep,
				DAT_EP_FIELD_CONNECT_EVD_HANDLE | DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN |
					DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT |
					DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV |
					DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS |
					DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS,
				&want));
	DT_OK(ct, dat_ep_query(p.a.ep, DAT_EP_FIELD_ALL, &is));
	CT_TRUE(ct, is.connect_evd_handle == want.connect_evd_handle && is.ep_attr.max_rdma_read_in == 4 &&
			    is.ep_attr.max_rdma_read_out == 3 && is.ep_attr.max_request_iov == 7 &&
			    is.ep_attr.max_recv_dtos == 30 &&
			    is.ep_attr.request_completion_flags == DAT_COMPLETION_UNSIGNALLED_FLAG);
	DT_ERR(ct, dat_ep_modify(p.a.ep, DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS, &want),
	       DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED);
	DT_OK(ct, dat_ep_modify(p.a.ep, DAT_EP_FIELD_CONNECT_EVD_HANDLE,
				&(DAT_EP_PARAM){ .connect_evd_handle = p.a.connect }));
	DT_OK(ct, dat_evd_free(want.connect_evd_handle));
	dt_join(&p.a, p.a.ep, &p.b, p.b.ep);
	dt_send(&p.b, p.b.ep, 0, 8, 6, DAT_COMPLETION_SUPPRESS_FLAG);
	CT_EQ(ct, dt_dto(&p.a, p.a.recv, p.a.ep, 5, DAT_DTO_SUCCESS), 8);
	dt_part(&p.a, p.a.ep, &p.b, p.b.ep);
	dt_pair_close(&p);
}

/* ---- dispatchers ----------------------------------------------------------------------------- */

static DAT_EVD_STATE configuration(struct dt *d)
{
	DAT_EVD_PARAM param;

	DT_OK(d->ct, dat_evd_query(d->recv, DAT_EVD_FIELD_EVD_STATE, &param));
	return param.evd_state & DAT_EVD_STATE_CONFIG_THRESHOLD;
}

/* A dispatcher says what its endpoints were made for. */
static void says_what_wakes(struct ct *ct)
{
	static const struct {
		DAT_COMPLETION_FLAGS flags;
		DAT_EVD_STATE state;
	} kinds[] = { { DAT_COMPLETION_SOLICITED_WAIT_FLAG, DAT_EVD_STATE_CONFIG_SOLICITED },
		      { DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_EVD_STATE_CONFIG_SOLICITED },
		      { DAT_COMPLETION_EVD_THRESHOLD_FLAG, DAT_EVD_STATE_CONFIG_THRESHOLD } };
	DAT_EP_HANDLE ep;
	DAT_EP_ATTR attr;
	struct dt d;

	dt_open(ct, &d, NULL);
	attr = dt_attr(&d);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		CT_EQ(ct, configuration(&d), DAT_EVD_STATE_CONFIG_NOTIFY);
		attr.recv_completion_flags = kinds[i].flags;
		DT_OK(ct, dat_ep_create(d.ia, d.pz, d.recv, d.request, d.connect, &attr, &ep));
		CT_EQ(ct, configuration(&d), kinds[i].state);
		DT_OK(ct, dat_ep_free(ep));
	}
	dt_close(&d);
}

static void nothing(int number)
{
}

/* Tells the thread again and again, as it may not sleep yet when it is told first. */
static void interrupt_until(struct dt_waiter *w)
{
	for (int i = 0; i < 10000 && !w->done; i++) {
		pthread_kill(w->thread, SIGUSR1);
		dt_sleep(2);
	}
}

/* A signal ends the wait, if its handler was not set up to let calls go on. Nothing is lost. */
static void interrupted(struct ct *ct)
{
	struct sigaction act = { .sa_handler = nothing }, before;
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	struct dt_waiter w;
	DAT_EVD_HANDLE evd;
	struct dt d;

	evd = dt_open_software(ct, &d);
	CT_EQ(ct, sigaction(SIGUSR1, &act, &before), 0);
	dt_waiter_start(&d, &w, evd, 2);
	DT_OK(ct, dat_evd_post_se(evd, &event));
	interrupt_until(&w);
	dt_waiter_join(&d, &w);
	DT_TYPE(ct, w.rc, DAT_INTERRUPTED_CALL);
	CT_EQ(ct, w.more, 1);
	dt_any(&d, evd);
	act.sa_flags = SA_RESTART;
	CT_EQ(ct, sigaction(SIGUSR1, &act, NULL), 0);
	dt_waiter_start(&d, &w, evd, 1);
	for (int i = 0; i < 20; i++) {
		pthread_kill(w.thread, SIGUSR1);
		dt_sleep(1);
	}
	CT_TRUE(ct, !w.done);
	DT_OK(ct, dat_evd_post_se(evd, &event));
	dt_waiter_ok(&d, &w);
	CT_EQ(ct, sigaction(SIGUSR1, &before, NULL), 0);
	DT_OK(ct, dat_evd_free(evd));
	dt_close(&d);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Others get a context of memory that they may reach, and none of another. */
static void contexts(struct ct *ct)
{
	static const struct {
		DAT_MEM_PRIV_FLAGS privileges;
		bool known;
	} kinds[] = { { DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG, false },
		      { DAT_MEM_PRIV_REMOTE_READ_FLAG, true },
		      { DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG, true } };
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_PARAM param;
	DAT_RMR_CONTEXT context;
	struct dt d;

	dt_open(ct, &d, NULL);
	region.for_va = d.buf;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		context = 77;
		DT_OK(ct, dat_lmr_create(d.ia, DAT_MEM_TYPE_VIRTUAL, region, 64, d.pz, kinds[i].privileges,
					 DAT_VA_TYPE_VA, &lmr, NULL, &context, NULL, NULL));
		CT_EQ(ct, context != 0, kinds[i].known);
		DT_OK(ct, dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &param));
		CT_EQ(ct, param.rmr_context, context);
		CT_TRUE(ct, param.lmr_context != 0);
		DT_OK(ct, dat_lmr_free(lmr));
	}
	dt_close(&d);
}

/* ---- the IA and its service points ----------------------------------------------------------- */

/* It is called what it was opened by, and has windows of either scope. */
static void adapter(struct ct *ct)
{
	DAT_PROVIDER_ATTR provider;
	DAT_IA_ATTR attr;
	struct dt d;

	dt_open(ct, &d, NULL);
	DT_OK(ct, dat_ia_query(d.ia, NULL, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL, &provider));
	CT_TRUE(ct, !strcmp(attr.adapter_name, ct->conf->provider));
	CT_EQ(ct, provider.rmr_scope_supported, DAT_RMR_SCOPE_ANY);
	dt_close(&d);
}

/* A reserved service point without an endpoint gets one from the provider with its request. */
static void reserved_without(struct ct *ct)
{
	DAT_CONN_QUAL q = dt_qualifier();
	DAT_RSP_PARAM reserved;
	DAT_CR_PARAM request;
	DAT_EP_PARAM ours;
	DAT_RSP_HANDLE rsp;
	DAT_CR_HANDLE cr;
	struct dt_pair p;

	for (int accepts = 0; accepts < 2; accepts++) {
		dt_pair_make(ct, &p);
		DT_OK(ct, dat_rsp_create(p.b.ia, q, DAT_HANDLE_NULL, p.b.cr, &rsp));
		DT_OK(ct, dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, &reserved));
		CT_TRUE(ct, reserved.ep_handle == DAT_HANDLE_NULL && reserved.conn_qual == q);
		dt_call(&p.a, p.a.ep, &p.b, q);
		cr = dt_request(&p.b);
		DT_OK(ct, dat_cr_query(cr, DAT_CR_FIELD_ALL, &request));
		CT_EQ(ct, dt_state(&p.b, request.local_ep_handle), DAT_EP_STATE_UNCONFIGURED_TENTATIVE);
		DT_TYPE(ct, dat_ep_free(request.local_ep_handle), DAT_INVALID_STATE);
		if (accepts) {
			DT_OK(ct, dat_ep_query(p.b.ep, DAT_EP_FIELD_ALL, &ours));
			DT_OK(ct, dat_ep_modify(request.local_ep_handle,
						DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
							DAT_EP_FIELD_REQUEST_EVD_HANDLE |
							DAT_EP_FIELD_CONNECT_EVD_HANDLE,
						&ours));
			DT_OK(ct, dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
			dt_conn(&p.a, p.a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
			dt_conn(&p.b, request.local_ep_handle, DAT_CONNECTION_EVENT_ESTABLISHED);
			dt_part(&p.a, p.a.ep, &p.b, request.local_ep_handle);
			DT_OK(ct, dat_ep_free(request.local_ep_handle));
		} else {
			DT_OK(ct, dat_cr_reject(cr, 0, NULL));
			dt_conn(&p.a, p.a.ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
			DT_TYPE(ct, dat_ep_free(request.local_ep_handle), DAT_INVALID_HANDLE);
		}
		DT_OK(ct, dat_rsp_free(rsp));
		dt_pair_close(&p);
	}
}

const struct ct_case dt_wishes[] = {
	{ "D8", "wishes not to be had", { not_to_be_had } },
	{ "D1", "wishes for segments of a shared queue", { segments_of_shared } },
	{ "D8", "wishes changed around receives", { changed_around_receives } },
	{ "D3", "wishes said by the dispatcher", { says_what_wakes } },
	{ "D8", "wishes interrupted", { interrupted } },
	{ "D8", "wishes for contexts", { contexts } },
	{ "D7", "wishes said by the adapter", { adapter } },
	{ "D8", "wishes reserved without an endpoint", { reserved_without } },
	{ NULL },
};
