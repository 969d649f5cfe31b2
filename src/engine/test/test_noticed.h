/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What tests of checks share: something is made wrong of what a node keeps, in a process of its
 * own, and the node is checked there.
 */
#ifndef HD_ENGINE_TEST_NOTICED_H
#define HD_ENGINE_TEST_NOTICED_H

#include "engine/test/test_pair.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef NDEBUG
static const bool test_checks = false; /* and cost nothing */
#else
static const bool test_checks = true;
#endif

/*
 * A scene of up to four nodes, and what may be made wrong of it: `make` does so by number, below
 * `count`.
 */
struct noticed {
	void *scene;
	struct hd_node *nodes[4];
	void (*check)(struct hd_node *node);
	void (*make)(void *scene, size_t i);
	size_t count;
};

/* The engine does not hear of the process: what it has is as it was. */
static inline bool noticed_is(const struct noticed *n, size_t i)
{
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	int status;

	if (!pid) {
		dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
		signal(SIGABRT, SIG_DFL);
		if (i < n->count)
			n->make(n->scene, i);
		for (size_t k = 0; k < 4 && n->nodes[k]; k++)
			n->check(n->nodes[k]);
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

/* noticed_all: the scene as it is passes, and each of these is noticed where there are checks. */
static inline void noticed_all(const struct noticed *n, const char *transport)
{
	assert_false(noticed_is(n, n->count));
	for (size_t i = 0; i < n->count; i++)
		if (noticed_is(n, i) != test_checks)
			fail_msg("%s: number %zu is %s", transport, i,
				 test_checks ? "not noticed" : "looked for");
}

/* NOTICED_MAKE: `make` of a table of functions that make something wrong of such a scene. */
#define NOTICED_MAKE(make_fn, type, table) \
	static void make_fn(void *scene, size_t i) \
	{ \
		type *s = scene; \
\
		table[i](s); \
	}

/*
 * NOTICED_SCENE: the test each_is_noticed, of `table` and a struct scene whose two nodes are in its
 * pair p.
 */
#define NOTICED_SCENE(table) \
	NOTICED_MAKE(make_wrong, struct scene, table) \
	static void each_is_noticed(void **state) \
	{ \
		EACH_TRANSPORT(t) \
		{ \
			struct scene s; \
\
			scene_open(&s, t); \
			noticed_all(&(struct noticed){ &s, \
						       { s.p.a.node, s.p.b.node }, \
						       hd_node_check, \
						       make_wrong, \
						       sizeof(table) / sizeof(*table) }, \
				    t); \
			scene_close(&s); \
		} \
	}

#endif
