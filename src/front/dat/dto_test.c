/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * How transfers end that end so with no other provider of ours at the other end: another one's
 * receiver may be found not ready.
 */
#include "front/dat/connect.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <netinet/in.h>

#define PATIENCE (30 * HD_NS_PER_S)

struct party {
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE async, requests, connections, dtos;
	DAT_EP_HANDLE ep;
};

static void party_open(struct party *p)
{
	static const DAT_PROVIDER provider;
	const DAT_EVD_FLAGS flags[] = { DAT_EVD_CR_FLAG, DAT_EVD_CONNECTION_FLAG, DAT_EVD_DTO_FLAG };
	DAT_EVD_HANDLE *evds[] = { &p->requests, &p->connections, &p->dtos };

	*p = (struct party){ 0 };
	assert_int_equal(hu_ia_open_by(&provider, true, "heddle", 8, &p->async, &p->ia), DAT_SUCCESS);
	assert_int_equal(hu_pz_create(p->ia, &p->pz), DAT_SUCCESS);
	for (int i = 0; i < 3; i++)
		assert_int_equal(hu_evd_create(p->ia, 64, DAT_HANDLE_NULL, flags[i], evds[i]), DAT_SUCCESS);
	assert_int_equal(hu_ep_create(p->ia, p->pz, p->dtos, p->dtos, p->connections, NULL, &p->ep),
			 DAT_SUCCESS);
}

static DAT_EVENT next(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number)
{
	uint64_t end = hd_now_ns() + PATIENCE;
	DAT_EVENT e;

	while (hu_evd_dequeue(evd, &e))
		assert_true(hd_now_ns() < end);
	assert_int_equal(e.event_number, number);
	return e;
}

static void join(struct party *a, struct party *b)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	DAT_CONN_QUAL qualifier;
	DAT_PSP_HANDLE psp;
	DAT_EVENT e;

	assert_int_equal(hu_psp_create_any(b->ia, &qualifier, b->requests, DAT_PSP_CONSUMER_FLAG, &psp),
			 DAT_SUCCESS);
	assert_int_equal(hu_ep_connect(a->ep, (DAT_IA_ADDRESS_PTR)&to, qualifier, DAT_TIMEOUT_INFINITE, 0,
				       NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
			 DAT_SUCCESS);
	e = next(b->requests, DAT_CONNECTION_REQUEST_EVENT);
	assert_int_equal(hu_cr_accept(e.event_data.cr_arrival_event_data.cr_handle, b->ep, 0, NULL),
			 DAT_SUCCESS);
	next(a->connections, DAT_CONNECTION_EVENT_ESTABLISHED);
	next(b->connections, DAT_CONNECTION_EVENT_ESTABLISHED);
	assert_int_equal(hu_psp_free(psp), DAT_SUCCESS);
}

/* Ours asks without end; a message of one that does not is told of as its receiver says it. */
static void a_receiver_that_is_not_ready(void **state)
{
	const struct hd_qp_attr impatient = { .rnr_timer_us = 10000, .rnr_retry = 0 };
	struct party a, b;
	struct hu_ep *ep;
	DAT_EVENT e;

	party_open(&a);
	party_open(&b);
	join(&a, &b);
	ep = (struct hu_ep *)a.ep;
	hd_node_lock(ep->o.ia->node);
	hd_ep_pair_tune(ep->ep, &impatient);
	hd_node_unlock(ep->o.ia->node);
	assert_int_equal(hu_ep_post_send(a.ep, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = 7 },
					 DAT_COMPLETION_DEFAULT_FLAG),
			 DAT_SUCCESS);
	e = next(a.dtos, DAT_DTO_COMPLETION_EVENT);
	assert_int_equal(e.event_data.dto_completion_event_data.status, DAT_DTO_ERR_RECEIVER_NOT_READY);
	assert_int_equal(e.event_data.dto_completion_event_data.user_cookie.as_64, 7);
	assert_int_equal(hu_ia_close(a.ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	assert_int_equal(hu_ia_close(b.ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_receiver_that_is_not_ready),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
