/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Second paths of queue pairs: here the loopback address, beside the one that a node tells of. */
#include "engine/qp/qp.h"
#include "engine/test/test_qp.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

static char out[64], in[64];

struct told {
	int migrated, unmigrated;
};
static struct told told_a, told_b;

static void tell(void *owner, uint32_t code, int err)
{
	struct told *t = owner;

	t->migrated += code == HD_EV_EP_MIGRATED;
	t->unmigrated += code == HD_EV_EP_UNMIGRATED;
}

static void second_of(struct side *other, struct sockaddr_storage *name)
{
	struct sockaddr_in *in4 = (struct sockaddr_in *)name;

	assert_int_equal(hd_ep_name(other->ep, AF_INET, name), 0);
	in4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
}

static void load(struct side *s, struct side *other)
{
	struct sockaddr_storage name;

	second_of(other, &name);
	assert_int_equal(hd_ep_path_load(s->ep, (struct sockaddr *)&name), 0);
}

static void start(struct pair *p, const char *transport)
{
	told_a = told_b = (struct told){ 0 };
	pair_open(p, transport);
	qp_open(&p->a, RC, &(struct hd_ep_attr){ .tx_size = 64, .tell = tell, .owner = &told_a });
	qp_open(&p->b, RC, &(struct hd_ep_attr){ .tx_size = 64, .tell = tell, .owner = &told_b });
	qps_ready(p);
}

static void exchange(struct pair *p, struct side *from, struct side *to)
{
	struct hd_cqe e;

	memset(in, 0, sizeof(in));
	test_fill((void *)out, sizeof(out), 3);
	qp_recv(to, in, sizeof(in), in);
	qp_send(from, out, sizeof(out), out);
	qp_expect(p, from, out, 0);
	e = pair_next(p, to);
	assert_int_equal(e.err, 0);
	test_check((void *)in, sizeof(in), 3);
}

static void arm(struct pair *p)
{
	load(&p->a, &p->b);
	load(&p->b, &p->a);
	assert_int_equal(hd_ep_path_set(p->a.ep, HD_PATH_REARM), 0);
	pair_settle(p, 5);
	assert_int_equal(hd_ep_path(p->a.ep), HD_PATH_REARM); /* the other end is not */
	assert_int_equal(hd_ep_path_set(p->b.ep, HD_PATH_REARM), 0);
	while (hd_ep_path(p->a.ep) != HD_PATH_ARMED || hd_ep_path(p->b.ep) != HD_PATH_ARMED)
		pair_settle(p, 1);
}

static bool is_by_second(const struct side *s)
{
	const struct sockaddr_in *at = (const struct sockaddr_in *)(const void *)&s->ep->qp->life.dest->addr;

	return at->sin_addr.s_addr == htonl(INADDR_LOOPBACK);
}

/* Both ends follow, once, and nothing is lost meanwhile. */
static void migrates_when_asked(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		start(&p, t);
		assert_int_equal(hd_ep_path_set(p.a.ep, HD_PATH_REARM), -EINVAL);
		exchange(&p, &p.a, &p.b);
		arm(&p);
		exchange(&p, &p.b, &p.a);
		assert_int_equal(hd_ep_path_set(p.a.ep, HD_PATH_MIGRATED), 0);
		assert_int_equal(hd_ep_path(p.a.ep), HD_PATH_MIGRATED);
		exchange(&p, &p.a, &p.b);
		exchange(&p, &p.b, &p.a);
		assert_int_equal(hd_ep_path(p.b.ep), HD_PATH_MIGRATED);
		assert_int_equal(told_a.migrated + told_a.unmigrated, 1);
		assert_int_equal(told_b.migrated + told_b.unmigrated, 1);
		arm(&p); /* and back again */
		pair_close(&p);
	}
}

/* The other end has no second path, or is not armed: it says so. */
static void not_both_are_armed(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		start(&p, t);
		exchange(&p, &p.a, &p.b);
		load(&p.a, &p.b);
		assert_int_equal(hd_ep_path_set(p.a.ep, HD_PATH_ARMED), 0);
		assert_int_equal(hd_ep_path_set(p.a.ep, HD_PATH_MIGRATED), 0);
		exchange(&p, &p.a, &p.b);
		pair_settle(&p, 5);
		assert_int_equal(told_a.migrated, 1);
		assert_int_equal(told_b.migrated, 0);
		assert_int_equal(told_b.unmigrated, 1);
		/* taken back, not migrated */
		assert_int_equal(hd_ep_path_set(p.a.ep, HD_PATH_REARM), 0);
		assert_int_equal(hd_ep_path_set(p.a.ep, HD_PATH_MIGRATED), 0);
		assert_int_equal(told_a.migrated, 1);
		pair_close(&p);
	}
}

/* The link breaks while nothing is under way. */
static void migrates_by_itself(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		start(&p, t);
		arm(&p); /* nothing has been said before */
		assert_false(is_by_second(&p.a));
		hd_link_down(p.a.ep->qp->life.dest->peer->link, -ETIMEDOUT, NULL);
		pair_settle(&p, 20);
		exchange(&p, &p.a, &p.b);
		exchange(&p, &p.b, &p.a);
		assert_int_equal(told_a.migrated, 1);
		assert_true(is_by_second(&p.a));
		assert_int_equal(hd_ep_path(p.a.ep), HD_PATH_MIGRATED);
		assert_int_equal(hd_qp_inspect(p.a.ep->qp).status, 0);
		assert_int_equal(hd_qp_inspect(p.b.ep->qp).status, 0);
		pair_close(&p);
	}
}

/* Nobody answers at the first address: what waits leaves by the second. */
static void first_is_not_reached(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		struct hd_qp_attr attr = qp_attr();
		struct sockaddr_storage name;

		start(&p, t);
		hd_ep_reset(p.a.ep);
		second_of(&p.b, &name);
		((struct sockaddr_in *)&name)->sin_port = htons(9);
		attr.to = (struct sockaddr *)&name;
		assert_int_equal(hd_ep_pair(p.a.ep, &attr), 0);
		load(&p.a, &p.b);
		assert_int_equal(hd_ep_path_set(p.a.ep, HD_PATH_ARMED), 0);
		exchange(&p, &p.a, &p.b);
		assert_int_equal(told_a.migrated, 1);
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(migrates_when_asked),
		cmocka_unit_test(not_both_are_armed),
		cmocka_unit_test(migrates_by_itself),
		cmocka_unit_test(first_is_not_reached),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
