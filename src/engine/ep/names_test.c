/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Is a name one of those by which an endpoint is called? */
#include "engine/test/test_pair.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

static struct hd_ep *open_at(struct hd_node *node, const struct sockaddr *bind, struct hd_ep *beside,
			     uint32_t slot)
{
	const struct hd_ep_attr attr = {
		.type = HD_EP_RDM, .policy = HD_EP_OWN_PORT, .bind = bind, .beside = beside, .slot = slot
	};
	struct hd_ep *ep;

	assert_int_equal(hd_ep_open(node, &attr, &ep), 0);
	return ep;
}

static struct sockaddr_in at(const char *text, const struct hd_ep *ep)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_storage own;

	assert_int_equal(inet_pton(AF_INET, text, &in.sin_addr), 1);
	assert_int_equal(hd_ep_name(ep, AF_INET, &own), 0);
	in.sin_port = ((struct sockaddr_in *)&own)->sin_port;
	return in;
}

static bool is_named(const struct hd_ep *ep, struct sockaddr_in name)
{
	return hd_ep_is_named(ep, (struct sockaddr *)&name);
}

static void any_address_of_the_host(void **state)
{
	struct sockaddr_in other;
	struct hd_ep *ep;
	struct side s = { 0 };

	side_open(&s);
	ep = open_at(s.node, NULL, NULL, 0);
	assert_true(is_named(ep, at("127.0.0.1", ep)));
	assert_true(is_named(ep, at("127.0.0.7", ep)));
	assert_false(is_named(ep, at("192.0.2.1", ep)));
	other = at("127.0.0.1", ep);
	other.sin_port ^= htons(1);
	assert_false(is_named(ep, other));
	hd_ep_close(ep);
	side_close(&s);
}

static void its_own_address_alone(void **state)
{
	struct sockaddr_in bind = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct hd_ep *ep;
	struct side s = { 0 };

	side_open(&s);
	ep = open_at(s.node, (struct sockaddr *)&bind, NULL, 0);
	assert_true(is_named(ep, at("127.0.0.1", ep)));
	assert_false(is_named(ep, at("127.0.0.7", ep)));
	hd_ep_close(ep);
	side_close(&s);
}

static void by_its_slot(void **state)
{
	struct sockaddr_in name;
	struct hd_ep *ep, *beside;
	struct side s = { 0 };

	side_open(&s);
	ep = open_at(s.node, NULL, NULL, 0);
	beside = open_at(s.node, NULL, ep, 300);
	name = at("127.0.0.1", ep);
	assert_false(is_named(beside, name));
	hd_name_set_slot((struct sockaddr *)&name, 300);
	assert_true(is_named(beside, name));
	assert_false(is_named(ep, name));
	hd_ep_close(beside);
	hd_ep_close(ep);
	side_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_address_of_the_host),
		cmocka_unit_test(its_own_address_alone),
		cmocka_unit_test(by_its_slot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
