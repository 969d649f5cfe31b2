/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The other node is in another process: memory that is really another's, and sudden death. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cpu.h"
#include "transport/suite_tests.h"

/* What the other process tells of itself: a page that both share, besides the transport. */
struct remote {
	_Atomic bool ready, stop, idle;
	_Atomic uint64_t tx, rx;
	bool has_heir;
	pid_t pid;	    /* the parent's to write */
	_Atomic pid_t heir; /* 0: none yet */
	size_t where_len;
	union {
		struct sockaddr_storage addr;
		unsigned char advert[HD_HELLO_ADVERT];
	} where;
	struct rig_plan plan;
};

/* ---- the other process; it must not use cmocka ---- */

static void remote_listen(struct remote *r, const struct suite *suite, struct hd_port *port,
			  struct hd_listener *l)
{
	if (!suite->address) {
		r->where_len = port->transport->advertise(port, r->where.advert, sizeof(r->where.advert));
		return;
	}
	memset(l, 0, sizeof(*l));
	l->addr.ss_family = strchr(suite->address, ':') ? AF_INET6 : AF_INET;
	inet_pton(l->addr.ss_family, suite->address,
		  l->addr.ss_family == AF_INET ? (void *)&((struct sockaddr_in *)&l->addr)->sin_addr
					       : (void *)&((struct sockaddr_in6 *)&l->addr)->sin6_addr);
	if (port->transport->listen(port, l))
		_exit(3);
	r->where.addr = l->addr;
	r->where_len = sizeof(l->addr);
}

/* A forked child that does nothing but hold what it has inherited and its engine leaves it. */
static void leave_heir(struct remote *r, struct hd_node *node)
{
	if (fork() == 0) {
		prctl(PR_SET_NAME, "rig-heir");
		rig_forked(node);
		atomic_store(&r->heir, getpid());
		sleep(30);
		_exit(0);
	}
}

static void remote_report(struct remote *r, struct hd_node *node)
{
	struct rig_end *end = TAILQ_FIRST(&node->ends);

	if (!end)
		return;
	atomic_store(&r->tx, end->tx);
	atomic_store(&r->rx, end->rx);
	atomic_store(&r->idle, rig_end_idle(end));
}

static void remote_main(struct remote *r, const struct suite *suite)
{
	struct hd_node *node = rig_node_open();
	struct hd_port *port = rig_port_open(node, suite->transport);
	struct hd_listener listener;
	bool planned = false;

	if (!port)
		_exit(2);
	remote_listen(r, suite, port, &listener);
	atomic_store(&r->ready, true);
	while (!atomic_load(&r->stop)) {
		struct rig_end *end = TAILQ_FIRST(&node->ends);

		if (end && !planned) {
			end->plan = r->plan;
			planned = true;
			if (r->has_heir)
				leave_heir(r, node);
		}
		rig_poll(node);
		remote_report(r, node);
	}
	if (suite->address)
		port->transport->unlisten(port, &listener);
	_exit(rig_node_close(node) ? 0 : 1);
}

static struct remote *remote_start(const struct suite *suite, const struct rig_plan *plan, bool has_heir)
{
	struct remote *r = mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	assert_ptr_not_equal(r, MAP_FAILED);
	r->plan = *plan;
	r->has_heir = has_heir;
	fflush(NULL);
	pid = fork(); /* not into r, which both write to */
	assert_int_not_equal(pid, -1);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		remote_main(r, suite);
	}
	r->pid = pid;
	while (!atomic_load(&r->ready)) {
		assert_int_equal(waitpid(r->pid, NULL, WNOHANG), 0);
		usleep(1000);
	}
	return r;
}

/* ---- the tests ---- */

struct meeting {
	struct world w;
	struct remote *remote;
	struct rig_end *end;
};

static bool greeted(void *end)
{
	return ((struct rig_end *)end)->greeted;
}

static void meet(struct meeting *m, const struct mode *mode, const struct rig_plan *plan, bool has_heir)
{
	m->remote = remote_start(mode->suite, plan, has_heir);
	world_open(&m->w, mode, 1);
	assert_int_equal(rig_connect(m->w.node[0]->port[0], &m->remote->where, m->remote->where_len, &m->end),
			 0);
	world_until(&m->w, 20, greeted, m->end);
	m->end->plan = *plan;
}

static bool meeting_quiet(void *arg)
{
	struct meeting *m = arg;
	struct remote *r = m->remote;

	return rig_end_idle(m->end) && atomic_load(&r->idle) && m->end->rx == atomic_load(&r->tx) &&
	       m->end->tx == atomic_load(&r->rx);
}

static struct rig_plan everything(const struct suite *suite, uint64_t packets)
{
	struct rig_plan plan = {
		.packets = packets,
		.most = HD_FRAME_MAX,
		.how = RIG_SEND | RIG_SENDV | RIG_PUT | RIG_UNPUT,
		.message_most = 2 << 20,
		.truncates = true,
	};

	if (suite->fetches)
		plan.how |= RIG_RTS | RIG_UNGET;
	return plan;
}

void suite_another_process(void **state)
{
	const struct mode *mode = *state;
	const struct rig_plan plan = everything(mode->suite, SUITE_SCALE(2000));
	struct meeting m;
	int status;

	meet(&m, mode, &plan, false);
	world_until(&m.w, 50, meeting_quiet, &m);
	if (mode->suite->fetches) {
		assert_int_equal(m.end->not_offered, 0);
		assert_in_range(m.end->fetched, 1, UINT32_MAX);
	}
	atomic_store(&m.remote->stop, true);
	world_until(&m.w, 20, end_gone, m.end);
	assert_int_equal(waitpid(m.remote->pid, &status, 0), m.remote->pid);
	assert_int_equal(status, 0);
	world_close(&m.w);
	munmap(m.remote, sizeof(*m.remote));
}

/*
 * Noticed at once, by the time that we have worked for it: on a busy machine the dead may be given
 * up late, and we be called late.
 */
static void kill_one(const struct mode *mode, int turns, bool has_heir)
{
	struct rig_plan plan = everything(mode->suite, UINT64_MAX);
	struct meeting m;
	uint64_t killed;

	plan.may_fail = true;
	meet(&m, mode, &plan, has_heir);
	while (has_heir && !atomic_load(&m.remote->heir))
		world_turn(&m.w);
	for (int i = 0; i < turns; i++)
		world_turn(&m.w);
	assert_false(m.end->was_down);
	killed = cpu_ns_all();
	kill(m.remote->pid, SIGKILL);
	world_until(&m.w, 20, end_gone, m.end);
	assert_in_range((cpu_ns_all() - killed) / HD_NS_PER_MS, 0, 1000);
	if (has_heir)
		kill(atomic_load(&m.remote->heir), SIGKILL);
	assert_int_equal(waitpid(m.remote->pid, NULL, 0), m.remote->pid);
	world_close(&m.w);
	munmap(m.remote, sizeof(*m.remote));
}

void suite_a_killed_process_is_noticed(void **state)
{
	for (int i = 0; i < 8; i++)
		kill_one(*state, i * i * 3, false);
}

void suite_a_killed_process_with_a_child_is_noticed(void **state)
{
	for (int i = 0; i < 3; i++)
		kill_one(*state, i * 20, true);
}
