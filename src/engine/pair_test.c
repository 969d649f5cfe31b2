/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Queue pairs: numbers, who talks with whom, messages of all lengths, failing, resetting. */
#include "engine/test_qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LONG (300u << 10)

static unsigned char out[1 << 20], in[1 << 20];

static void numbers(void **state)
{
	uint32_t seen[300];
	struct hd_ep *eps[300];
	struct side s;

	side_open(&s);
	for (int i = 0; i < 300; i++) {
		assert_int_equal(hd_ep_open(s.node, &(struct hd_ep_attr){ .type = HD_EP_RDM, .policy = RC },
					    &eps[i]),
				 0);
		seen[i] = hd_ep_number(eps[i]);
		assert_true(seen[i] > 255 && seen[i] < 0xffffff);
		for (int k = 0; k < i; k++)
			assert_int_not_equal(seen[k], seen[i]);
	}
	for (int i = 0; i < 300; i++)
		hd_ep_close(eps[i]);
	side_close(&s);
}

/* A number that is free again is the last to be given out. */
static void numbers_rest(void **state)
{
	struct hd_ep *keep, *ep;
	uint32_t first = 0, number;
	struct side s;

	side_open(&s);
	assert_int_equal(hd_ep_open(s.node, &(struct hd_ep_attr){ .type = HD_EP_RDM, .policy = RC }, &keep),
			 0);
	for (int i = 0; i < 253; i++) {
		assert_int_equal(
			hd_ep_open(s.node, &(struct hd_ep_attr){ .type = HD_EP_RDM, .policy = RC }, &ep), 0);
		number = hd_ep_number(ep);
		hd_ep_close(ep);
		if (!i)
			first = number;
		else
			assert_int_not_equal(number, first);
	}
	hd_ep_close(keep);
	side_close(&s);
}

static void messages(void **state)
{
	static const size_t lens[] = { 0, 1, 8, 4096, 16384, 16385, 65536, LONG };
	struct pair p;

	EACH_TRANSPORT(t)
	{
		qps_open(&p, t, RC);
		for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
			struct hd_cqe e;

			test_fill(out, lens[i], (unsigned)i);
			qp_recv(&p.b, in, sizeof(in), &in[i]);
			qp_send(&p.a, out, lens[i], &out[i]);
			e = qp_expect(&p, &p.b, &in[i], 0);
			assert_int_equal(e.len, lens[i]);
			assert_int_equal(e.flags, HD_C_RECV | HD_C_MSG);
			assert_int_equal(hd_dest_number(p.b.node, e.src), hd_ep_number(p.a.ep));
			test_check(in, lens[i], (unsigned)i);
			e = qp_expect(&p, &p.a, &out[i], 0);
			assert_int_equal(e.tag, 5);
			assert_int_equal(e.len, lens[i]);
		}
		pair_close(&p);
	}
}

/* Many of mixed lengths, with and without completions, in order at both ends. */
static void in_order(void **state)
{
	static const size_t lens[] = { 8, LONG, 100, 40000, 0, 20000, 1 };
	struct pair p;

	EACH_TRANSPORT(t)
	{
		qps_open(&p, t, RC);
		for (int i = 0; i < 60; i++)
			qp_recv(&p.b, in, sizeof(in), &in[i]);
		for (int i = 0; i < 60; i++)
			qp_send_as(&p.a, out, lens[i % 7], &out[i], i % 3 ? HD_SEND_COMPLETE : 0);
		for (int i = 0; i < 60; i++)
			assert_int_equal(qp_expect(&p, &p.b, &in[i], 0).len, lens[i % 7]);
		for (int i = 0; i < 60; i++)
			if (i % 3)
				qp_expect(&p, &p.a, &out[i], 0);
		assert_int_equal(hd_ep_tx_left(p.a.ep), 64 - (59 % 3 == 0));
		qp_silence(&p, &p.a, 5);
		pair_close(&p);
	}
}

/* Everything is accepted up to the bound, without progress; the buffer of an injected one is ours at once. */
static void accepts(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		char text[8] = "heddle";

		qps_open(&p, t, RC);
		for (int i = 0; i < 64; i++)
			qp_send_as(&p.a, text, sizeof(text), &out[i], HD_SEND_COMPLETE | HD_SEND_INJECT);
		assert_int_equal(hd_ep_tx_left(p.a.ep), 0);
		assert_int_equal(hd_send(p.a.ep, *hd_ep_to(p.a.ep), text, 1, 0, 0, NULL, 0), -EAGAIN);
		memset(text, 0, sizeof(text));
		for (int i = 0; i < 64; i++) {
			qp_recv(&p.b, in, sizeof(in), &in[i]);
			qp_expect(&p, &p.b, &in[i], 0);
			assert_string_equal((char *)in, "heddle");
		}
		for (int i = 0; i < 64; i++)
			qp_expect(&p, &p.a, &out[i], 0);
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),  cmocka_unit_test(numbers_rest), cmocka_unit_test(messages),
		cmocka_unit_test(in_order), cmocka_unit_test(accepts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
