/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/digest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void text_of(const uint8_t digest[HD_DIGEST_SIZE], char text[2 * HD_DIGEST_SIZE + 1])
{
	for (size_t i = 0; i < HD_DIGEST_SIZE; i++)
		snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

/* `times` copies of what, a piece of `step` bytes at a time. */
static void check(const char *what, size_t times, size_t step, const char *wanted)
{
	uint8_t digest[HD_DIGEST_SIZE];
	char text[2 * HD_DIGEST_SIZE + 1];
	struct hd_digest d;

	hd_digest_init(&d);
	for (size_t i = 0; i < times; i++)
		for (size_t at = 0, len = strlen(what); at < len; at += step)
			hd_digest_add(&d, what + at, len - at < step ? len - at : step);
	hd_digest_end(&d, digest);
	text_of(digest, text);
	assert_string_equal(text, wanted);
}

/* The examples that NIST publishes for FIPS 180-4. */
static void examples(void **state)
{
	static const char *const two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";

	check("", 1, 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	check("abc", 1, 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	for (size_t step = 1; step < 60; step++)
		check(two, 1, step, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	check("aaaaaaaaaa", 100000, 7, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(examples) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
