/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* D8: the lives of adapters and endpoints, dat_ia_close(3DAT), dat_ep_modify(3DAT). */
#include "dt.h"

#include <pthread.h>
#include <stdlib.h>

/* Gracefully only when it is empty; abruptly with all there is, and the other side hears of it. */
static void close_adapter(struct ct *ct)
{
	struct dt_pair p;

	dt_pair_open(ct, &p, NULL);
	DT_ERR(ct, dat_ia_close(p.b.ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE,
	       DAT_INVALID_STATE_IA_IN_USE);
	DT_TYPE(ct, dat_ia_close(p.b.ia, (DAT_CLOSE_FLAGS)9), DAT_INVALID_PARAMETER);
	dt_recv(&p.a, p.a.ep, 0, 8, 1);
	dt_recv(&p.b, p.b.ep, 0, 8, 2);
	DT_OK(ct, dat_ia_close(p.b.ia, DAT_CLOSE_ABRUPT_FLAG));
	dt_ended(&p.a, p.a.ep);
	dt_dto(&p.a, p.a.recv, p.a.ep, 1, DAT_DTO_ERR_FLUSHED);
	dt_close(&p.a);
	free(p.b.buf);
}

/* Whoever waits when an adapter is closed is sent away. */
static void close_under_waiter(struct ct *ct)
{
	struct dt_waiter w;
	struct dt d;

	dt_open(ct, &d, NULL);
	dt_waiter_start(&d, &w, d.recv, 1);
	DT_OK(ct, dat_ia_close(d.ia, DAT_CLOSE_ABRUPT_FLAG));
	dt_waiter_join(&d, &w);
	DT_TYPE(ct, w.rc, DAT_ABORT);
	free(d.buf);
}

/* A second instance of the adapter, whose errors go to the first's queue. */
static void second_instance(struct ct *ct)
{
	DAT_EVD_HANDLE async = DAT_EVD_ASYNC_EXISTS, found;
	DAT_IA_HANDLE ia;
	struct dt d;

	dt_open(ct, &d, NULL);
	DT_OK(ct, dat_ia_open((DAT_NAME_PTR)ct->conf->provider, 8, &async, &ia));
	DT_OK(ct, dat_ia_query(ia, &found, 0, NULL, 0, NULL));
	CT_TRUE(ct, found == DAT_EVD_OUT_OF_SCOPE);
	DT_OK(ct, dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	DT_TYPE(ct, dat_ia_open((char *)"no-such-adapter", 8, &async, &ia), DAT_PROVIDER_NOT_FOUND);
	dt_close(&d);
}

/* An endpoint that gets what it needs later. */
static void modify(struct ct *ct)
{
	DAT_EP_PARAM param = { 0 };
	DAT_EP_HANDLE ep;
	struct dt_pair p;

	dt_pair_open(ct, &p, NULL);
	DT_OK(ct, dat_ep_create(p.a.ia, p.a.pz, p.a.recv, p.a.request, p.a.connect, NULL, &ep));
	DT_OK(ct, dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	CT_EQ(ct, param.ep_state, DAT_EP_STATE_UNCONNECTED);
	CT_TRUE(ct, param.pz_handle == p.a.pz && param.recv_evd_handle == p.a.recv);
	CT_TRUE(ct, param.ep_attr.max_recv_dtos > 0 && param.ep_attr.max_message_size > 0);
	param.ep_attr.max_recv_dtos = 300;
	param.ep_attr.max_request_dtos = 301;
	DT_OK(ct,
	      dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS | DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS,
			    &param));
	DT_OK(ct, dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	CT_TRUE(ct, param.ep_attr.max_recv_dtos >= 300 && param.ep_attr.max_request_dtos >= 301);
	DT_TYPE(ct, dat_ep_modify(ep, DAT_EP_FIELD_EP_STATE, &param), DAT_INVALID_PARAMETER);
	param.pz_handle = p.a.recv;
	DT_TYPE(ct, dat_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE, &param), DAT_INVALID_HANDLE);
	DT_TYPE(ct, dat_ep_modify(p.a.ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param), DAT_INVALID_STATE);
	DT_ERR(ct, dat_evd_free(p.a.recv), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
	DT_OK(ct, dat_ep_free(ep));
	DT_TYPE(ct, dat_ep_create(p.a.ia, p.a.pz, p.a.connect, p.a.request, p.a.connect, NULL, &ep),
		DAT_INVALID_HANDLE);
	dt_pair_close(&p);
}

static void contexts(struct ct *ct)
{
	DAT_CONTEXT context = { .as_64 = 0x123456789abc };
	DAT_HANDLE handles[4];
	struct dt d;

	dt_open(ct, &d, NULL);
	handles[0] = d.ep, handles[1] = d.ia, handles[2] = d.recv, handles[3] = d.lmr;
	for (int i = 0; i < 4; i++) {
		DT_OK(ct, dat_set_consumer_context(handles[i], context));
		context.as_64 = 0;
		DT_OK(ct, dat_get_consumer_context(handles[i], &context));
		CT_EQ(ct, context.as_64, 0x123456789abc);
	}
	dt_close(&d);
}

const struct ct_case dt_life[] = {
	{ "D8", "close adapter", { close_adapter } },
	{ "D8", "close under waiter", { close_under_waiter } },
	{ "D8", "second instance", { second_instance } },
	{ "D8", "modify endpoint", { modify } },
	{ "D8", "contexts", { contexts } },
	{ NULL },
};
