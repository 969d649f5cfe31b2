/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Packets in pieces, when there is no memory for what comes: the link goes, and nothing else. */
#include "base/bytes.h"
#include "engine/rq/rq.h"
#include "engine/test/test_pair.h"

#include <string.h>

#define MOST 60000

static struct {
	size_t refused; /* so many bytes cannot be had */
	int count;	/* how often they have been asked for */
} memory;

void *__real_hd_bytes_get_large(size_t n);
void *__wrap_hd_bytes_get_large(size_t n);

void *__wrap_hd_bytes_get_large(size_t n)
{
	if (n != memory.refused)
		return __real_hd_bytes_get_large(n);
	memory.count++;
	return NULL;
}

/* A message of this length cannot be kept; the next one can, by a link of its own. */
static void try(struct pair *p, size_t len, bool posted)
{
	static unsigned char out[MOST], in[MOST];
	const struct iovec iov = { in, len };
	uint64_t end = hd_now_ns() + PATIENCE;

	if (posted)
		assert_int_equal(
			hd_recv(p->b.ep,
				&(struct hd_recv_args){ .iov = &iov,
							.count = 1,
							.tag = 1,
							.flags = HD_RECV_COMPLETE | HD_RECV_TAGGED |
								 HD_RECV_ORDERED | HD_RECV_ASCENDING }),
			0);
	memory.refused = sizeof(struct hd_msg) + len;
	memory.count = 0;
	pair_push(p, &p->a, out, len, 1, 0);
	while (!memory.count || p->a.to->state == HD_DEST_BOUND) { /* until both know */
		hd_node_poll(p->a.node);
		hd_node_poll(p->b.node);
		assert_true(hd_now_ns() < end);
	}
	assert_int_equal(memory.count, 1);
	assert_null(hd_cq_peek(p->b.cq));
	memory.refused = 0;
	if (!posted)
		side_post(&p->b, in, len, 1, 0, NULL, in);
	test_fill(out, len, posted);
	pair_push(p, &p->a, out, len, 1, 0);
	assert_int_equal(pair_next(p, &p->b).err, 0);
	test_check(in, len, posted);
}

static void no_memory(void **state)
{
	EACH_TRANSPORT(t)
	{
		struct pair p;

		pair_open(&p, t);
		for (int posted = 0; posted < 2; posted++)
			try(&p, strcmp(t, "shm") ? MOST : 12000,
			    posted); /* in pieces, and not announced yet */
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
