/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "engine/test/test_worker.h"

#include "engine/test/test_pair.h"

#include <stdlib.h>

const struct hd_node_attr node_locked = { .front = "test", .locked = true };
const struct hd_node_attr node_alone = { .front = "test" };
const struct hd_node_attr node_automatic = { .front = "test", .auto_progress = true };

void worker_start(struct worker *w, void *(*fn)(void *))
{
	assert_int_equal(pthread_create(&w->thread, NULL, fn, w), 0);
}

void worker_finish(struct worker *w)
{
	assert_int_equal(pthread_join(w->thread, NULL), 0);
	assert_int_equal(w->wrong, 0);
	assert_in_range(w->asleep_ns, 0, WAIT_MS / 2 * HD_NS_PER_MS);
}

int worker_asleep(struct worker *w)
{
	uint64_t begin = hd_now_ns();
	int rc = hd_cq_wait(w->s.cq, 1, WAIT_MS);

	if (hd_now_ns() - begin > w->asleep_ns)
		w->asleep_ns = hd_now_ns() - begin;
	return rc;
}

void worker_open(struct worker *w, struct hd_node *node)
{
	w->s.node = node;
	hd_node_lock(node);
	assert_int_equal(hd_cq_open(node, &(struct hd_cq_attr){ .size = 64, .waitable = true }, &w->s.cq), 0);
	assert_int_equal(
		hd_ep_open(node,
			   &(struct hd_ep_attr){ .type = HD_EP_RDM, .tx_cq = w->s.cq, .rx_cq = w->s.cq },
			   &w->s.ep),
		0);
	hd_node_unlock(node);
	w->out = malloc(LONGEST);
	w->in = malloc(LONGEST);
}

void worker_close(struct worker *w)
{
	hd_node_lock(w->s.node);
	if (w->s.to)
		hd_dest_put(w->s.to);
	hd_ep_close(w->s.ep);
	assert_int_equal(hd_cq_close(w->s.cq), 0);
	hd_node_unlock(w->s.node);
	free(w->out);
	free(w->in);
}

bool worker_await(struct worker *w, struct hd_cqe *out)
{
	const struct hd_cqe *e;

	for (;;) {
		hd_node_lock(w->s.node);
		e = hd_cq_peek(w->s.cq);
		if (e) {
			*out = *e;
			hd_cq_pop(w->s.cq);
		}
		hd_node_unlock(w->s.node);
		if (e)
			return !out->err;
		if (worker_asleep(w) < 0)
			return false;
	}
}

int worker_post(struct worker *w)
{
	struct iovec iov = { w->in, LONGEST };
	struct hd_recv_args args = {
		.iov = &iov, .count = 1, .flags = HD_RECV_TAGGED | HD_RECV_COMPLETE, .tag = 1
	};
	int rc;

	hd_node_lock(w->s.node);
	rc = hd_recv(w->s.ep, &args);
	hd_node_unlock(w->s.node);
	return rc;
}
