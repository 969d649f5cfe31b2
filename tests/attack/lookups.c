/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Another user announces names of this host without end. Of each the kernel is asked whose it is,
 * by some calls or, where it has no sock_diag(7), by reading a table of all sockets: that does not
 * keep the node from others.
 */
#include "attack/attack.h"
#include "cpu.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PACKETS 50
#define SPENT 200 /* what may be asked at first is, by then */
#define EACH 16	  /* entries of a packet */
#define TIMES 5

/* As attack_greet, by who has many addresses of this host. */
static void greet_with_addresses(struct wire *w, struct side *s)
{
	const struct hd_pkt hello = { .kind = HD_PKT_HELLO }, use = { .kind = HD_PKT_USE };
	static const uint8_t first[16] = { [10] = 0xff, 0xff, 127, 0, 0, 2 };
	struct hd_hello h;

	attack_dial(w, s, STRANGER);
	wire_hello(w, &h);
	for (h.addr_count = 0; h.addr_count < HD_HELLO_ADDRS; h.addr_count++) {
		memcpy(h.addr[h.addr_count], first, sizeof(first));
		h.addr[h.addr_count][15] = (uint8_t)(2 + h.addr_count);
	}
	wire_say(w, &hello, &h, sizeof(h));
	wire_hear_kind(w, HD_PKT_HELLO);
	wire_say(w, &use, NULL, 0);
	wire_hear_kind(w, HD_PKT_ANNOUNCE);
}

/* One endpoint, and another port of it in each entry: nobody listens there. */
static void announce_ports(struct wire *w, unsigned packet)
{
	const struct hd_pkt pkt = { .kind = HD_PKT_ANNOUNCE };
	struct hd_announce a[EACH] = { 0 };

	for (unsigned i = 0; i < EACH; i++) {
		a[i].index = 3;
		a[i].gen = 1;
		a[i].port = (uint16_t)(1 + packet * EACH + i);
	}
	wire_say(w, &pkt, a, sizeof(a));
}

static uint64_t time_of(struct attack_scene *s, unsigned *packet, unsigned count)
{
	uint64_t before = cpu_ns();

	for (unsigned end = *packet + count; *packet < end; ++*packet)
		announce_ports(s->w, *packet);
	wire_settle(s->w);
	return cpu_ns() - before;
}

/* The processor's time of so many more packets, without that of waiting until they are in. */
static uint64_t cost(struct attack_scene *s, unsigned *packet, unsigned count)
{
	uint64_t all = time_of(s, packet, count), waiting = UINT64_MAX;

	for (int i = 0; i < 3; i++) {
		uint64_t t = time_of(s, packet, 0);

		waiting = t < waiting ? t : waiting;
	}
	return all > waiting ? all - waiting : 0;
}

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The median: what the kernel has put off, as freeing sockets, it does in one of them. */
static uint64_t usual(uint64_t cost[TIMES])
{
	qsort(cost, TIMES, sizeof(cost[0]), by_size);
	return cost[TIMES / 2];
}

static void names_without_end(void **state)
{
	struct attack_scene *s = *state;
	uint64_t first, then[TIMES];
	unsigned packet = 0;

	attack_needs_root();
	greet_with_addresses(s->w, &s->a);
	first = cost(s, &packet, 2) / 2;
	cost(s, &packet, SPENT);
	for (int i = 0; i < TIMES; i++)
		then[i] = cost(s, &packet, PACKETS) / PACKETS;
	assert_in_range(usual(then), 0, first / 3);
	serves(&s->a);
}

/* Who hangs up and calls again has not paid by that, but by the time that it takes. */
static void names_without_end_by_calls(void **state)
{
	struct attack_scene *s = *state;
	uint64_t first, then[TIMES], begun;
	unsigned packet = 0;

	attack_needs_root();
	greet_with_addresses(s->w, &s->a);
	first = cost(s, &packet, 2) / 2;
	cost(s, &packet, SPENT);
	begun = hd_now_ns();
	for (int i = 0; i < TIMES; i++) {
		wire_hang_up(s->w);
		attack_poll((struct side *[]){ &s->a }, 1, 5);
		greet_with_addresses(s->w, &s->a);
		then[i] = cost(s, &packet, 2) / 2;
	}
	/* of half of it, a twentieth */
	assert_in_range(usual(then), 0, first / 3 + (hd_now_ns() - begun) / TIMES / 40);
	serves(&s->a);
}

/*
 * Where the kernel is asked no more of whom somebody else has had it asked, whoever wants the name
 * asks himself: he may not send, and wait for what comes from there.
 */
static void a_name_that_is_not_looked_up(void **state)
{
	struct attack_scene *s = *state;
	struct sockaddr_storage own;
	struct hd_dest *dest;
	int fd;

	attack_needs_root();
	fd = attack_listen(STRANGER, &own);
	attack_greet(s->w, &s->a, STRANGER, NULL);
	hd_links(s->a.node)->peers->share->budget->asking =
		(struct hd_asking){ .ns = 1000 * HD_NS_PER_S, .at = hd_now_ns() };
	attack_announce(s->w, 3, &own);
	wire_settle(s->w);
	assert_int_equal(hd_dest_get(s->a.node, (struct sockaddr *)&own, &dest), 0);
	assert_int_equal(dest->state, HD_DEST_CONNECTING);
	hd_dest_put(dest);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names_without_end, attack_setup, attack_teardown),
		cmocka_unit_test_setup_teardown(names_without_end_by_calls, attack_setup, attack_teardown),
		cmocka_unit_test_setup_teardown(a_name_that_is_not_looked_up, attack_setup, attack_teardown),
	};

	return cmocka_run_group_tests_name("lookups", tests, NULL, NULL);
}
