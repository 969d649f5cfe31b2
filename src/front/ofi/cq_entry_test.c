/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/ofi/cq_entry.h"

#include <string.h>

static void flags_translate_one_by_one(void **state)
{
	static const struct {
		uint32_t ours;
		uint64_t theirs;
	} flags[] = {
		{ HD_C_SEND, FI_SEND },
		{ HD_C_RECV, FI_RECV },
		{ HD_C_MSG, FI_MSG },
		{ HD_C_TAGGED, FI_TAGGED },
		{ HD_C_IMM, FI_REMOTE_CQ_DATA },
		{ HD_C_MULTI_RECV, FI_MULTI_RECV },
		{ HD_C_SOLICITED, 0 },
	};
	uint32_t ours = 0;
	uint64_t theirs = 0;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		assert_true(hd_fi_cqe_flags(flags[i].ours) == flags[i].theirs);
		ours |= flags[i].ours;
		theirs |= flags[i].theirs;
	}
	assert_true(hd_fi_cqe_flags(ours) == theirs);
	assert_true(hd_fi_cqe_flags(0) == 0);
}

/* Each format fills its own entry and not a byte more. */
static void formats_fill_their_size(void **state)
{
	static const struct {
		enum fi_cq_format format;
		size_t size;
	} formats[] = {
		{ FI_CQ_FORMAT_CONTEXT, sizeof(struct fi_cq_entry) },
		{ FI_CQ_FORMAT_MSG, sizeof(struct fi_cq_msg_entry) },
		{ FI_CQ_FORMAT_DATA, sizeof(struct fi_cq_data_entry) },
		{ FI_CQ_FORMAT_TAGGED, sizeof(struct fi_cq_tagged_entry) },
	};
	const struct hd_cqe e = { .ctx = (void *)1,
				  .buf = (void *)2,
				  .len = 3,
				  .tag = 4,
				  .imm = 5,
				  .flags = HD_C_RECV | HD_C_TAGGED | HD_C_IMM };
	const struct fi_cq_tagged_entry full = { .op_context = (void *)1,
						 .flags = FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA,
						 .len = 3,
						 .buf = (void *)2,
						 .data = 5,
						 .tag = 4 };

	for (size_t i = 0; i < 4; i++) {
		unsigned char out[sizeof(full) + 8];

		memset(out, 0xee, sizeof(out));
		hd_fi_cqe_put(&e, formats[i].format, out);
		assert_int_equal(hd_fi_cqe_size(formats[i].format), formats[i].size);
		assert_memory_equal(out, &full, formats[i].size);
		for (size_t at = formats[i].size; at < sizeof(out); at++)
			assert_int_equal(out[at], 0xee);
	}
}

/* fi_cq(3): only what has come here has a length and a tag, and only where it says so data. */
static void what_was_sent_has_no_fields(void **state)
{
	static const struct {
		uint32_t flags;
		bool has_len, has_tag, has_data;
	} kinds[] = {
		{ HD_C_SEND | HD_C_MSG, false, false, false },
		{ HD_C_SEND | HD_C_TAGGED, false, false, false },
		{ HD_C_SEND | HD_C_RMA, false, false, false },
		{ HD_C_RMA | HD_C_READ, false, false, false },
		{ HD_C_ATOMIC | HD_C_READ, false, false, false },
		{ HD_C_RECV | HD_C_MSG, true, false, false },
		{ HD_C_RECV | HD_C_TAGGED, true, true, false },
		{ HD_C_RECV | HD_C_TAGGED | HD_C_IMM, true, true, true },
		{ HD_C_REMOTE | HD_C_RMA | HD_C_IMM, true, false, true },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct hd_cqe e = { .flags = kinds[i].flags, .len = 3, .tag = 4, .imm = 5 };
		struct fi_cq_tagged_entry out;

		hd_fi_cqe_put(&e, FI_CQ_FORMAT_TAGGED, &out);
		assert_int_equal(out.len, kinds[i].has_len ? 3 : 0);
		assert_int_equal(out.tag, kinds[i].has_tag ? 4 : 0);
		assert_int_equal(out.data, kinds[i].has_data ? 5 : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flags_translate_one_by_one),
		cmocka_unit_test(formats_fill_their_size),
		cmocka_unit_test(what_was_sent_has_no_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
