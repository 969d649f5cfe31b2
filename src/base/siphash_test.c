/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The hash depends on each bit of key, text and length, and is what others compute. */
#include "base/siphash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void each_bit_counts(void **state)
{
	uint64_t key[2] = { 1, 2 };
	unsigned char text[24] = { 0 };
	uint64_t plain = hd_siphash(key, text, sizeof(text));

	for (unsigned i = 0; i < sizeof(text) * 8; i++) {
		text[i / 8] ^= (unsigned char)(1u << i % 8);
		assert_true(hd_siphash(key, text, sizeof(text)) != plain);
		text[i / 8] ^= (unsigned char)(1u << i % 8);
	}
	for (unsigned i = 0; i < 128; i++) {
		key[i / 64] ^= UINT64_C(1) << i % 64;
		assert_true(hd_siphash(key, text, sizeof(text)) != plain);
		key[i / 64] ^= UINT64_C(1) << i % 64;
	}
	assert_true(hd_siphash(key, text, sizeof(text) - 1) != plain);
	assert_true(hd_siphash(key, text, sizeof(text)) == plain);
}

/* Of the bytes 0, 1, 2 and so on, with a key of zeros: std::hash::DefaultHasher of Rust. */
static void values_of_others(void **state)
{
	static const struct {
		size_t len;
		uint64_t hash;
	} values[] = {
		{ 0, UINT64_C(0xd1fba762150c532c) },  { 1, UINT64_C(0x68a914128e01e473) },
		{ 7, UINT64_C(0x2f098ab0c751325a) },  { 8, UINT64_C(0xead411e67ebe2eea) },
		{ 15, UINT64_C(0xf30eb725bb91c9ea) }, { 24, UINT64_C(0x31185a47af932f3a) },
	};
	const uint64_t key[2] = { 0, 0 };
	unsigned char text[24];

	for (unsigned i = 0; i < sizeof(text); i++)
		text[i] = (unsigned char)i;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		assert_true(hd_siphash(key, text, values[i].len) == values[i].hash);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_bit_counts),
		cmocka_unit_test(values_of_others),
	};

	return cmocka_run_group_tests_name("siphash", tests, NULL, NULL);
}
