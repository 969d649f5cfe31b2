/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * No memory for a table: the call that wanted it says so, nothing is left of it, and it works
 * as soon as there is some.
 */
#include "engine/mr/mr.h"
#include "engine/mr/window.h"
#include "engine/test/test_pair.h"

#include <errno.h>
#include <netinet/in.h>

static bool none_left; /* of the memory that the tables ask for, by malloc(3) */

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	return none_left ? NULL : __real_malloc(size);
}

struct scene {
	struct side s;
	struct hd_node *node;
	char memory[64];
	struct iovec where;
};

static int setup(void **state)
{
	static struct scene s;

	side_open(&s.s);
	s.node = s.s.node;
	s.where = (struct iovec){ s.memory, sizeof(s.memory) };
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	none_left = false;
	side_close(&s->s);
	return 0;
}

static int region_open(struct scene *s, struct hd_mr **mr)
{
	const struct hd_mr_attr attr = { .iov = &s->where, .count = 1, .key = 2, .flags = HD_MR_KEY };

	return hd_mr_open(s->node, &attr, mr);
}

static void regions(void **state)
{
	struct scene *s = *state;
	struct hd_mr *mr = NULL;

	none_left = true;
	assert_int_equal(region_open(s, &mr), -ENOMEM);
	none_left = false;
	assert_null(hd_mr_at(s->node, 2));
	assert_int_equal(region_open(s, &mr), 0);
	assert_ptr_equal(hd_mr_at(s->node, 2), mr);
	assert_int_equal(hd_mr_close(mr), 0);
}

/* It keeps no key that somebody could find it by, gets one later, and goes as others do. */
static void keys(void **state)
{
	struct scene *s = *state;
	struct hd_mr *mr = NULL;

	assert_int_equal(region_open(s, &mr), 0);
	none_left = true;
	assert_int_equal(hd_mr_rename(mr, 4), -ENOMEM);
	assert_null(hd_mr_at(s->node, 2));
	assert_null(hd_mr_at(s->node, 4));
	none_left = false;
	assert_int_equal(hd_mr_rename(mr, 6), 0);
	assert_ptr_equal(hd_mr_at(s->node, 6), mr);
	none_left = true;
	assert_int_equal(hd_mr_rename(mr, 8), -ENOMEM);
	assert_int_equal(hd_mr_close(mr), 0);
}

static void windows(void **state)
{
	struct scene *s = *state;
	struct hd_mr *mr = NULL, *window = NULL;

	assert_int_equal(region_open(s, &mr), 0);
	none_left = true;
	assert_int_equal(hd_window_open(s->node, 0, false, &window), -ENOMEM);
	none_left = false;
	assert_int_equal(hd_regions(s->node)->mrs, 1);
	assert_int_equal(hd_window_open(s->node, 0, false, &window), 0);
	assert_int_equal(hd_mr_close(window), 0);
	assert_int_equal(hd_mr_close(mr), 0);
}

static void peers_and_names(void **state)
{
	const struct sockaddr_in far = { AF_INET, htons(4791), { htonl(0x7f000001) }, { 0 } };
	const struct hd_node_id id = { { 1, 2 } };
	struct scene *s = *state;
	struct hd_dest *dest = NULL;

	assert_null(hd_links(s->node)->peers);
	assert_null(hd_links(s->node)->names);
	none_left = true;
	assert_null(hd_peer_make(s->node, &id, NULL));
	assert_int_equal(hd_dest_get(s->node, (const struct sockaddr *)&far, &dest), -ENOMEM);
	none_left = false;
	assert_null(hd_links(s->node)->peers);
	assert_null(hd_links(s->node)->budgets);
	assert_int_equal(hd_dest_get(s->node, (const struct sockaddr *)&far, &dest), 0);
	hd_dest_put(dest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(regions, setup, teardown),
		cmocka_unit_test_setup_teardown(keys, setup, teardown),
		cmocka_unit_test_setup_teardown(windows, setup, teardown),
		cmocka_unit_test_setup_teardown(peers_and_names, setup, teardown),
	};

	return cmocka_run_group_tests_name("no memory", tests, NULL, NULL);
}
