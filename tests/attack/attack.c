/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "attack/attack.h"
#include "skip.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

int attack_setup(void **state)
{
	static struct attack_scene s;

	s.w = calloc(1, sizeof(*s.w));
	s.w->fd = -1;
	side_open(&s.a);
	*state = &s;
	return 0;
}

int attack_teardown(void **state)
{
	struct attack_scene *s = *state;

	wire_hang_up(s->w);
	side_close(&s->a);
	free(s->w);
	return 0;
}

bool attack_as(unsigned uid)
{
	if (uid && geteuid() != 0)
		return false;
	return uid ? seteuid(uid) == 0 : getuid() != 0 || seteuid(0) == 0;
}

void attack_needs_root(void)
{
	skip_unless(geteuid() == 0, "run as root: only root can be another user");
}

/* ---- hosts ---- */

static struct {
	int before, here, there[2]; /* networks */
	int from;
	bool are_there;
} hosts = { .before = -1, .here = -1, .there = { -1, -1 }, .from = -1 };

static int network_of_this_thread(void)
{
	return open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

static int network_new(void)
{
	return unshare(CLONE_NEWNET) ? -1 : network_of_this_thread();
}

static bool enter(int network)
{
	return setns(network, CLONE_NEWNET) == 0;
}

/* The cable to that host, and its addresses at both ends; it finds ATTACK_ADDR by them. */
static bool host_join(int i)
{
	char here[256], there[256];

	snprintf(
		here, sizeof(here),
		"ip link add v%d type veth peer name v netns /proc/%d/fd/%d && ip address add 10.77.%d.1/24 dev v%d && "
		"ip link set v%d up",
		i, (int)getpid(), hosts.there[i], i + 1, i, i);
	snprintf(
		there, sizeof(there),
		"ip address add 10.77.%d.2/24 dev v && ip link set v up && ip route add default via 10.77.%d.1",
		i + 1, i + 1);
	return !system(here) && enter(hosts.there[i]) && !system(there) && enter(hosts.here);
}

static bool hosts_make(void)
{
	hosts.before = network_of_this_thread();
	if ((hosts.there[0] = network_new()) < 0 || (hosts.there[1] = network_new()) < 0 ||
	    (hosts.here = network_new()) < 0)
		return false;
	return !system("ip link set lo up && ip address add " ATTACK_ADDR "/32 dev lo") && host_join(0) &&
	       host_join(1);
}

void attack_hosts_open(void)
{
	hosts.are_there = hosts_make();
	if (!hosts.are_there)
		return;
	setenv("HEDDLE_ADDR", ATTACK_ADDR, 1);
	setenv("HEDDLE_ALLOW", "10.77.0.0/16", 1);
}

void attack_needs_hosts(void)
{
	skip_unless(hosts.are_there, "run as root, where network namespaces can be made and ip(8) is there");
}

void attack_hosts_close(void)
{
	int *all[] = { &hosts.before, &hosts.here, &hosts.there[0], &hosts.there[1] };

	hosts.from = -1;
	hosts.are_there = false;
	unsetenv("HEDDLE_ADDR");
	unsetenv("HEDDLE_ALLOW");
	if (hosts.there[0] >= 0) /* we have left ours */
		assert_true(enter(hosts.before));
	for (int i = 0; i < 4; i++) {
		if (*all[i] >= 0)
			close(*all[i]);
		*all[i] = -1;
	}
}

void attack_from(int host)
{
	hosts.from = host;
}

void attack_dial(struct wire *w, struct side *s, unsigned uid)
{
	bool far = hosts.from >= 0;

	assert_true(!far || enter(hosts.there[hosts.from]));
	assert_true(attack_as(uid)); /* who may not enter networks any more */
	wire_dial(w, s);
	assert_true(attack_as(0));
	assert_true(!far || enter(hosts.here));
}

void attack_greet(struct wire *w, struct side *s, unsigned uid, const struct hd_node_id *id)
{
	const struct hd_pkt hello = { .kind = HD_PKT_HELLO }, use = { .kind = HD_PKT_USE };
	struct hd_hello h;

	attack_dial(w, s, uid);
	if (id)
		w->id = *id;
	wire_hello(w, &h);
	wire_say(w, &hello, &h, sizeof(h));
	wire_hear_kind(w, HD_PKT_HELLO);
	w->answer = w->pkt;
	memcpy(&w->theirs, w->payload, sizeof(w->theirs));
	if (!(w->answer.flags & HD_HELLO_F_MERGED))
		wire_say(w, &use, NULL, 0);
}

int attack_listen(unsigned uid, struct sockaddr_storage *name)
{
	const uint32_t at = hosts.from < 0 ? INADDR_LOOPBACK : 0x0a4d0002u | (uint32_t)(hosts.from + 1) << 8;
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(at) };
	bool far = hosts.from >= 0;
	socklen_t len = sizeof(in);
	int fd;

	assert_true(!far || enter(hosts.there[hosts.from]));
	assert_true(attack_as(uid));
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_true(attack_as(0));
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&in, len), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	assert_true(!far || enter(hosts.here));
	memset(name, 0, sizeof(*name));
	memcpy(name, &in, sizeof(in));
	return fd;
}

void attack_accept(struct wire *w, int fd, unsigned uid, struct hd_node *node)
{
	uint64_t end = hd_now_ns() + PATIENCE;

	*w = (struct wire){ .node = node, .fd = -1 };
	assert_int_equal(getrandom(&w->id, sizeof(w->id), 0), sizeof(w->id));
	while (w->fd < 0) {
		hd_node_poll(node);
		assert_true(attack_as(uid)); /* whose the socket is */
		w->fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		assert_true(attack_as(0));
		assert_true(hd_now_ns() < end);
	}
}

void attack_announce(struct wire *w, uint32_t index, const struct sockaddr_storage *name)
{
	const struct hd_pkt pkt = { .kind = HD_PKT_ANNOUNCE };
	struct hd_announce a = { .index = index, .gen = 1 };
	struct hd_name_key key;

	assert_true(hd_addr_key((const struct sockaddr *)name, &key));
	memcpy(a.addr, key.addr, sizeof(a.addr));
	a.port = (uint16_t)key.port;
	a.slot = (uint16_t)(key.port >> 16);
	wire_say(w, &pkt, &a, sizeof(a));
}

void attack_poll(struct side **sides, int count, int ms)
{
	for (struct settling s = settling(ms); settling_on(&s);)
		for (int i = 0; i < count; i++)
			hd_node_poll(sides[i]->node);
}
