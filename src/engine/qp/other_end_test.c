/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The other end of a queue pair: it is called, cannot be reached, goes, or is another than who sends something. */
#include "engine/qp/qp.h"
#include "engine/test/test_qp.h"

#include <errno.h>
#include <netinet/in.h>

static unsigned char out[64], in[64];

/* a is ready for b by an address that b's greeting does not carry, and where nobody answers at the time. */
static void ready_in_vain(struct pair *p)
{
	struct hd_qp_attr attr = qp_attr();
	struct sockaddr_storage name;
	struct hd_dest *dest;

	assert_int_equal(hd_ep_name(p->b.ep, AF_INET, &name), 0);
	((struct sockaddr_in *)&name)->sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
	attr.to = (void *)&name;
	assert_int_equal(hd_ep_pair(p->a.ep, &attr), 0);
	dest = p->a.ep->qp->life.dest;
	assert_int_equal(dest->state, HD_DEST_CONNECTING);
	hd_link_down(dest->link, -EHOSTUNREACH, "as where no way leads");
	pair_settle(p, 5);
	assert_int_equal(dest->state, HD_DEST_IDLE);
}

static void called_when_something_comes(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		qps_new(&p, t, RC);
		ready_in_vain(&p);
		qp_ready(&p.b, &p.a, NULL);
		qp_recv(&p.a, in, sizeof(in), in);
		qp_send(&p.b, out, 8, out);
		qp_expect(&p, &p.a, in, 0);
		qp_expect(&p, &p.b, out, 0);
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(called_when_something_comes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
