/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Service points, and callers who speak the engine's language but not uDAPL's. */
#include "front/dat/connect.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#define PATIENCE (30 * HD_NS_PER_S)

struct rig {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async, evd;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qualifier;
	struct hd_node *node; /* of the callers */
	struct hd_evq *evq;
};

static void rig_open(struct rig *r)
{
	static const DAT_PROVIDER provider;

	r->async = DAT_HANDLE_NULL;
	assert_int_equal(hu_ia_open_by(&provider, false, "heddle", 8, &r->async, &r->ia), DAT_SUCCESS);
	assert_int_equal(hu_evd_create(r->ia, 64, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &r->evd), DAT_SUCCESS);
	assert_int_equal(hu_psp_create_any(r->ia, &r->qualifier, r->evd, DAT_PSP_CONSUMER_FLAG, &r->psp),
			 DAT_SUCCESS);
	assert_int_equal(hd_node_open(&(struct hd_node_attr){ .front = "test" }, &r->node), 0);
	assert_int_equal(hd_evq_open(64, &r->evq), 0);
}

static void rig_close(struct rig *r)
{
	assert_int_equal(hd_node_close(r->node), 0);
	assert_int_equal(hd_evq_close(r->evq), 0);
	assert_int_equal(hu_ia_close(r->ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
}

static struct hd_ep *call(struct rig *r, const void *data, size_t len)
{
	const struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct hd_ep_attr attr = { .type = HD_EP_MSG, .evq = r->evq };
	const struct hd_connect_args args = { .to = (const struct sockaddr *)&to,
					      .space = HU_SPACE,
					      .number = r->qualifier,
					      .data = { data, len, 0 } };
	struct hd_ep *ep;

	assert_int_equal(hd_ep_open(r->node, &attr, &ep), 0);
	assert_int_equal(hd_ep_connect(ep, &args), 0);
	return ep;
}

static ssize_t take(const struct hd_event *e, void *arg)
{
	*(int *)arg = e->code == HD_EV_UP ? e->err : -1;
	return 0;
}

/*
 * What the caller is told; EAGAIN: nothing for as long as `ns`. The program makes progress
 * meanwhile, and hears of nothing.
 */
static int answer(struct rig *r, uint64_t ns)
{
	uint64_t end = hd_now_ns() + ns;
	DAT_EVENT event;
	int err;

	while (hd_now_ns() < end) {
		hd_node_poll(r->node);
		assert_int_not_equal(hu_evd_dequeue(r->evd, &event), DAT_SUCCESS);
		if (!hd_evq_read(r->evq, HD_EVQ_ERROR, take, &err))
			return err;
	}
	return EAGAIN;
}

/* Nobody else would answer him, and he would keep the place of another who calls. */
static void strangers_are_turned_away(void **state)
{
	char words[HD_CM_DATA];
	struct hu_head lie = { .private_size = sizeof(words) };
	struct rig r;

	rig_open(&r);
	memset(words, 0xff, sizeof(words));
	for (size_t i = 0; i < 4; i++) {
		const struct {
			const void *data;
			size_t len;
		} what[] = { { NULL, 0 }, { words, 1 }, { words, sizeof(words) }, { &lie, sizeof(lie) } };
		struct hd_ep *ep = call(&r, what[i].data, what[i].len);

		assert_int_equal(answer(&r, PATIENCE), ECONNREFUSED);
		hd_ep_close(ep);
	}
	rig_close(&r);
}

/* Those who are right are told of, and wait for the program. */
static void callers_wait(void **state)
{
	const struct hu_head head = { .number = 77 };
	DAT_EVENT event = { .event_number = 0 };
	struct hd_ep *ep;
	struct rig r;
	DAT_COUNT more;

	rig_open(&r);
	ep = call(&r, &head, sizeof(head));
	while (hu_evd_dequeue(r.evd, &event))
		hd_node_poll(r.node);
	assert_int_equal(event.event_number, DAT_CONNECTION_REQUEST_EVENT);
	assert_int_equal(answer(&r, 20 * HD_NS_PER_MS), EAGAIN);
	assert_int_equal(hu_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL),
			 DAT_SUCCESS);
	assert_int_equal(answer(&r, PATIENCE), ECONNREFUSED);
	assert_int_not_equal(hu_evd_wait(r.evd, 1000, 1, &event, &more), DAT_SUCCESS);
	hd_ep_close(ep);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strangers_are_turned_away),
		cmocka_unit_test(callers_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
