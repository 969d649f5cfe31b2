/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Services, connections and event queues check themselves in builds with assertions: hd_node_check
 * sees when what one keeps is wrong.
 */
#include "engine/cm/cm.h"
#include "engine/node/turn.h"
#include "engine/test/test_noticed.h"
#include "engine/test/test_rig.h"

/* ---- a caller has asked, and the program has not read of it ---------------------------------- */

static struct hd_request *request(struct rig *r)
{
	return LIST_FIRST(&r->service->requests);
}

static void asked(struct rig *r)
{
	call(r, "who is there");
	while (!hd_evq_has(r->eb))
		settle(r, 1);
	assert_int_equal(r->a.ep->conn->state, HD_CONN_ASKED);
}

static void request_is_lost(struct rig *r)
{
	r->service->pending++;
}

static void request_is_another_services(struct rig *r)
{
	static struct hd_service other;

	request(r)->service = &other;
}

static void request_is_nobodys(struct rig *r)
{
	request(r)->peer = NULL;
}

static void request_is_not_found(struct rig *r)
{
	hd_of_peer_leave(r->server, &request(r)->of_call);
}

static void name_is_of_another_service(struct rig *r)
{
	r->service->ep->service = NULL;
}

static void service_tells_elsewhere(struct rig *r)
{
	r->service->ep->evq = r->ea;
}

static void shut_one_listens(struct rig *r)
{
	r->service->ep = NULL;
}

static void event_is_lost(struct rig *r)
{
	r->eb->count++;
}

static void event_is_forgotten(struct rig *r)
{
	request(r)->unread = NULL;
}

static void queue_is_too_full(struct rig *r)
{
	r->eb->size = 0;
}

static void told(void *arg, const struct hd_event *event)
{
}

static void queue_is_told_and_read(struct rig *r)
{
	r->eb->tell = told;
}

static void hook_without_a_user(struct rig *r)
{
	TAILQ_FIRST(&r->eb->hooks)->users = 0;
}

static void users_are_miscounted(struct rig *r)
{
	r->eb->users = 0;
}

static void answer_is_owed_by_nobody(struct rig *r)
{
	struct hd_conn *c = r->a.ep->conn;

	hd_pending_leave(&c->asked);
	c->asked.peer = NULL;
}

static void has_not_asked(struct rig *r)
{
	r->a.ep->conn->state = HD_CONN_CALLING;
}

static void conn_is_another_endpoints(struct rig *r)
{
	r->a.ep->conn->ep = r->b.ep;
}

static void nobody_is_waited_for(struct rig *r)
{
	r->b.ep->conn->state = HD_CONN_ANSWERED;
}

static void private_data_is_too_long(struct rig *r)
{
	r->a.ep->conn->priv.len = HD_CM_PRIVATE + 1;
}

static void (*const wrong_asked[])(struct rig *r) = {
	request_is_lost,
	request_is_another_services,
	request_is_nobodys,
	request_is_not_found,
	name_is_of_another_service,
	service_tells_elsewhere,
	shut_one_listens,
	event_is_lost,
	event_is_forgotten,
	queue_is_too_full,
	queue_is_told_and_read,
	hook_without_a_user,
	users_are_miscounted,
	answer_is_owed_by_nobody,
	has_not_asked,
	conn_is_another_endpoints,
	nobody_is_waited_for,
	private_data_is_too_long,
};
#define WRONG_ASKED (sizeof(wrong_asked) / sizeof(*wrong_asked))

NOTICED_MAKE(make_wrong_asked, struct rig, wrong_asked)

/* ---- both are up ----------------------------------------------------------------------------- */

static void leads_elsewhere(struct rig *r)
{
	r->b.ep->to = hd_links(r->b.node)->nobody;
}

static void has_no_other_end(struct rig *r)
{
	r->a.ep->conn->dest = NULL;
	r->a.ep->to = NULL;
}

static void is_over_and_leads_on(struct rig *r)
{
	r->a.ep->conn->state = HD_CONN_OVER;
}

static void (*const wrong_up[])(struct rig *r) = {
	leads_elsewhere,
	has_no_other_end,
	is_over_and_leads_on,
};
#define WRONG_UP (sizeof(wrong_up) / sizeof(*wrong_up))

NOTICED_MAKE(make_wrong_up, struct rig, wrong_up)

/* ---- do they notice? ------------------------------------------------------------------------- */

static void each_is_noticed(void **state)
{
	EACH_TRANSPORT(t)
	{
		struct rig r;

		rig_open(&r, t);
		asked(&r);
		noticed_all(&(struct noticed){ &r,
					       { r.a.node, r.b.node, r.server },
					       hd_node_check,
					       make_wrong_asked,
					       WRONG_ASKED },
			    t);
		assert_int_equal(hd_ep_accept(r.b.ep, called(&r), NULL), 0);
		both_up(&r);
		noticed_all(
			&(struct noticed){
				&r, { r.a.node, r.b.node }, hd_node_check, make_wrong_up, WRONG_UP },
			t);
		rig_close(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_noticed),
	};

	return cmocka_run_group_tests_name("check_conn", tests, NULL, NULL);
}
