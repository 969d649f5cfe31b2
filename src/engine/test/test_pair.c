/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "engine/test/test_pair.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const test_transports[2] = { "shm", "tcp" };

void side_open_with(struct side *s, const struct hd_node_attr *attr)
{
	s->to = NULL;
	s->ep = NULL;
	assert_int_equal(hd_node_open(attr, &s->node), 0);
	hd_node_lock(s->node);
	assert_int_equal(hd_cq_open(s->node, &(struct hd_cq_attr){ .size = 256, .waitable = true }, &s->cq),
			 0);
	side_endpoint(s, HD_EP_RDM);
	hd_node_unlock(s->node);
}

void side_endpoint(struct side *s, enum hd_ep_type type)
{
	if (s->ep)
		hd_ep_close(s->ep);
	assert_int_equal(hd_ep_open(s->node,
				    &(struct hd_ep_attr){ .type = type,
							  .policy = HD_EP_DIRECTED,
							  .tx_cq = s->cq,
							  .rx_cq = s->cq,
							  .min_multi_recv = 64 },
				    &s->ep),
			 0);
}

struct hd_mr *side_region(struct side *s, uint64_t key, void *at, size_t len, uint32_t access, uint32_t flags)
{
	struct iovec iov = { at, len };
	struct hd_mr_attr attr = {
		.iov = &iov, .count = 1, .access = access, .flags = HD_MR_KEY | flags, .key = key
	};
	struct hd_mr *mr;

	assert_int_equal(hd_mr_open(s->node, &attr, &mr), 0);
	return mr;
}

void side_open(struct side *s)
{
	side_open_with(s, &(struct hd_node_attr){ .front = "test" });
}

void side_close(struct side *s)
{
	hd_node_lock(s->node);
	if (s->to)
		hd_dest_put(s->to);
	hd_ep_close(s->ep);
	assert_int_equal(hd_cq_close(s->cq), 0);
	hd_node_unlock(s->node);
	assert_int_equal(hd_node_close(s->node), 0);
}

void side_keys(struct side *s, const uint64_t *keys, uint32_t count, enum hd_ep_type type)
{
	const struct hd_ep_attr attr = { .type = type,
					 .policy = HD_EP_DIRECTED | (count > 1 ? HD_EP_BY_KEY : 0) |
						   HD_EP_REMOTE_READ | HD_EP_REMOTE_WRITE,
					 .tx_cq = s->cq,
					 .rx_cq = s->cq,
					 .keys = keys,
					 .key_count = count };

	hd_ep_close(s->ep);
	assert_int_equal(hd_ep_open(s->node, &attr, &s->ep), 0);
}

uint32_t side_number(const struct side *s, uint32_t src, unsigned i)
{
	struct hd_source_walk walk = { 0 };
	uint32_t number;

	do
		number = hd_source_next(s->node, src, &walk);
	while (number && i--);
	return number;
}

bool side_poll(struct side *s)
{
	bool there;

	hd_node_lock(s->node);
	there = hd_cq_poll(s->cq) != NULL;
	if (there)
		hd_cq_pop(s->cq);
	hd_node_unlock(s->node);
	if (!there)
		hd_node_rest(s->node);
	return there;
}

void side_names(struct side *s, struct side *other)
{
	struct sockaddr_storage name;

	hd_node_lock(s->node);
	assert_int_equal(hd_ep_name(other->ep, AF_UNSPEC, &name), 0);
	assert_int_equal(hd_dest_get(s->node, (void *)&name, &s->to), 0);
	hd_node_unlock(s->node);
}

void pair_open(struct pair *p, const char *transport)
{
	memset(p, 0, sizeof(*p));
	setenv("HEDDLE_TRANSPORT", transport, 1);
	side_open(&p->a);
	side_open(&p->b);
	side_names(&p->a, &p->b);
	side_names(&p->b, &p->a);
}

void pair_close(struct pair *p)
{
	side_close(&p->a);
	side_close(&p->b);
	unsetenv("HEDDLE_TRANSPORT");
}

int pair_atomic_to(struct pair *p, struct hd_dest *to, const struct hd_atomic_args *args)
{
	uint64_t end = hd_now_ns() + PATIENCE;
	int rc;

	while ((rc = hd_atomic(p->a.ep, to, args)) == -EAGAIN) {
		hd_node_poll(p->a.node);
		hd_node_poll(p->b.node);
		assert_true(hd_now_ns() < end);
	}
	return rc;
}

int pair_atomic(struct pair *p, const struct hd_atomic_args *args)
{
	return pair_atomic_to(p, p->a.to, args);
}

struct hd_cqe pair_next(struct pair *p, struct side *s)
{
	uint64_t end = hd_now_ns() + PATIENCE;
	const struct hd_cqe *e;
	struct hd_cqe copy;

	while (!(e = hd_cq_peek(s->cq))) {
		hd_node_poll(p->a.node);
		hd_node_poll(p->b.node);
		assert_true(hd_now_ns() < end);
	}
	copy = *e;
	hd_cq_pop(s->cq);
	return copy;
}

struct settling settling(int ms)
{
	uint64_t now = hd_now_ns();

	return (struct settling){ .end = now + ms * HD_NS_PER_MS, .next = now };
}

bool settling_on(struct settling *s)
{
	uint64_t now = hd_now_ns();

	if (++s->turns > 8 && now >= s->next) {
		s->turns = 0;
		s->looks++;
		s->next = now + 100 * HD_NS_PER_US;
	}
	return s->looks < 20 || now < s->end;
}

void pair_settle(struct pair *p, int ms)
{
	for (struct settling s = settling(ms); settling_on(&s);) {
		hd_node_poll(p->a.node);
		hd_node_poll(p->b.node);
	}
}

void pair_rest(struct pair *p)
{
	struct hd_link *link = p->a.to->peer->link;
	uint64_t end = hd_now_ns() + PATIENCE;

	while (link->ops->polls(link)) {
		assert_true(hd_now_ns() < end);
		usleep(100);
	}
}

bool side_wakes(const struct side *s, int ms)
{
	struct pollfd p = { .fd = hd_core(s->node)->epoll_fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

void pair_lie_down(struct pair *p, struct side *s)
{
	for (int i = 0; i < 1000; i++) {
		pair_settle(p, 2);
		if (!hd_sleep_arm(s->node) && !side_wakes(s, 0))
			return;
		hd_sleep_disarm(s->node);
	}
	fail_msg("there is always something");
}

void side_post(struct side *s, void *buf, size_t len, uint64_t tag, uint64_t ignore,
	       const struct hd_dest *src, void *ctx)
{
	struct iovec iov = { buf, len };
	struct hd_recv_args args = { .iov = &iov,
				     .count = 1,
				     .flags = HD_RECV_TAGGED | HD_RECV_COMPLETE,
				     .tag = tag,
				     .ignore = ignore,
				     .src = src,
				     .ctx = ctx };

	assert_int_equal(hd_recv(s->ep, &args), 0);
}

void pair_push(struct pair *p, struct side *s, const void *buf, size_t len, uint64_t tag, uint32_t flags)
{
	uint64_t end = hd_now_ns() + PATIENCE;
	int rc;

	while ((rc = hd_send(s->ep, s->to, buf, len, tag, 0, (void *)buf, TAGGED(flags))) == -EAGAIN) {
		hd_node_poll(p->a.node);
		hd_node_poll(p->b.node);
		assert_true(hd_now_ns() < end);
	}
	assert_int_equal(rc, 0);
}

void test_fill(unsigned char *at, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		at[i] = (unsigned char)(seed + i * 31 + (i >> 8));
}

void test_check(const unsigned char *at, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		if (at[i] != (unsigned char)(seed + i * 31 + (i >> 8)))
			fail_msg("byte %zu of %zu differs", i, len);
}

int test_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}
