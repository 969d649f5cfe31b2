/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/ofi/ofi.h"

#include <arpa/inet.h>
#include <string.h>

static int resolve(const char *node, const char *service, int family, char *text)
{
	const struct hd_fi_lookup what = {
		.node = node, .service = service, .family = family, .numeric = true
	};
	union hd_fi_addr addr;
	int rc = hd_fi_resolve(&what, &addr);

	text[0] = '\0';
	if (!rc)
		hd_fi_addr_text(&addr, text, 80);
	return rc;
}

static void names_and_numbers(void **state)
{
	char text[80];

	assert_int_equal(resolve("10.1.2.3", "4000", AF_UNSPEC, text), 0);
	assert_string_equal(text, "fi_sockaddr_in://10.1.2.3:4000");
	assert_int_equal(resolve("::1", "4000", AF_UNSPEC, text), 0);
	assert_string_equal(text, "fi_sockaddr_in6://[::1]:4000");
	assert_int_equal(resolve("10.1.2.3", NULL, AF_INET, text), 0);
	assert_string_equal(text, "fi_sockaddr_in://10.1.2.3:0");
	assert_int_equal(resolve(NULL, "17", AF_INET, text), 0);
	assert_string_equal(text, "fi_sockaddr_in://127.0.0.1:17");
	assert_int_equal(resolve(NULL, NULL, AF_INET, text), -FI_EINVAL);
	assert_int_equal(resolve("10.1.2.3", "4000", AF_INET6, text), -FI_ENODATA);
	assert_int_equal(resolve("no.such.name", "4000", AF_UNSPEC, text), -FI_ENODATA);
}

static void formatted_strings(void **state)
{
	char text[80], longer[700];

	assert_int_equal(resolve("fi_sockaddr://10.31.6.12:7471", NULL, AF_UNSPEC, text), 0);
	assert_string_equal(text, "fi_sockaddr_in://10.31.6.12:7471");
	assert_int_equal(resolve("fi_sockaddr_in6://[fe80::6:12]:7471", NULL, AF_UNSPEC, text), 0);
	assert_string_equal(text, "fi_sockaddr_in6://[fe80::6:12]:7471");
	assert_int_equal(resolve("fi_sockaddr://10.31.6.12:7471/x?qos=3", NULL, AF_INET, text), 0);
	assert_string_equal(text, "fi_sockaddr_in://10.31.6.12:7471");
	assert_int_equal(resolve("fi_sockaddr_in://:7471", NULL, AF_UNSPEC, text), 0);
	assert_string_equal(text, "fi_sockaddr_in://127.0.0.1:7471");

	assert_int_equal(resolve("fi_sockaddr_in://10.31.6.12:7471", NULL, AF_INET6, text), -FI_ENODATA);
	assert_int_equal(resolve("fi_sockaddr_in://10.31.6.12", "7471", AF_INET, text), -FI_EINVAL);
	assert_int_equal(resolve("fi_sockaddr_in6://[fe80::6:12", NULL, AF_UNSPEC, text), -FI_EINVAL);
	assert_int_equal(resolve("fi_addr_psmx://1", NULL, AF_UNSPEC, text), -FI_EINVAL);
	assert_int_equal(resolve("fi_sockaddr_in://", NULL, AF_UNSPEC, text), -FI_EINVAL);
	memset(longer, '1', sizeof(longer));
	memcpy(longer, "fi_sockaddr://", 14);
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(resolve(longer, NULL, AF_UNSPEC, text), -FI_EINVAL);
}

static void copies_are_checked(void **state)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(1) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	union hd_fi_addr out;

	assert_int_equal(hd_fi_addr_copy(&in, sizeof(in), AF_INET, &out), 0);
	assert_memory_equal(&out, &in, sizeof(in));
	assert_int_equal(hd_fi_addr_copy(&in, sizeof(in), AF_UNSPEC, &out), 0);
	assert_int_equal(hd_fi_addr_copy(&in, sizeof(in) - 1, AF_INET, &out), -FI_EINVAL);
	assert_int_equal(hd_fi_addr_copy(&in, 1, AF_INET, &out), -FI_EINVAL);
	assert_int_equal(hd_fi_addr_copy(&in, sizeof(in), AF_INET6, &out), -FI_EINVAL);
	assert_int_equal(hd_fi_addr_copy(&in6, sizeof(in), AF_UNSPEC, &out), -FI_EINVAL);
	in.sin_family = AF_UNIX;
	assert_int_equal(hd_fi_addr_copy(&in, sizeof(in), AF_UNSPEC, &out), -FI_EINVAL);
}

static void text_and_copies_are_cut(void **state)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(9) };
	char text[8], raw[sizeof(in)] = { 0 };
	size_t size = 4;

	inet_pton(AF_INET, "1.2.3.4", &in.sin_addr);
	assert_int_equal(hd_fi_addr_text(&in, text, sizeof(text)), sizeof("fi_sockaddr_in://1.2.3.4:9"));
	assert_string_equal(text, "fi_sock");
	assert_int_equal(hd_fi_addr_text(&in, NULL, 0), sizeof("fi_sockaddr_in://1.2.3.4:9"));

	assert_int_equal(hd_fi_addr_out((struct sockaddr *)&in, raw, &size), -FI_ETOOSMALL);
	assert_int_equal(size, sizeof(in));
	assert_memory_equal(raw, &in, 4);
	assert_int_equal(raw[4], 0);
	assert_int_equal(hd_fi_addr_out((struct sockaddr *)&in, raw, &size), 0);
	assert_memory_equal(raw, &in, sizeof(in));
	size = 0;
	assert_int_equal(hd_fi_addr_out((struct sockaddr *)&in, NULL, &size), -FI_ETOOSMALL);
	assert_int_equal(size, sizeof(in));
}

static void wildcards_and_locality(void **state)
{
	union hd_fi_addr a = { .in = { .sin_family = AF_INET } };

	assert_true(hd_fi_addr_is_any(&a));
	assert_true(hd_fi_addr_is_local(&a));
	a.in.sin_port = htons(5);
	assert_false(hd_fi_addr_is_any(&a));
	a.in.sin_port = 0;
	inet_pton(AF_INET, "127.0.0.1", &a.in.sin_addr);
	assert_false(hd_fi_addr_is_any(&a));
	assert_true(hd_fi_addr_is_local(&a));
	inet_pton(AF_INET, "192.0.2.1", &a.in.sin_addr); /* for documentation: nobody has it */
	assert_false(hd_fi_addr_is_local(&a));
	a.in6 = (struct sockaddr_in6){ .sin6_family = AF_INET6 };
	assert_true(hd_fi_addr_is_any(&a));
	assert_int_equal(hd_fi_family(FI_SOCKADDR_IB), -1);
}

static void errors_translate(void **state)
{
	char text[8];

	assert_int_equal(hd_fi_errno(EMSGSIZE), FI_ETRUNC);
	assert_int_equal(hd_fi_errno(ENOMSG), FI_ENOMSG);
	assert_int_equal(hd_fi_errno(ECANCELED), FI_ECANCELED);
	assert_int_equal(hd_fi_errno(ECONNRESET), FI_ECONNRESET);
	assert_int_equal(hd_fi_ret(-ENOKEY), -FI_ENOKEY);
	assert_int_equal(hd_fi_ret(-EAGAIN), -FI_EAGAIN);
	assert_int_equal(hd_fi_ret(0), 0);
	assert_string_equal(hd_fi_strerror(EMSGSIZE, NULL, 0), fi_strerror(FI_ETRUNC));
	assert_ptr_equal(hd_fi_strerror(ECONNRESET, text, sizeof(text)), text);
	assert_int_equal(strlen(text), sizeof(text) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_numbers),	  cmocka_unit_test(formatted_strings),
		cmocka_unit_test(copies_are_checked),	  cmocka_unit_test(text_and_copies_are_cut),
		cmocka_unit_test(wildcards_and_locality), cmocka_unit_test(errors_translate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
