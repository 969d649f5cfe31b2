/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Event channels of rdma_cm(7): ids that migrate or go with events unread, readers,
 * and calls that are refused.
 */
#include "asleep.h"
#include "base/lock.h"
#include "front/verbs/cm/cm.h"
#include "front/verbs/cm/test_cm.h"

#include <setjmp.h>
#include <stdarg.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* ---- channels -------------------------------------------------------------------------------- */

static void ids_migrate(void **state)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct rdma_cm_id *b;
	struct rig r;

	cm_open(&r, RDMA_PS_TCP);
	r.a = cm_caller(&r);
	cm_call(&r, "");
	assert_false(cm_quiet(r.cb, PATIENCE_MS));
	assert_int_equal(rdma_migrate_id(r.listener, other), 0);
	assert_true(cm_quiet(r.cb, 0));
	rdma_destroy_event_channel(r.cb);
	r.cb = other;
	b = cm_asked(&r);
	assert_ptr_equal(b->channel, other);
	other = rdma_create_event_channel();
	assert_int_equal(rdma_migrate_id(r.a, other), 0);
	cm_answer(b, "");
	cm_expect(other, RDMA_CM_EVENT_CONNECT_RESPONSE, r.a, 0);
	assert_int_equal(rdma_migrate_id(r.a, NULL), 0); /* it waits from now on */
	rdma_destroy_event_channel(other);
	assert_int_equal(rdma_establish(r.a), 0);
	cm_expect(r.cb, RDMA_CM_EVENT_ESTABLISHED, b, 0);
	assert_int_equal(rdma_disconnect(r.a), 0);
	assert_int_equal(r.a->event->event, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_id(b);
	cm_close(&r);
}

static void *destroy(void *arg)
{
	rdma_destroy_id(arg);
	return NULL;
}

/* rdma_destroy_id waits until events have been acknowledged. */
static void events_hold_their_id(void **state)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *b;
	struct rig r;
	pthread_t t;

	cm_open(&r, RDMA_PS_TCP);
	b = cm_join(&r);
	assert_int_equal(rdma_disconnect(b), 0);
	e = cm_next(r.cb, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(pthread_create(&t, NULL, destroy, b), 0);
	let_others_sleep();
	assert_int_equal(pthread_tryjoin_np(t, NULL), EBUSY);
	assert_ptr_equal(e->id, b);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_int_equal(pthread_join(t, NULL), 0);
	cm_close(&r);
}

static ssize_t take_event(const struct hd_event *e, void *arg)
{
	struct hv_cm_event *ev = arg;

	ev->raw = *e;
	ev->raw.data = NULL;
	ev->len = e->len;
	memcpy(ev->data, e->data, e->len);
	ev->owner = e->owner;
	atomic_fetch_add(&ev->owner->unacked, 1);
	return 0;
}

/* Has the id no endpoint any more, and is the name that it listens at free? */
static bool has_left(struct hv_id *own)
{
	struct rdma_cm_id *other;
	bool left;

	hd_lock_take(&hv_cm_lock);
	left = !own->ep;
	hd_lock_give(&hv_cm_lock);
	if (!left || !own->listener)
		return left;
	assert_int_equal(rdma_create_id(own->pub.channel, &other, NULL, RDMA_PS_TCP), 0);
	left = !rdma_bind_addr(other, rdma_get_local_addr(&own->pub));
	assert_int_equal(rdma_destroy_id(other), 0);
	return left;
}

/*
 * A thread has got this event of the engine's, and before it knows what that means,
 * another destroys the id.
 */
static void read_while_it_goes(struct rdma_event_channel *ch, struct rdma_cm_id *id, struct hv_cm_event *ev,
			       pthread_t *thread)
{
	struct pollfd p = { .fd = ch->fd, .events = POLLIN };
	struct hv_id *own = hv_id_of(id);

	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_int_equal(hd_evq_read(hv_cm_channel_of(ch)->evq, 0, take_event, ev), 0);
	assert_ptr_equal(ev->owner, own);
	assert_int_equal(pthread_create(thread, NULL, destroy, id), 0);
	while (!has_left(own))
		usleep(100);
}

/* It is asked all the same, and the caller hears of its end. */
static void a_listener_goes_while_its_request_is_read(void **state)
{
	struct hv_cm_event ev = { .len = 0 };
	pthread_t thread;
	struct rig r;

	cm_open(&r, RDMA_PS_TCP);
	r.a = cm_caller(&r);
	cm_call(&r, "");
	read_while_it_goes(r.cb, r.listener, &ev, &thread);
	assert_true(hv_cm_event_make(&ev));
	assert_int_equal(ev.pub.event, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_ptr_equal(ev.pub.listen_id, r.listener);
	assert_int_equal(rdma_destroy_id(ev.pub.id), 0);
	hv_id_unpin(ev.owner);
	assert_int_equal(pthread_join(thread, NULL), 0);
	r.listener = NULL;
	cm_expect(r.ca, RDMA_CM_EVENT_REJECTED, r.a, HV_REJ_CONSUMER);
	cm_close(&r);
}

/* What it was told by then, it still is; here that it makes no sense. */
static void a_caller_goes_while_its_answer_is_read(void **state)
{
	struct rdma_conn_param p = { .qp_num = 1 };
	struct hv_cm_event ev = { .len = 0 };
	struct rdma_cm_id *id;
	pthread_t thread;
	struct rig r;

	cm_open(&r, RDMA_PS_TCP);
	r.a = cm_caller(&r);
	cm_call(&r, "");
	id = cm_asked(&r);
	assert_int_equal(rdma_accept(id, &p), 0);
	read_while_it_goes(r.ca, r.a, &ev, &thread);
	ev.len = 1;
	assert_true(hv_cm_event_make(&ev));
	assert_int_equal(ev.pub.event, RDMA_CM_EVENT_CONNECT_ERROR);
	hv_id_unpin(ev.owner);
	assert_int_equal(pthread_join(thread, NULL), 0);
	r.a = NULL;
	assert_int_equal(rdma_destroy_id(id), 0);
	cm_close(&r);
}

static void channels_can_be_set_not_to_block(void **state)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_event *e;

	assert_int_equal(fcntl(ch->fd, F_GETFL) & O_NONBLOCK, 0);
	assert_int_equal(fcntl(ch->fd, F_SETFL, fcntl(ch->fd, F_GETFL) | O_NONBLOCK), 0);
	assert_int_equal(rdma_get_cm_event(ch, &e), -1);
	assert_int_equal(errno, EAGAIN);
	rdma_destroy_event_channel(ch);
}

/*
 * Where nothing is to be read before, the end of a connection comes at once; who waits
 * for edges is told of it.
 */
static void the_end_is_an_edge(void **state)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	int set = epoll_create1(EPOLL_CLOEXEC);
	struct rdma_cm_id *b;
	struct rig r;

	cm_open(&r, RDMA_PS_TCP);
	b = cm_join(&r);
	assert_int_equal(fcntl(r.cb->fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, r.cb->fd, &ev), 0);
	assert_int_equal(rdma_disconnect(r.a), 0);
	assert_int_equal(epoll_wait(set, &ev, 1, PATIENCE_MS), 1);
	cm_expect(r.cb, RDMA_CM_EVENT_DISCONNECTED, b, 0);
	assert_int_equal(epoll_wait(set, &ev, 1, 0), 0);
	assert_int_equal(rdma_destroy_id(b), 0);
	close(set);
	cm_close(&r);
}

/* ---- bad input ------------------------------------------------------------------------------- */

#define FAILS(code, ...) \
	do { \
		errno = 0; \
		assert_int_equal(__VA_ARGS__, -1); \
		assert_int_equal(errno, code); \
	} while (0)

static void bad_input(void **state)
{
	struct sockaddr_in nowhere = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x08080808) };
	struct rdma_conn_param p = { .private_data = "", .private_data_len = 57 };
	struct rdma_cm_id *id, *again;
	struct rig r;

	cm_open(&r, RDMA_PS_TCP);
	FAILS(EINVAL, rdma_create_id(r.ca, &id, NULL, 77));
	FAILS(EINVAL, rdma_bind_addr(r.listener, cm_name(&r)));
	assert_int_equal(rdma_create_id(r.ca, &id, NULL, RDMA_PS_TCP), 0);
	FAILS(EADDRINUSE, rdma_bind_addr(id, cm_name(&r)));
	FAILS(EADDRNOTAVAIL, rdma_bind_addr(id, (struct sockaddr *)&nowhere));
	FAILS(EINVAL, rdma_bind_addr(id, &(struct sockaddr){ .sa_family = AF_UNIX }));
	FAILS(EINVAL, rdma_resolve_route(id, 100));
	FAILS(EINVAL, rdma_connect(id, NULL));
	FAILS(EINVAL, rdma_accept(id, NULL));
	FAILS(EINVAL, rdma_reject(id, NULL, 0));
	FAILS(EINVAL, rdma_disconnect(id));
	FAILS(EINVAL, rdma_establish(id));
	FAILS(EINVAL, rdma_get_request(r.listener, &again));
	FAILS(EINVAL, rdma_notify(id, IBV_EVENT_QP_FATAL));
	FAILS(EINVAL, rdma_init_qp_attr(id, &(struct ibv_qp_attr){ 0 }, &(int){ 0 }));
	FAILS(ENOSYS, rdma_set_option(id, RDMA_OPTION_ID, 99, &(int){ 1 }, sizeof(int)));
	FAILS(EINVAL, rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &(int){ 1 }, sizeof(int)));
	FAILS(EINVAL, rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &(uint8_t){ 32 }, 1));
	assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &(uint8_t){ 20 }, 1),
			 0);
	assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &(uint8_t){ 20 }, 1), 0);
	rdma_destroy_id(id);
	r.a = cm_caller(&r);
	FAILS(EINVAL, rdma_connect(r.a, &p));
	p = (struct rdma_conn_param){ .private_data = NULL, .private_data_len = 3 };
	FAILS(EINVAL, rdma_connect(r.a, &p));
	p = (struct rdma_conn_param){ .responder_resources = 254 };
	FAILS(EINVAL, rdma_connect(r.a, &p));
	cm_call(&r, "");
	rdma_destroy_id(cm_asked(&r));
	cm_expect(r.ca, RDMA_CM_EVENT_REJECTED, r.a, HV_REJ_CONSUMER);
	assert_string_equal(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT), "RDMA_CM_EVENT_TIMEWAIT_EXIT");
	assert_string_equal(rdma_event_str(77), "UNKNOWN EVENT");
	cm_close(&r);
}

#ifndef __SANITIZE_ADDRESS__ /* it cannot unwind a thread that is cancelled */
static void *read_events(void *arg)
{
	struct rdma_cm_event *event;

	rdma_get_cm_event(arg, &event);
	fail(); /* not even with an error: read(2) would not come back either */
	return NULL;
}

/*
 * A thread that waits for events of a channel, or begins to when that is destroyed, waits for ever.
 */
static void a_channel_is_destroyed_under_a_reader(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct rdma_event_channel *channel = rdma_create_event_channel();
		pthread_t thread;
		void *end;

		assert_non_null(channel);
		if (i)
			rdma_destroy_event_channel(channel);
		assert_int_equal(pthread_create(&thread, NULL, read_events, channel), 0);
		let_others_sleep();
		if (!i)
			rdma_destroy_event_channel(channel);
		let_others_sleep();
		assert_int_equal(pthread_cancel(thread), 0);
		assert_int_equal(pthread_join(thread, &end), 0);
		assert_ptr_equal(end, PTHREAD_CANCELED);
	}
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_migrate),
		cmocka_unit_test(events_hold_their_id),
		cmocka_unit_test(a_listener_goes_while_its_request_is_read),
		cmocka_unit_test(a_caller_goes_while_its_answer_is_read),
		cmocka_unit_test(channels_can_be_set_not_to_block),
		cmocka_unit_test(the_end_is_an_edge),
		cmocka_unit_test(bad_input),
#ifndef __SANITIZE_ADDRESS__
		cmocka_unit_test(a_channel_is_destroyed_under_a_reader),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
