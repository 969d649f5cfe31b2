/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* D8: asynchronous errors, and where they go: dat_ia_open(3DAT). */
#include "dt.h"

#include <stdlib.h>

/* A further instance of the adapter, whose errors go where `async` says. */
struct instance {
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_SRQ_HANDLE srq;
};

static void instance_open(struct ct *ct, struct instance *i, DAT_EVD_HANDLE async)
{
	DAT_SRQ_ATTR attr = { 8, 2, DAT_SRQ_LW_DEFAULT };

	DT_OK(ct, dat_ia_openv((DAT_NAME_PTR)ct->conf->provider, 8, &async, &i->ia, DAT_VERSION_MAJOR,
			       DAT_VERSION_MINOR, DAT_TRUE));
	DT_OK(ct, dat_pz_create(i->ia, &i->pz));
	DT_OK(ct, dat_srq_create(i->ia, i->pz, &attr, &i->srq));
}

static void instance_close(struct ct *ct, struct instance *i)
{
	DT_OK(ct, dat_srq_free(i->srq));
	DT_OK(ct, dat_pz_free(i->pz));
	DT_OK(ct, dat_ia_close(i->ia, DAT_CLOSE_GRACEFUL_FLAG));
}

/* An error of the instance: its queue is below its watermark at once. */
static void fail(struct ct *ct, const struct instance *i)
{
	DT_OK(ct, dat_srq_set_lw(i->srq, 1));
}

static void expect(struct dt *d, DAT_HANDLE object, DAT_COUNT reason)
{
	DAT_ASYNCH_ERROR_EVENT_DATA data = dt_any(d, d->async).event_data.asynch_error_event_data;

	CT_TRUE(d->ct, data.dat_handle == object);
	CT_EQ(d->ct, data.reason, reason);
}

/* DAT_EVD_ASYNC_EXISTS: to the one that has been there before, which is not the instance's own. */
static void exists(struct ct *ct)
{
	struct instance i, other;
	DAT_EVD_HANDLE found;
	struct dt d, later;

	dt_open(ct, &d, NULL);
	dt_open(ct, &later, NULL);
	instance_open(ct, &i, DAT_EVD_ASYNC_EXISTS);
	DT_OK(ct, dat_ia_query(i.ia, &found, 0, NULL, 0, NULL));
	CT_TRUE(ct, found == DAT_EVD_OUT_OF_SCOPE);
	fail(ct, &i);
	expect(&d, i.srq, DAT_SRQ_LOW_WATERMARK_EVENT);
	dt_quiet(&later, later.async, 10, "to one of them");
	dt_close(&d);
	fail(ct, &i);
	expect(&later, i.srq, DAT_SRQ_LOW_WATERMARK_EVENT);
	dt_close(&later);
	fail(ct, &i); /* nobody hears of it */
	instance_open(ct, &other, DAT_EVD_ASYNC_EXISTS);
	fail(ct, &other);
	instance_close(ct, &other);
	instance_close(ct, &i);
}

/* One that is named, of another instance; which may be closed before it. */
static void named(struct ct *ct)
{
	struct instance i;
	DAT_EVD_HANDLE found;
	struct dt d, other;

	dt_open(ct, &other, NULL);
	dt_open(ct, &d, NULL);
	instance_open(ct, &i, d.async);
	DT_OK(ct, dat_ia_query(i.ia, &found, 0, NULL, 0, NULL));
	CT_TRUE(ct, found == d.async);
	for (int k = 0; k < 3; k++) {
		fail(ct, &i);
		expect(&d, i.srq, DAT_SRQ_LOW_WATERMARK_EVENT);
	}
	dt_quiet(&other, other.async, 10, "to the one that is named");
	DT_OK(ct, dat_ia_close(d.ia, DAT_CLOSE_ABRUPT_FLAG));
	free(d.buf);
	fail(ct, &i);
	instance_close(ct, &i);
	dt_close(&other);
}

/* Whoever waits for errors is woken; a CNO hears of them too. */
static void waited_for(struct ct *ct)
{
	struct dt_waiter w;
	DAT_EVD_HANDLE evd;
	DAT_CNO_HANDLE cno;
	struct instance i;
	DAT_EVENT event;
	struct dt d;

	dt_open(ct, &d, NULL);
	instance_open(ct, &i, d.async);
	dt_waiter_start(&d, &w, d.async, 1);
	fail(ct, &i);
	dt_waiter_ok(&d, &w);
	CT_TRUE(ct, w.event.event_data.asynch_error_event_data.dat_handle == i.srq);
	DT_OK(ct, dat_cno_create(d.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	DT_OK(ct, dat_evd_modify_cno(d.async, cno));
	fail(ct, &i);
	DT_OK(ct, dat_cno_wait(cno, DT_FOREVER, &evd));
	CT_TRUE(ct, evd == d.async);
	DT_OK(ct, dat_evd_dequeue(d.async, &event));
	CT_TRUE(ct, event.evd_handle == d.async);
	DT_OK(ct, dat_evd_modify_cno(d.async, DAT_HANDLE_NULL));
	DT_OK(ct, dat_cno_free(cno));
	instance_close(ct, &i);
	dt_close(&d);
}

/* None is lost, though the EVD was made for eight. */
static void many(struct ct *ct)
{
	struct instance i;
	struct dt d;

	dt_open(ct, &d, NULL);
	instance_open(ct, &i, d.async);
	for (int k = 0; k < 100; k++)
		fail(ct, &i);
	for (int k = 0; k < 100; k++)
		expect(&d, i.srq, DAT_SRQ_LOW_WATERMARK_EVENT);
	instance_close(ct, &i);
	dt_close(&d);
}

/*
 * Whose memory was to be touched without a right learns of that; who tried has a completion for it.
 */
static void broken(struct ct *ct)
{
	for (int srq = 0; srq < 2; srq++) {
		DAT_RMR_TRIPLET there;
		struct dt_pair p;

		dt_pair_open(ct, &p, &(struct dt_want){ .srq = srq });
		there = (DAT_RMR_TRIPLET){ (uintptr_t)p.b.buf, 64, p.b.remote ^ 0x5555 };
		dt_write(&p.a, 0, &there, 1);
		dt_dto(&p.a, p.a.request, p.a.ep, 1, DAT_DTO_ERR_REMOTE_ACCESS);
		dt_conn(&p.a, p.a.ep, DAT_CONNECTION_EVENT_BROKEN);
		dt_conn(&p.b, p.b.ep, DAT_CONNECTION_EVENT_BROKEN);
		CT_EQ(ct, dt_any(&p.b, p.b.async).event_number, DAT_ASYNC_ERROR_EP_BROKEN);
		dt_quiet(&p.b, p.b.async, 10, "once");
		dt_quiet(&p.a, p.a.async, 1, "it has its completion");
		dt_pair_close(&p);
	}
}

/* Endpoints that part are no error. */
static void parted(struct ct *ct)
{
	struct dt_pair p;

	dt_pair_open(ct, &p, NULL);
	dt_recv(&p.b, p.b.ep, 0, 8, 1);
	dt_part(&p.a, p.a.ep, &p.b, p.b.ep);
	dt_dto(&p.b, p.b.recv, p.b.ep, 1, DAT_DTO_ERR_FLUSHED);
	dt_quiet(&p.a, p.a.async, 10, "it was meant");
	dt_quiet(&p.b, p.b.async, 1, "it was meant");
	dt_pair_close(&p);
}

/* It is the IA's for as long as that is open, and goes with it: dat_ia_close. */
static void stays(struct ct *ct)
{
	struct dt d;

	dt_open(ct, &d, NULL);
	DT_ERR(ct, dat_evd_free(d.async), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
	dt_quiet(&d, d.async, 1, "it is there");
	dt_close(&d);
}

const struct ct_case dt_async[] = {
	{ "D8", "errors where they exist", { exists } }, { "D8", "errors to a named dispatcher", { named } },
	{ "D8", "errors waited for", { waited_for } },	 { "D8", "many errors", { many } },
	{ "D8", "broken endpoints", { broken } },	 { "D8", "parted endpoints", { parted } },
	{ "D8", "async dispatcher stays", { stays } },	 { NULL },
};
