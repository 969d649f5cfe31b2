/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "transport/world.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"

static int open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void address_of(const char *text, struct sockaddr_storage *out)
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		return;
	}
	assert_int_equal(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
	in6->sin6_family = AF_INET6;
}

static void node_make(struct world *w, int i)
{
	struct hd_node *node = rig_node_open();
	struct hd_port *port;

	w->node[i] = node;
	port = rig_port_open(node, w->suite->transport);
	world_check(w);
	if (!w->suite->address)
		return;
	address_of(w->suite->address, &w->listener[i].addr);
	assert_int_equal(port->transport->listen(port, &w->listener[i]), 0);
	w->listens[i] = true;
}

void world_open(struct world *w, const struct mode *mode, int count)
{
	memset(w, 0, sizeof(*w));
	w->suite = mode->suite;
	w->threads = mode->threads;
	w->descriptors = open_descriptors();
	if (w->suite->self)
		count = 1;
	for (int i = 0; i < count; i++) {
		w->count++;
		node_make(w, i);
	}
	if (w->threads)
		for (int i = 0; i < count; i++)
			rig_thread_start(w->node[i]);
}

void world_close(struct world *w)
{
	bool fine = true;

	for (int i = 0; i < w->count; i++) {
		struct hd_node *node = w->node[i];

		rig_lock(node);
		if (w->listens[i])
			node->port[0]->transport->unlisten(node->port[0], &w->listener[i]);
		rig_unlock(node);
	}
	for (int i = 0; i < w->count; i++)
		fine &= rig_node_close(w->node[i]);
	assert_true(fine);
	assert_int_equal(open_descriptors(), w->descriptors);
}

void world_lock(struct world *w)
{
	for (int i = 0; i < w->count; i++)
		rig_lock(w->node[i]);
}

void world_unlock(struct world *w)
{
	for (int i = w->count; i-- > 0;)
		rig_unlock(w->node[i]);
}

void world_check(struct world *w)
{
	for (int i = 0; i < w->count; i++) {
		char complaint[sizeof(w->node[i]->complaint)];

		rig_lock(w->node[i]);
		memcpy(complaint, w->node[i]->complaint, sizeof(complaint));
		rig_unlock(w->node[i]);
		assert_string_equal(complaint, "");
	}
}

void world_turn(struct world *w)
{
	if (w->threads) {
		usleep(w->count > 3 ? 5000 : 100); /* looking stops them all */
		return;
	}
	for (int i = 0; i < w->count; i++)
		if (!w->node[i]->paused)
			rig_poll(w->node[i]);
}

static bool look(struct world *w, bool (*cond)(void *arg), void *arg)
{
	bool yes;

	world_lock(w);
	yes = cond(arg);
	world_unlock(w);
	return yes;
}

void world_until_(struct world *w, int seconds, bool (*cond)(void *arg), void *arg, const char *what,
		  const char *file, int line)
{
	uint64_t end = hd_now_ns() + (uint64_t)seconds * HD_NS_PER_S;

	for (unsigned turns = 1; !look(w, cond, arg); turns++) {
		world_turn(w);
		if (turns % 64 == 0)
			world_check(w);
		if (hd_now_ns() > end) {
			world_check(w);
			print_error("waited %d seconds for %s\n", seconds, what);
			_fail(file, line);
		}
	}
	world_check(w);
}

/* ---- links ---- */

void world_kick(struct hd_node *node)
{
	bool sleepy;

	rig_lock(node);
	sleepy = node->sleepy;
	rig_unlock(node);
	if (sleepy)
		rig_kick(node);
}

int world_call(struct world *w, int from, int to, struct rig_end **end)
{
	struct hd_port *port = w->node[from]->port[0], *target = w->node[to]->port[0];
	const void *where = &w->listener[to].addr;
	size_t len = sizeof(struct sockaddr_storage);
	unsigned char advert[HD_HELLO_ADVERT];
	int rc;

	if (!w->suite->address) {
		rig_lock(target->node);
		len = target->transport->advertise(target, advert, sizeof(advert));
		rig_unlock(target->node);
		where = advert;
	}
	rig_lock(port->node);
	rc = rig_connect(port, where, len, end);
	rig_unlock(port->node);
	world_kick(port->node);
	return rc;
}

static bool pair_greeted(void *arg)
{
	struct rig_end *a = arg;

	return a->other && a->greeted && a->other->greeted && a->other->other == a;
}

struct pair world_pair(struct world *w, int from, int to)
{
	struct pair p = { NULL, NULL };

	assert_int_equal(world_call(w, from, to, &p.a), 0);
	world_until(w, 20, pair_greeted, p.a);
	p.b = p.a->other;
	return p;
}

void pair_plan(struct world *w, struct pair *p, const struct rig_plan *plan)
{
	world_lock(w);
	p->a->plan = *plan;
	p->b->plan = *plan;
	world_unlock(w);
	world_kick(p->a->node);
	world_kick(p->b->node);
}

bool pair_quiet(void *arg)
{
	struct pair *p = arg;

	return rig_end_idle(p->a) && rig_end_idle(p->b) && p->a->rx == p->b->tx && p->b->rx == p->a->tx &&
	       p->a->grant_in == p->b->grant_out && p->b->grant_in == p->a->grant_out;
}

bool end_gone(void *arg)
{
	struct rig_end *end = arg;

	return end->was_down && end->closed;
}
