/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "dt.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void dt_judge(struct ct *ct, DAT_RETURN is, DAT_RETURN_TYPE type, int sub, const char *call, int line)
{
	const char *major = "?", *minor = "?";

	bool bare = type == DAT_SUCCESS || type == DAT_QUEUE_EMPTY || type == DAT_TIMEOUT_EXPIRED;

	if (DAT_GET_TYPE(is) == (DAT_RETURN)type && (sub < 0 || (int)DAT_GET_SUBTYPE(is) == sub) &&
	    (bare || is & DAT_CLASS_ERROR)) /* these may have no class: row_events.c, bare_types */
		return;
	dat_strerror(is, &major, &minor);
	ct_fail(ct, "line %d: %s is %s %s (0x%x), not 0x%x %d", line, call, major, minor, is, type, sub);
}

bool ct_progress(struct ct_ep *e)
{
	return false; /* the adapter has a thread */
}

void dt_sleep(int ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&t, NULL);
}

/* ---- objects --------------------------------------------------------------------------------- */

/* libdat2's own, either way; in none of its headers. */
DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE *out);

DAT_IA_HANDLE dt_own(const struct dt *d)
{
	DAT_IA_HANDLE own = DAT_HANDLE_NULL;

	DT_OK(d->ct, dats_get_ia_handle(d->ia, &own));
	return own;
}

DAT_EVD_HANDLE dt_evd(struct dt *d, DAT_COUNT qlen, DAT_CNO_HANDLE cno, DAT_EVD_FLAGS flags)
{
	DAT_EVD_HANDLE evd;

	DT_OK(d->ct, dat_evd_create(d->ia, qlen, cno, flags, &evd));
	return evd;
}

DAT_EVD_HANDLE dt_open_software(struct ct *ct, struct dt *d)
{
	dt_open(ct, d, NULL);
	return dt_evd(d, 8, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG);
}

DAT_EP_ATTR dt_attr(const struct dt *d)
{
	DAT_COUNT dtos = d->want.dtos ? d->want.dtos : 64;

	return (DAT_EP_ATTR){ .service_type = DAT_SERVICE_TYPE_RC,
			      .max_message_size = 1 << 20,
			      .max_rdma_size = 1 << 20,
			      .qos = DAT_QOS_BEST_EFFORT,
			      .recv_completion_flags = d->want.recv_flags,
			      .request_completion_flags = d->want.request_flags,
			      .max_recv_dtos = dtos,
			      .max_request_dtos = dtos,
			      .max_recv_iov = 4,
			      .max_request_iov = 4,
			      .max_rdma_read_in = 8,
			      .max_rdma_read_out = 8,
			      .srq_soft_hw = DAT_HW_DEFAULT,
			      .max_rdma_read_iov = 4,
			      .max_rdma_write_iov = 4 };
}

DAT_EP_HANDLE dt_ep(struct dt *d)
{
	DAT_EP_ATTR attr = dt_attr(d);
	DAT_EP_HANDLE ep;

	if (d->srq)
		DT_OK(d->ct, dat_ep_create_with_srq(d->ia, d->pz, d->recv, d->request, d->connect, d->srq,
						    &attr, &ep));
	else
		DT_OK(d->ct, dat_ep_create(d->ia, d->pz, d->recv, d->request, d->connect, &attr, &ep));
	return ep;
}

static void open_memory(struct dt *d)
{
	DAT_REGION_DESCRIPTION region;
	DAT_VLEN len;
	DAT_VADDR at;

	if (!d->want.size)
		d->want.size = DT_SIZE;
	d->buf = aligned_alloc(4096, d->want.size);
	CT_TRUE(d->ct, d->buf);
	memset(d->buf, 0, d->want.size);
	region.for_va = d->buf;
	DT_OK(d->ct, dat_lmr_create(d->ia, DAT_MEM_TYPE_VIRTUAL, region, d->want.size, d->pz, DT_PRIVILEGES,
				    DAT_VA_TYPE_VA, &d->lmr, &d->local, &d->remote, &len, &at));
	CT_TRUE(d->ct, len >= d->want.size && at <= (uintptr_t)d->buf);
}

void dt_open(struct ct *ct, struct dt *d, const struct dt_want *want)
{
	DAT_IA_ATTR attr;
	DAT_COUNT evd = want && want->evd ? want->evd : 1024;

	*d = (struct dt){ .ct = ct };
	if (want)
		d->want = *want;
	DT_OK(ct, dat_ia_openv((DAT_NAME_PTR)ct->conf->provider, 8, &d->async, &d->ia, DAT_VERSION_MAJOR,
			       DAT_VERSION_MINOR, DAT_TRUE));
	DT_OK(ct, dat_ia_query(d->ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	d->addr = attr.ia_address_ptr;
	DT_OK(ct, dat_pz_create(d->ia, &d->pz));
	d->recv = dt_evd(d, evd, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG);
	d->request =
		dt_evd(d, evd, DAT_HANDLE_NULL, (DAT_EVD_FLAGS)(DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG));
	d->connect = dt_evd(d, evd, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG);
	d->cr = dt_evd(d, evd, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG);
	open_memory(d);
	if (d->want.srq) {
		DAT_SRQ_ATTR srq = { d->want.srq_dtos ? d->want.srq_dtos : 64, 4, DAT_SRQ_LW_DEFAULT };

		DT_OK(ct, dat_srq_create(d->ia, d->pz, &srq, &d->srq));
	}
	d->ep = dt_ep(d);
}

void dt_close(struct dt *d)
{
	struct ct *ct = d->ct;

	if (d->ep)
		DT_OK(ct, dat_ep_free(d->ep));
	if (d->srq)
		DT_OK(ct, dat_srq_free(d->srq));
	DT_OK(ct, dat_lmr_free(d->lmr));
	DT_OK(ct, dat_evd_free(d->recv));
	DT_OK(ct, dat_evd_free(d->request));
	DT_OK(ct, dat_evd_free(d->connect));
	DT_OK(ct, dat_evd_free(d->cr));
	DT_OK(ct, dat_pz_free(d->pz));
	DT_OK(ct, dat_ia_close(d->ia, DAT_CLOSE_GRACEFUL_FLAG));
	free(d->buf);
}

/* ---- connections ----------------------------------------------------------------------------- */

DAT_CONN_QUAL dt_qualifier(void)
{
	static DAT_CONN_QUAL next;

	return 0x1000000 + (DAT_CONN_QUAL)getpid() * 4096 + next++;
}

void dt_call(struct dt *a, DAT_EP_HANDLE ep, const struct dt *b, DAT_CONN_QUAL q)
{
	DT_OK(a->ct, dat_ep_connect(ep, b->addr, q, DT_FOREVER, 0, NULL, DAT_QOS_BEST_EFFORT,
				    DAT_CONNECT_DEFAULT_FLAG));
}

DAT_CR_HANDLE dt_request(struct dt *b)
{
	return dt_event(b, b->cr, DAT_CONNECTION_REQUEST_EVENT).event_data.cr_arrival_event_data.cr_handle;
}

void dt_join(struct dt *a, DAT_EP_HANDLE from, struct dt *b, DAT_EP_HANDLE to)
{
	DAT_CONN_QUAL q = dt_qualifier();
	DAT_PSP_HANDLE psp;

	DT_OK(b->ct, dat_psp_create(b->ia, q, b->cr, DAT_PSP_CONSUMER_FLAG, &psp));
	dt_call(a, from, b, q);
	DT_OK(b->ct, dat_cr_accept(dt_request(b), to, 0, NULL));
	dt_conn(a, from, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_conn(b, to, DAT_CONNECTION_EVENT_ESTABLISHED);
	DT_OK(b->ct, dat_psp_free(psp));
}

void dt_part(struct dt *a, DAT_EP_HANDLE from, struct dt *b, DAT_EP_HANDLE to)
{
	DT_OK(a->ct, dat_ep_disconnect(from, DAT_CLOSE_ABRUPT_FLAG));
	dt_conn(a, from, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_conn(b, to, DAT_CONNECTION_EVENT_DISCONNECTED);
}

void dt_pair_make(struct ct *ct, struct dt_pair *p)
{
	dt_open(ct, &p->a, NULL);
	dt_open(ct, &p->b, NULL);
}

void dt_pair_open(struct ct *ct, struct dt_pair *p, const struct dt_want *want)
{
	struct dt_want caller = want ? *want : (struct dt_want){ 0 };

	caller.srq = false;
	dt_open(ct, &p->a, &caller);
	dt_open(ct, &p->b, want);
	dt_join(&p->a, p->a.ep, &p->b, p->b.ep);
}

void dt_pair_close(struct dt_pair *p)
{
	dt_close(&p->a);
	dt_close(&p->b);
}

DAT_EP_STATE dt_state(struct dt *d, DAT_EP_HANDLE ep)
{
	DAT_EP_STATE state = DAT_EP_STATE_CONNECTED_MULTI_PATH;
	DAT_BOOLEAN recv, request;

	DT_OK(d->ct, dat_ep_get_status(ep, &state, &recv, &request));
	return state;
}

/* ---- work ------------------------------------------------------------------------------------ */

DAT_DTO_COOKIE dt_cookie(uint64_t n)
{
	return (DAT_DTO_COOKIE){ .as_64 = n };
}

DAT_LMR_TRIPLET dt_seg(const struct dt *d, size_t at, DAT_SEG_LENGTH len)
{
	return (DAT_LMR_TRIPLET){ (uintptr_t)d->buf + at, len, d->local };
}

void dt_recv(struct dt *d, DAT_EP_HANDLE ep, size_t at, DAT_SEG_LENGTH len, uint64_t cookie)
{
	DAT_LMR_TRIPLET seg = dt_seg(d, at, len);

	DT_OK(d->ct, dat_ep_post_recv(ep, 1, &seg, dt_cookie(cookie), DAT_COMPLETION_DEFAULT_FLAG));
}

void dt_srq_recv(struct dt *d, size_t at, DAT_SEG_LENGTH len, uint64_t cookie)
{
	DAT_LMR_TRIPLET seg = dt_seg(d, at, len);

	DT_OK(d->ct, dat_srq_post_recv(d->srq, 1, &seg, dt_cookie(cookie)));
}

void dt_send(struct dt *d, DAT_EP_HANDLE ep, size_t at, DAT_SEG_LENGTH len, uint64_t cookie,
	     DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET seg = dt_seg(d, at, len);

	DT_OK(d->ct, dat_ep_post_send(ep, 1, &seg, dt_cookie(cookie), flags));
}

void dt_write(struct dt *d, size_t at, const DAT_RMR_TRIPLET *to, uint64_t cookie)
{
	DAT_LMR_TRIPLET seg = dt_seg(d, at, to->segment_length);

	DT_OK(d->ct, dat_ep_post_rdma_write(d->ep, 1, &seg, dt_cookie(cookie), (DAT_RMR_TRIPLET *)to,
					    DAT_COMPLETION_DEFAULT_FLAG));
}

void dt_read(struct dt *d, size_t at, const DAT_RMR_TRIPLET *from, uint64_t cookie)
{
	DAT_LMR_TRIPLET seg = dt_seg(d, at, from->segment_length);

	DT_OK(d->ct, dat_ep_post_rdma_read(d->ep, 1, &seg, dt_cookie(cookie), (DAT_RMR_TRIPLET *)from,
					   DAT_COMPLETION_DEFAULT_FLAG));
}

/* ---- events ---------------------------------------------------------------------------------- */

DAT_EVENT dt_any(struct dt *d, DAT_EVD_HANDLE evd)
{
	DAT_COUNT more;
	DAT_EVENT event;

	DT_OK(d->ct, dat_evd_wait(evd, (DAT_TIMEOUT)(DT_FOREVER * d->ct->conf->scale), 1, &event, &more));
	CT_TRUE(d->ct, event.evd_handle == evd);
	return event;
}

DAT_EVENT dt_event(struct dt *d, DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number)
{
	DAT_EVENT event = dt_any(d, evd);

	CT_EQ(d->ct, event.event_number, number);
	return event;
}

DAT_SEG_LENGTH dt_dto(struct dt *d, DAT_EVD_HANDLE evd, DAT_EP_HANDLE ep, uint64_t cookie,
		      DAT_DTO_COMPLETION_STATUS status)
{
	DAT_EVENT event = dt_event(d, evd, DAT_DTO_COMPLETION_EVENT);
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event.event_data.dto_completion_event_data;

	CT_EQ(d->ct, dto->user_cookie.as_64, cookie);
	CT_EQ(d->ct, dto->status, status);
	CT_TRUE(d->ct, dto->ep_handle == ep);
	return dto->transfered_length;
}

DAT_EVENT dt_conn(struct dt *d, DAT_EP_HANDLE ep, DAT_EVENT_NUMBER number)
{
	DAT_EVENT event = dt_event(d, d->connect, number);

	CT_TRUE(d->ct, event.event_data.connect_event_data.ep_handle == ep);
	return event;
}

void dt_ended(struct dt *d, DAT_EP_HANDLE ep)
{
	DAT_EVENT event = dt_any(d, d->connect);

	CT_TRUE(d->ct, event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED ||
			       event.event_number == DAT_CONNECTION_EVENT_BROKEN);
	CT_TRUE(d->ct, event.event_data.connect_event_data.ep_handle == ep);
	CT_EQ(d->ct, dt_state(d, ep), DAT_EP_STATE_DISCONNECTED);
}

void dt_pair_ended(struct dt_pair *p)
{
	dt_ended(&p->a, p->a.ep);
	dt_ended(&p->b, p->b.ep);
}

void dt_turned_away(struct dt *d, DAT_EP_HANDLE ep, DAT_EVENT_NUMBER number)
{
	dt_conn(d, ep, number);
	CT_EQ(d->ct, dt_state(d, ep), DAT_EP_STATE_DISCONNECTED);
	DT_OK(d->ct, dat_ep_reset(ep));
}

void dt_quiet(struct dt *d, DAT_EVD_HANDLE evd, int ms, const char *what)
{
	DAT_EVENT event;
	DAT_COUNT more;
	DAT_RETURN rc = dat_evd_wait(evd, (DAT_TIMEOUT)ms * 1000, 1, &event, &more);

	if (DAT_GET_TYPE(rc) != DAT_TIMEOUT_EXPIRED)
		ct_fail(d->ct, "%s: 0x%x, event 0x%x", what, rc, event.event_number);
}

/* ---- waiting in a thread --------------------------------------------------------------------- */

static void *wait_there(void *arg)
{
	struct dt_waiter *w = arg;

	w->tid = gettid();
	w->rc = dat_evd_wait(w->evd, DAT_TIMEOUT_INFINITE, w->threshold, &w->event, &w->more);
	w->done = true;
	return NULL;
}

void dt_waiter_start(struct dt *d, struct dt_waiter *w, DAT_EVD_HANDLE evd, DAT_COUNT threshold)
{
	double end = ct_deadline(d->ct);
	DAT_EVENT event;

	*w = (struct dt_waiter){ .evd = evd, .threshold = threshold };
	CT_EQ(d->ct, pthread_create(&w->thread, NULL, wait_there, w), 0);
	while (DAT_GET_TYPE(dat_evd_dequeue(evd, &event)) != DAT_INVALID_STATE) {
		ct_late(d->ct, end, "a thread to wait");
		dt_sleep(1);
	}
	ct_let_sleep(w->tid);
	CT_TRUE(d->ct, !w->done);
}

/* That somebody sleeps on is told by nothing else than time. */
void dt_waits_on(struct ct *ct, const _Atomic bool *done)
{
	dt_sleep(50);
	CT_TRUE(ct, !*done);
}

void dt_waiter_join(struct dt *d, struct dt_waiter *w)
{
	double end = ct_deadline(d->ct);

	while (!w->done) {
		ct_late(d->ct, end, "a waiting thread to return");
		dt_sleep(1);
	}
	CT_EQ(d->ct, pthread_join(w->thread, NULL), 0);
}

void dt_waiter_ok(struct dt *d, struct dt_waiter *w)
{
	dt_waiter_join(d, w);
	DT_OK(d->ct, w->rc);
}
