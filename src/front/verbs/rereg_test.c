/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * ibv_rereg_mr(3) without memory, at each place where it wants some: what it answers says
 * whether the region is still what it was, or is not to be used any more, and in both
 * cases it can be deregistered.
 */
#include "front/verbs/entry.h"
#include "front/verbs/ops.h"

#include <errno.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static int granted = -1; /* how often memory is still given; -1: always */

static bool grant(void)
{
	if (granted > 0)
		granted--;
	return granted != 0;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	return grant() ? __real_malloc(size) : NULL;
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
	return grant() ? __real_calloc(count, size) : NULL;
}

struct scene {
	struct ibv_context *context;
	struct ibv_pd *pd;
	char old[64], new[128];
};

static int setup(void **state)
{
	static struct scene s;

	*state = &s;
	s.context = hv_ibv_open_device(&hv_devices[HV_INFINIBAND].pub);
	assert_non_null(s.context);
	s.pd = hv_ibv_alloc_pd(s.context);
	assert_non_null(s.pd);
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	assert_int_equal(hv_ibv_dealloc_pd(s->pd), 0);
	assert_int_equal(hv_context_of(s->context)->objects, 0);
	return hv_ibv_close_device(s->context);
}

/* Would a request of one byte there, by this key, be carried out? */
static bool opens(struct scene *s, uint32_t key, const void *at)
{
	struct ibv_sge sge = { (uintptr_t)at, 1, key };
	struct hv_context *ctx = hv_context_of(s->context);
	struct hd_mr *region;
	uint64_t total = 0;
	struct iovec iov;
	int rc;

	hd_node_lock(ctx->node);
	rc = hv_sge(ctx, hv_pd_of(s->pd), &sge, 1, false, &iov, &region, &total);
	hd_node_unlock(ctx->node);
	return !rc;
}

/* With memory for so much alone; what it answered. */
static int rereg(struct scene *s, int grants)
{
	struct ibv_mr *mr = hv_ibv_reg_mr(s->pd, s->old, sizeof(s->old), IBV_ACCESS_LOCAL_WRITE);
	uint32_t key;
	int rc;

	assert_non_null(mr);
	key = mr->lkey;
	granted = grants + 1;
	rc = hv_ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, s->new, sizeof(s->new), 0);
	granted = -1;
	if (rc)
		assert_int_equal(errno, ENOMEM);
	assert_int_equal(opens(s, key, s->old), rc == IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(opens(s, key, s->new), !rc);
	if (rc != IBV_REREG_MR_ERR_CMD) {
		assert_int_equal(mr->lkey, key);
		assert_ptr_equal(mr->addr, rc ? s->old : s->new);
		assert_int_equal(mr->length, rc ? sizeof(s->old) : sizeof(s->new));
	}
	assert_int_equal(hv_ibv_dereg_mr(mr), 0);
	assert_false(opens(s, key, s->old) || opens(s, key, s->new));
	return rc;
}

static void what_failed_is_told(void **state)
{
	bool valid = false, invalid = false;
	int rc, grants = 0;

	while ((rc = rereg(*state, grants++))) {
		assert_true(rc == IBV_REREG_MR_ERR_INPUT || rc == IBV_REREG_MR_ERR_CMD);
		valid |= rc == IBV_REREG_MR_ERR_INPUT;
		invalid |= rc == IBV_REREG_MR_ERR_CMD;
	}
	assert_true(valid && invalid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_failed_is_told, setup, teardown),
	};

	return cmocka_run_group_tests_name("ibv_rereg_mr without memory", tests, NULL, NULL);
}
